"""The samples by which PyTorch tests its own functions, in three orders of differentiation."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._pytree import tree_flatten, tree_unflatten

from strategies import linalg, operations

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

NAMES = sorted(
    name
    for module in operations.modules()
    for name in module.__all__
    if name.islower() and callable(getattr(linalg, name))
)


def _one_that_takes_any_rank(name):
    return "qr_pinv" if name in ("lstsq", "pinv", "pinverse") else "triangular_solve"


def function_of_torch(name):
    return getattr(torch.linalg, name, None) or getattr(torch, name)


def opinfos(name):
    """Those of the function itself: there are others, of functions around it."""
    pytest.importorskip("expecttest", reason="torch.testing's samples need it")
    from torch.testing._internal.common_methods_invocations import op_db

    found = [each for each in op_db if each.name in (f"linalg.{name}", name)]
    return [each for each in found if each.op is function_of_torch(name)]


def differentiable(outputs):
    return tuple(
        each
        for each in tree_flatten(outputs)[0]
        if isinstance(each, torch.Tensor) and (each.is_floating_point() or each.is_complex())
    )


def cases(name, dtype):
    """The calls of a function as functions of their differentiable inputs, and these."""
    for info in opinfos(name):
        if dtype not in info.supported_dtypes("cpu"):
            continue
        for sample in info.sample_inputs("cpu", dtype, requires_grad=True):
            given, form = tree_flatten((sample.input, sample.args, sample.kwargs))
            places = [i for i, each in enumerate(given) if getattr(each, "requires_grad", False)]

            def call(
                strategy, *leaves, given=given, form=form, places=places, info=info, sample=sample
            ):
                filled = list(given)
                for place, leaf in zip(places, leaves, strict=True):
                    filled[place] = leaf
                first, arguments, options = tree_unflatten(filled, form)
                options.pop("driver", None)  # PyTorch's own
                function = getattr(linalg, name)
                outputs = info.gradcheck_wrapper(
                    function, first, *arguments, **options, strategy=strategy
                )
                if name == "lstsq":
                    outputs = outputs.solution
                return differentiable(sample.output_process_fn_grad(outputs))

            leaves = [given[i] for i in places]
            if leaves and all(each.requires_grad for each in call("native", *leaves)):
                yield call, leaves


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
@pytest.mark.parametrize(
    ("name", "strategy"),
    [(name, strategy) for name in NAMES for strategy in ("auto", _one_that_takes_any_rank(name))],
)
def test_the_samples_of_pytorch_in_three_orders(name, strategy, dtype):
    count = 0
    for call, leaves in cases(name, dtype):

        def by_strategy(*leaves, call=call):
            return call(strategy, *leaves)

        assert gradcheck(by_strategy, leaves, fast_mode=True, check_forward_ad=True)
        assert gradgradcheck(by_strategy, leaves, fast_mode=True, atol=1e-4)
        count += 1
    if not count:
        pytest.skip("PyTorch has no samples")
