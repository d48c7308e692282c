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

__all__ = ["CHECKS", "ConformanceError", "Outcome", "Report", "Status", "check_strategy"]

CHECKS: tuple[Check, ...] = (
    *conduct_checks.CHECKS,
    *factor_checks.CHECKS,
    *gradient_checks.CHECKS,
)
"""Every check, in the order in which they run."""


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
        return Report(str(strategy.name), tuple(_outcome(check, strategy) for check in CHECKS))


def _outcome(check: Check, strategy: Strategy) -> Outcome:
    try:
        with global_state.preserved():
            check.run(strategy)
    except NotApplicableError as reason:
        return Outcome(check.name, Status.NOT_APPLICABLE, str(reason))
    except Violation as violation:
        return Outcome(check.name, Status.FAILED, str(violation))
    except UnsupportedError as refusal:
        return _refused(check, str(refusal))
    except ImportError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a strategy raises is a finding
        return Outcome(check.name, Status.FAILED, f"{type(error).__name__}: {error}")
    return Outcome(check.name, Status.PASSED)


def _refused(check: Check, message: str) -> Outcome:
    """A strategy may decline a case, if it says who takes it."""
    if any(f"'{name}'" in message for name in strategies.available()):
        return Outcome(check.name, Status.NOT_APPLICABLE, message)
    detail = f"UnsupportedError must name, in quotes, a strategy that can; it says: {message}"
    return Outcome(check.name, Status.FAILED, detail)
