"""Whether a strategy does what all strategies must: one call for the author of one.

In pytest:

    from strategies.testing import check_strategy

    def test_my_strategy():
        check_strategy(MyStrategy).raise_if_failed()

and on the command line `backward-strategies check my_module:MyStrategy`.
"""

import importlib
import inspect
import pkgutil

from strategies.errors import UnsupportedError, message_of
from strategies.strategy import Strategy
from strategies.testing.checks import Check, NotApplicableError, Violation, added, advice_in, on
from strategies.testing.global_state import preserved
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

for _module in pkgutil.iter_modules(__path__):
    if _module.name.endswith("_checks"):  # it adds checks
        importlib.import_module(f"{__name__}.{_module.name}")


def checks() -> tuple[Check, ...]:
    """Every check, in the order in which they run; operations that were added have theirs.

    Example:
        >>> "gradient of pinv" in [check.name for check in checks()]
        True
    """
    return tuple(added())


def check_strategy(strategy: Strategy | type[Strategy], device: str = "cpu") -> Report:
    """Run every check on a strategy.

    Args:
        strategy: an instance, or a class that is made without arguments.
        device: where the matrices are, as "cuda:0".

    Returns:
        What each check found. Global state that the strategy changed has been set back.

    Raises:
        TypeError: it is neither.

    Example:
        >>> import strategies
        >>> report = check_strategy(strategies.get("fused"))
        >>> report.passed
        True
    """
    if inspect.isclass(strategy) and issubclass(strategy, Strategy):
        strategy = strategy()
    if not isinstance(strategy, Strategy):
        raise TypeError(f"expected a Strategy or a subclass of it, got {strategy!r}")
    name = str(getattr(strategy, "name", type(strategy).__name__))
    with on(device):
        return Report(name, tuple(outcome_of(check, strategy) for check in checks()))


def outcome_of(check: Check, strategy: Strategy) -> Outcome:
    """Run one check of `checks()`; global state that the strategy changed is set back."""
    try:
        try:
            with preserved():
                note = check.run(strategy)
        except UnsupportedError as refusal:  # it may decline, if it says who takes the case
            raise NotApplicableError(advice_in(refusal)) from refusal
        return Outcome(check.name, Status.PASSED, note or "")
    except NotApplicableError as reason:
        return Outcome(check.name, Status.NOT_APPLICABLE, str(reason))
    except Violation as violation:
        return Outcome(check.name, Status.FAILED, str(violation))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - SystemExit too: whatever is raised is a finding
        return Outcome(check.name, Status.FAILED, message_of(error))
