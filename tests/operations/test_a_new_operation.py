"""An operation is added by one record and one formula; everything that goes over operations has it."""

import json
from dataclasses import dataclass

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from typer.testing import CliRunner

import strategies
from benchmarks import suites
from plots.figures import draw_all, figures
from plots.rows import table
from strategies import linalg, operations, testing
from strategies.accuracy import gradient
from strategies.autograd.choice import choose
from strategies.autograd.nodes import run
from strategies.autograd.rule import Rule
from strategies.cli.main import app
from strategies.formulas.solve import rhs_tangent
from strategies.measuring import Case, backward_of, forward, store
from strategies.operations import Operation, grids
from strategies.operations.record import exact

NAME = "matrix_inverse_times"


def formula(strategy, saved, cotangent, *, need_matrix=True):
    rhs_gradient = saved.inverse.apply_adjoint(cotangent)
    return (-rhs_gradient @ saved.result.mH if need_matrix else None), rhs_gradient


@dataclass(frozen=True)
class InverseTimes(Rule):
    """X = A⁻¹B."""

    name = NAME
    arity = 2

    def forward(self, strategy, *inputs):
        inverse = strategy.factor_square(inputs[0])
        return (inverse.apply(inputs[1]),), inverse

    def backward(self, strategy, saved, cotangents, needed):
        return strategy.own(f"{NAME}_backward", formula, saved, *cotangents, need_matrix=needed[0])

    def explicit_backward(self, strategy, at, cotangents):
        rhs_gradient = torch.linalg.solve(at.matrix.mH, cotangents[0])
        return -rhs_gradient @ at.result.mH, rhs_gradient

    def jvp(self, strategy, at, tangents):
        return (torch.linalg.solve(at.matrix, rhs_tangent(at.result, *tangents)),)


def matrix_inverse_times(A, B, *, strategy="auto"):
    (chosen,) = choose(strategy, NAME, A, B, square=True)
    if chosen.forward_is_differentiable:
        return torch.linalg.inv(A) @ B
    if B.ndim < A.ndim:
        return run(InverseTimes(), chosen, A, B.unsqueeze(-1))[0].squeeze(-1)
    return run(InverseTimes(), chosen, A, B)[0]


@pytest.fixture(autouse=True)
def record():
    with operations.registered(
        Operation(
            name=NAME,
            function=matrix_inverse_times,
            exact=lambda problem: exact("square").solve_gradient(*problem.operands),
            cells=grids.SQUARE,
            arity=2,
            square=True,
            needs_full_rank=True,
        )
    ) as record:
        yield record


def test_it_is_in_the_namespace():
    A, B = torch.eye(2) * 2, torch.ones(2, 1)
    assert linalg.matrix_inverse_times(A, B).tolist() == [[0.5], [0.5]]


def test_all_orders_and_modes_are_differentiated():
    inputs = [torch.randn(3, 3, dtype=torch.float64) + 3 * torch.eye(3), torch.randn(3, 2).double()]
    for strategy in strategies.available():
        leaves = [value.clone().requires_grad_() for value in inputs]
        call = lambda A, B, by=strategy: matrix_inverse_times(A, B, strategy=by)  # noqa: E731
        assert gradcheck(call, leaves, fast_mode=True, check_forward_ad=True)
        assert gradgradcheck(call, leaves, fast_mode=True, check_fwd_over_rev=True)


def test_its_gradient_is_certified():
    case = Case(NAME, (6, 6), batch=2, rhs=2)
    cotangents = case.cotangents(forward(case, "native"))
    certified = gradient(NAME, case.inputs(), cotangents)
    assert certified.radius < 2**-60
    for strategy in strategies.available():
        assert certified.relative_error(backward_of(case, strategy)()) < 1e-12


def test_the_kit_checks_it():
    own = [check for check in testing.checks() if NAME in check.name]
    assert {f"{what} of {NAME}" for what in ("gradient", "sizes", "scales")} <= {
        c.name for c in own
    }
    strategy = strategies.get("qr_pinv")
    for check in own:
        assert testing.outcome_of(check, strategy).status is not testing.Status.FAILED


def test_asv_gets_suites():
    made = suites.suites_of(NAME, "tiny")
    assert f"{NAME}.Single" in made
    suite = made[f"{NAME}.Single"]()
    case = [values[0] for values in suite.params]
    suite.setup(*case)
    assert suite.case.operation == NAME
    assert suite.track_gradient_error(*case) < 1e-10
    assert suite.track_peak_memory(*case) > 0


def test_the_command_line_measures_judges_and_shows_it(tmp_path):
    def invoke(*arguments):
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    kept = tmp_path / "results" / "toy.json"
    invoke("measure", kept, "--grid", "tiny", "--operation", NAME, "--budget", 0.01)
    invoke("stability", "--operation", NAME, "--cases", 8, "--out", kept.with_name("hard.json"))
    every = json.loads(invoke("recommend", "--results", kept.parent, "--json"))["cells"]
    assert {cell["operation"] for cell in every} == {NAME}
    shape = ("--operation", NAME, "--shape", "8x8")
    ranked = json.loads(invoke("recommend", "--results", kept.parent, *shape, "--json"))
    assert ranked["cells"][0]["chosen"] in strategies.available()
    policy = tmp_path / "policy.json"
    invoke("policy", "build", policy, "--results", kept.parent)
    with strategies.use(policy):
        assert choose("auto", NAME, torch.eye(8, dtype=torch.float64))[0].name in {
            each["strategy"] for each in ranked["cells"][0]["strategies"]
        }
    drawn = dict(draw_all(table(store.load(kept.parent)), tmp_path / "figures", figures()))
    assert drawn["error_against_conditioning"] is None
    assert drawn["winners_map"] is None
