"""`replace_torch`: a program that calls torch's functions uses `strategies.linalg`, without an edit.

The functions are replaced where programs look them up: in `torch.linalg`, and under their other names in
`torch` and as methods of `Tensor`. That costs other calls nothing, which a torch-function mode would
slow down, all of them, and it holds in every thread.

A call goes to PyTorch all the same
- from within this package, whose strategies are made of torch's functions;
- from within a strategy that computes, wherever that was written;
- where `torch.jit.trace` records it, since a trace may be run where this package is not installed;
- with arguments that `strategies.linalg` does not take, with tensors of types that define what torch's
  functions do, and where the strategies raise an error: the reason is logged, at level INFO.
"""

import functools
import inspect
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from types import FrameType, MethodType
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.compiler import is_compiling
from torch.jit import _builtins
from torch.overrides import handle_torch_function

from strategies import linalg
from strategies.autograd.computing import is_computing
from strategies.errors import message_of
from strategies.integration.call_site import call_site, is_own
from strategies.integration.scope import Scope, selected

log = logging.getLogger(__name__)

_C: Any = torch._C
_BUILTINS: Any = _builtins

_IN_TORCH = {
    *("cholesky_inverse", "cholesky_solve", "det", "inverse"),
    *("logdet", "matrix_power", "pinverse", "slogdet"),
}
"""What is the same function of that name in `torch` and in `Tensor`.

Others have the name there of another function: `torch.lu` returns what `torch.linalg.lu_factor` does.
"""

_in_force: Counter[str] = Counter()


class Replacement(Scope):
    """What `replace_torch` has done."""

    _noun, _in_force = "replacement", _in_force

    def _write(self) -> None:
        """Puts into torch's modules what is in force; what someone else has put there stays."""
        for function in functions():
            if function.name in self.names:
                there = getattr(function.owner, function.name)
                if self.holds(function.name) and there is function.original:
                    function.replace()
                elif not self.holds(function.name) and there is function:
                    function.restore()


def replace_torch(names: Iterable[str] | None = None) -> Replacement:
    """Let torch's own functions use the measured defaults, as those of `strategies.linalg` do.

    From then on, or within the `with` block, `torch.linalg.inv`, `torch.inverse` and `Tensor.inverse`
    are `strategies.linalg.inv`, and so on. That holds for the whole process and its threads, but not
    for a function that was looked up before, as by `from torch.linalg import inv`. Replacements nest.

    Args:
        names: of the functions, as in `strategies.linalg`; by default all.

    Returns:
        A context manager; its method `undo` takes the place of the `with` block.

    Raises:
        ValueError: there is no such function.

    Example:
        >>> import torch, strategies
        >>> with strategies.replace_torch(["inv"]):
        ...     inverse = torch.linalg.inv(torch.tensor([[2.0]]))
        ...     strategies.is_replaced("inv"), strategies.is_replaced("det")
        (True, False)
    """
    return Replacement(selected("function", names, {function.name for function in functions()}))


def is_replaced(name: str | None = None) -> bool:
    """Whether torch's function of this name in `strategies.linalg` is replaced; by default, whether any is.

    Example:
        >>> is_replaced("inv")
        False
    """
    return Replacement.holds(name)


