"""Strategies by name: the built-in ones, and those that installed packages offer.

A package adds strategies by entry points of the group `backward_strategies`, each naming a
`Strategy` subclass:

    [project.entry-points.backward_strategies]
    my_strategy = "my_package.my_module:MyStrategy"
"""

import difflib
import functools
import importlib.metadata
import inspect
import warnings

from strategies.builtin.batch_last import BatchLast
from strategies.builtin.blocked_lu import BlockedLU
from strategies.builtin.explicit_inverse import ExplicitInverse
from strategies.builtin.fused import Fused
from strategies.builtin.native import Native
from strategies.builtin.qr_pinv import QRPinv
from strategies.builtin.svd_truncated_pinv import SVDTruncatedPinv
from strategies.builtin.triangular_solve import TriangularSolve
from strategies.errors import StrategyNotFoundError, message_of
from strategies.strategy import Strategy

ENTRY_POINT_GROUP = "backward_strategies"

_NOT_CODE = ("name", "summary", "accuracy", "_abc_impl")
"""What differs between any two strategies."""

_BUILT_IN: tuple[type[Strategy], ...] = (
    # From simple to elaborate: a tie between measurements goes to the earlier one. The last has no more
    # than kernels of the one before it, and is there to be compared.
    Native,
    TriangularSolve,
    ExplicitInverse,
    QRPinv,
    SVDTruncatedPinv,
    BlockedLU,
    Fused,
    BatchLast,
)


def available() -> tuple[str, ...]:
    """The names of all strategies, built-in ones first, from simple to elaborate.

    Example:
        >>> available()[:2]
        ('native', 'triangular_solve')
    """
    return tuple(_strategies())


def built_in() -> tuple[str, ...]:
    """The names of the strategies of this package, without those of plug-ins."""
    return tuple(kind.name for kind in _BUILT_IN)


def distinct(stem: str) -> tuple[str, ...]:
    """The names of the strategies with distinct code for an operation.

    Of those that share inherited code, the one that `available` names first.

    Args:
        stem: of the operation, as its record says: what its own methods' names begin with.

    Example:
        >>> "blocked_lu" in distinct("lu"), "blocked_lu" in distinct("lstsq")
        (True, False)
    """
    of_operation = (f"{stem}_forward", f"{stem}_backward")
    by_code: dict[tuple[tuple[str, int], ...], str] = {}
    for name, strategy in _strategies().items():
        kind = type(strategy)
        # All that could be called, since a subclass may change a method by a helper of that method.
        code = tuple(
            (attribute, id(inspect.getattr_static(kind, attribute)))
            for attribute in dir(kind)
            if not attribute.startswith("__")
            and attribute not in _NOT_CODE
            and (attribute in of_operation or not attribute.endswith(("_forward", "_backward")))
        )
        by_code.setdefault(code, name)
    return tuple(by_code.values())


def get(name: str) -> Strategy:
    """The strategy of that name.

    Raises:
        StrategyNotFoundError: there is none; the message lists the names that are close.

    Example:
        >>> get("qr_pinv")
        <strategy qr_pinv>
    """
    try:
        return _strategies()[name]
    except KeyError:
        close = difflib.get_close_matches(name, available()) or available()
        raise StrategyNotFoundError(
            f"no strategy is named '{name}'; there is {', '.join(close)}"
        ) from None


def made(kind: object) -> Strategy:
    """An instance of a strategy class, with what tables and messages need of it.

    TypeError if it is no such class, cannot be made without arguments, or lacks a name, a summary or
    `requires_full_rank`.
    """
    if not (isinstance(kind, type) and issubclass(kind, Strategy)):
        raise TypeError(f"not a subclass of strategies.Strategy: {kind!r}")
    try:
        strategy = kind()
    except TypeError as error:
        raise TypeError(f"{kind.__name__} cannot be made without arguments: {error}") from error
    for name, expected in (("name", str), ("summary", str), ("requires_full_rank", bool)):
        if not hasattr(strategy, name):
            raise TypeError(f"{kind.__name__} has no {name}")
        value = getattr(strategy, name)
        if not isinstance(value, expected):
            raise TypeError(f"{kind.__name__}.{name} must be a {expected.__name__}, not {value!r}")
    return strategy


@functools.cache
def _strategies() -> dict[str, Strategy]:
    found: dict[str, Strategy] = {kind.name: kind() for kind in _BUILT_IN}
    points = importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)
    for point in sorted(points, key=lambda point: (str(point.name), str(point.value))):
        try:
            _add(point, found)
        except KeyboardInterrupt:
            raise
        # SystemExit too: one broken plug-in must not disable the others.
        except BaseException as error:  # noqa: BLE001
            what = f"strategy plug-in {str(point.name)!r} ({point.value})"
            told = f"{what} is left out: {message_of(error)}"
            # Of no line: whichever call came first asks for the strategies.
            warnings.warn_explicit(told, UserWarning, "strategies", 0, __name__)
    return found


def _add(point: importlib.metadata.EntryPoint, known: dict[str, Strategy]) -> None:
    strategy = made(point.load())
    if not strategy.name.isidentifier():
        raise ValueError(f"a name must be an identifier, as on a command line: {strategy.name!r}")
    if strategy.name in known:
        raise ValueError(f"a strategy named '{strategy.name}' exists already")
    known[strategy.name] = strategy
