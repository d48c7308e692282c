"""Whether a strategy does what all strategies must: one call for the author of one.

In pytest:

    from strategies.testing import check_strategy

    def test_my_strategy():
        check_strategy(MyStrategy).raise_if_failed()

and on the command line `backward-strategies check my_module:MyStrategy`. Needs python-flint, the
extra `backward-strategies[accuracy]`, for the exact gradients.
"""

from __future__ import annotations

import inspect

import strategies
from strategies.errors import UnsupportedError
from strategies.interface import Strategy
from strategies.testing import conduct_checks, factor_checks, global_state, gradient_checks
from strategies.testing.checks import Check, NotApplicableError, Violation, on
from strategies.testing.report import ConformanceError, Outcome, Report, Status

__all__ = [
    "ConformanceError",
    "Outcome",
    "Report",
    "Status",
    "check_strategy",
    "checks",
    "outcome_of",
]


def checks() -> tuple[Check, ...]:
    """Every check, in the order in which they run; operations that were added have theirs.

    Example:
        >>> "gradient of pinv" in [check.name for check in checks()]
        True
    """
    return (*conduct_checks.CHECKS, *factor_checks.CHECKS, *gradient_checks.checks())


def check_strategy(strategy: Strategy | type[Strategy], device: str = "cpu") -> Report:
    """Run every check on a strategy.

    Args:
        strategy: an instance, or a class that is made without arguments.
        device: where the matrices are, as "cuda:0".

    Returns:
        What each check found. Global state that the strategy changed has been set back.

    Raises:
        TypeError: it is neither.
        ImportError: python-flint is not installed.

    Example:
        >>> report = check_strategy(strategies.get("triangular_solve"))
        >>> report.passed
        True
    """
    if inspect.isclass(strategy) and issubclass(strategy, Strategy):
        strategy = strategy()
    if not isinstance(strategy, Strategy):
        raise TypeError(f"expected a Strategy or a subclass of it, got {strategy!r}")
    with on(device):
        return Report(str(strategy.name), tuple(outcome_of(check, strategy) for check in checks()))


def outcome_of(check: Check, strategy: Strategy) -> Outcome:
    """Run one check of `checks()`; global state that the strategy changed is set back."""
    status, detail = Status.FAILED, ""
    try:
        with global_state.preserved():
            check.run(strategy)
        status = Status.PASSED
    except NotApplicableError as reason:
        status, detail = Status.NOT_APPLICABLE, str(reason)
    except Violation as violation:
        detail = str(violation)
    except UnsupportedError as refusal:
        # A strategy may decline a case, if it says who takes it.
        if any(f"'{name}'" in str(refusal) for name in strategies.available()):
            status, detail = Status.NOT_APPLICABLE, str(refusal)
        else:
            detail = (
                f"UnsupportedError must name, in quotes, a strategy that can; it says: {refusal}"
            )
    except ImportError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a strategy raises is a finding
        detail = f"{type(error).__name__}: {error}"
    return Outcome(check.name, status, detail)