class Function:
    """A function that can be replaced, and what then stands in its place: it calls ours where it may.

    It equals torch's own and has its hash: types that define what torch's functions do keep tables of
    functions, which were looked up before or while this stood there.

    Attributes:
        owner: a module or `Tensor`, which may inherit it.
        ours: takes what the original takes, or less.
        accepted: the arguments that ours takes by name, and by which name it does.
        positional: how many it takes by position.
    """

    def __init__(self, name: str, owner: Any, ours: Callable[..., Any]) -> None:
        self.name, self.owner, self.ours = name, owner, ours
        self.original: Callable[..., Any] = getattr(owner, name)
        self._op = self.original  # whose schemas torch.fx reads
        self.is_inherited = name not in vars(owner)
        parameters = inspect.signature(ours).parameters.values()
        self.positional = sum(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters)
        names = {each.name: each.name for each in parameters if each.name != "strategy"}
        # What torch calls operands where its documentation, which we follow, does not.
        in_torch = {"input": next(iter(names)), "b": "B", "input2": "L"}
        self.accepted = names | {each: own for each, own in in_torch.items() if own in names}
        self.__doc__ = self.original.__doc__
        # The global of this module by which pickle finds it.
        self.__name__ = self.__qualname__ = str(self).replace(".", "_")

    def replace(self) -> None:
        if (operator := _BUILTINS._find_builtin(self.original)) is not None:
            _BUILTINS._register_builtin(self, operator)  # for torch.jit.script
        setattr(self.owner, self.name, self)

    def restore(self) -> None:
        if self.is_inherited:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.original)
            if "torch._dynamo" in sys.modules:
                # Dynamo lists torch's functions by looking them up once, which may have been before.
                torch.compiler.allow_in_graph(self.original)  # type: ignore[no-untyped-call]

    def named(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options that ours is called with."""
        return {self.accepted[name]: options[name] for name in options if name != "out"}

    def refuses(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> str:
        """Why ours cannot be called so; empty where it can."""
        for name, value in options.items():
            if name not in self.accepted and not (name == "out" and value is None):
                return f"it is called with {name}="
        if len(arguments) > self.positional:
            return f"it is called with {len(arguments)} arguments by position"
        return ""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if is_compiling():
            return _compiled(self, arguments, options)
        caller = sys._getframe().f_back
        if not _in_force[self.name] or is_computing() or is_own(caller):
            return self.original(*arguments, **options)
        if not (reason := _reason_for_torch(self, arguments, options)):
            if _C._is_torch_function_mode_enabled():
                return handle_torch_function(self, (), *arguments, **options)
            try:
                return self.ours(*arguments, **self.named(options))
            except RuntimeError as error:
                reason = message_of(error)
        _tell(self, reason, caller)
        return self.original(*arguments, **options)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __eq__(self, other: object) -> bool:
        return self is other or self.original == other

    def __hash__(self) -> int:
        return hash(self.original)

    def __reduce__(self) -> str:
        return self.__name__

    def __str__(self) -> str:
        """As a program writes it."""
        owner = "torch.Tensor" if self.owner is Tensor else self.owner.__name__
        return f"{owner}.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}, replaced>"


@functools.cache
def functions() -> tuple[Function, ...]:
    """All functions that can be replaced, as torch has them when this is first called."""
    return tuple(
        Function(name, owner, ours)
        for name in linalg.__all__
        if inspect.isfunction(ours := getattr(linalg, name))  # not the type of a result
        for owner in (torch.linalg, *((torch, Tensor) if name in _IN_TORCH else ()))
        if hasattr(owner, name)
    )


def _reason_for_torch(
    function: Function, arguments: tuple[Any, ...], options: dict[str, Any]
) -> str:
    """Why a call goes to PyTorch; empty if it does not."""
    if _C._is_tracing():
        return "torch.jit.trace records it"
    if reason := function.refuses(arguments, options):
        return reason
    for kind in map(type, (*arguments, *options.values())):
        if kind not in _KINDS and hasattr(kind, "__torch_function__"):
            return f"{kind.__name__} may define what torch's functions do"
    return ""


_KINDS = Tensor, torch.nn.Parameter, FakeTensor, FunctionalTensor


def _compiled(function: Function, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What Dynamo follows, which knows neither frames nor what is local to a thread."""
    if _tracing.is_inside or not _in_force[function.name] or function.refuses(arguments, options):
        return function.original(*arguments, **options)
    _tracing.is_inside = True
    try:
        return function.ours(*arguments, **function.named(options))
    finally:
        _tracing.is_inside = False


class _Tracing:
    def __init__(self) -> None:
        # Of the object: Dynamo guards that one of the class alone is not there.
        self.is_inside = False


_tracing = _Tracing()
"""Whether a function of this package is being compiled."""


def _tell(function: Function, reason: str, caller: FrameType | None) -> None:
    """Logs once for each place in the program why a call goes to PyTorch."""
    if log.isEnabledFor(logging.INFO):
        file, line = call_site(caller)
        said = function, reason, f"{file}:{line}" if file else ""
        if said not in _told:
            _told.add(said)
            log.info("%s goes to PyTorch: %s (%s)", *said)


_told: set[tuple[Function, str, str]] = set()


def __getattr__(name: str) -> Any:
    for function in functions():
        if function.__name__ == name:
            return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_loaded: list[Replacement] = []


def load_ipython_extension(_shell: object) -> None:
    """Called by `%load_ext strategies`: `replace_torch` until `%unload_ext strategies`."""
    _loaded.append(replace_torch())


def unload_ipython_extension(_shell: object) -> None:
    """Called by `%unload_ext strategies`."""
    while _loaded:
        _loaded.pop().undo()
