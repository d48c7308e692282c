"""From what the caller wrote as `strategy=` to the strategies to try."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from strategies import policy, registry
from strategies.errors import LinAlgError, UnsupportedError
from strategies.policy.schema import PolicyKey
from strategies.strategy import Strategy

StrategyChoice = str | Strategy
_DTYPES = torch.float32, torch.float64, torch.complex64, torch.complex128
Result = TypeVar("Result")


def choose(
    choice: StrategyChoice,
    operation: str,
    A: Tensor,
    *rhs: Tensor,
    any_rank: bool = False,
    square: bool = False,
) -> tuple[Strategy, ...]:
    """The strategies that a name, an instance or "auto" stands for, the preferred one first.

    What is no batch of matrices that LAPACK takes is left to PyTorch, whose errors say why; and so is
    "auto" while a CUDA graph is captured.

    Args:
        choice: what the caller wrote.
        operation: whose measured cells answer.
        A: the matrices.
        rhs: the right-hand sides, where the operation takes them.
        any_rank: end with a strategy that takes any rank.
        square: the matrices have to be square.

    Raises:
        StrategyNotFoundError: no strategy has that name.
        TypeError: it is none of these.
    """
    if not isinstance(choice, str | Strategy):
        raise TypeError(f"strategy= takes a name or a Strategy, not {type(choice).__name__}")
    if not are_matrices(A, square) or (rhs and not are_of_kind(A, *rhs)):
        return (registry.get(policy.BASELINE),)
    if isinstance(choice, Strategy):
        return (choice,)
    if choice != "auto":
        return (registry.get(choice),)
    if is_captured(A):
        return (registry.get(policy.BASELINE),)
    return policy.candidates(*policy_key(operation, A, *rhs), any_rank=any_rank)


def kernels_of(strategy: Strategy) -> tuple[str, ...]:
    """The kernels that a strategy's own class names; a subclass may compute in another way.

    Example:
        >>> kernels_of(registry.get("triangular_solve"))
        ()
    """
    named: tuple[str, ...] = vars(type(strategy)).get("fused", ())
    return named


def is_captured(A: Tensor) -> bool:
    """Whether a CUDA graph is captured, in which no strategy but PyTorch's own may look at values.

    Example:
        >>> is_captured(torch.ones(1))
        False
    """
    return A.is_cuda and torch.cuda.is_current_stream_capturing()


def is_left_to_torch(choice: StrategyChoice, operation: str, is_small: bool) -> bool:
    """Whether "auto" is PyTorch's own operation, as it is of small inputs where no measured cells answer.

    Their arithmetic takes less time than calls from Python. Of larger inputs it is what `strategies.policy`
    falls back to.

    Example:
        >>> is_left_to_torch("auto", "eig", True), is_left_to_torch("auto", "inv", True)
        (True, False)
    """
    return is_small and choice == "auto" and not policy.covers(operation)


def are_matrices(A: object, square: bool = False) -> bool:
    """Whether A is a batch of matrices that LAPACK takes.

    Example:
        >>> are_matrices(torch.ones(2, 3)), are_matrices(torch.ones(2, 3), square=True)
        (True, False)
    """
    return (
        isinstance(A, Tensor)
        and A.dtype in _DTYPES
        and A.ndim > 1
        and not (square and A.shape[-2] != A.shape[-1])
    )


def are_of_kind(A: Tensor, B: object) -> bool:
    """Whether B is a tensor that goes with A.

    Example:
        >>> are_of_kind(torch.ones(1, 1), torch.ones(1, dtype=torch.float64))
        False
    """
    return isinstance(B, Tensor) and B.dtype == A.dtype and B.device == A.device


def name_of(strategy: StrategyChoice) -> str:
    """How an operator is told the strategy.

    Raises:
        StrategyNotFoundError: no strategy has that name.
        TypeError: it is no strategy.
        UnsupportedError: it is a strategy that is not registered, which a graph cannot hold.

    Example:
        >>> name_of(registry.get("qr_pinv"))
        'qr_pinv'
    """
    return _registered(strategy if isinstance(strategy, str) else type(strategy))


def _registered(strategy: str | type) -> str:
    """By name or class, as an instance is no constant for Dynamo of PyTorch 2.9."""
    if isinstance(strategy, str):
        return "auto" if strategy == "auto" else registry.get(strategy).name
    if not issubclass(strategy, Strategy):
        raise TypeError(f"strategy= takes a name or a Strategy, not {strategy.__name__}")
    if strategy.name in registry.available() and type(registry.get(strategy.name)) is strategy:
        return strategy.name
    raise UnsupportedError(
        "a compiled or exported call holds a strategy by its name, and "
        f"{strategy.__name__} is not registered; a package registers it by an entry point, "
        "`strategies.use` takes it around a call by 'auto', and torch.compiler.disable keeps a function "
        "from being compiled"
    )


# Dynamo then calls it while it traces, and takes what it returns as a constant. The public
# torch.compiler.assume_constant_result sets the same mark, but imports Dynamo, which takes a second.
vars(_registered)["_dynamo_marked_constant"] = True


def policy_key(operation: str, A: Tensor, *rhs: Tensor) -> PolicyKey:
    """A call as a policy is asked about it."""
    return key_of_sizes(operation, A.dtype, A.device, *(each.shape for each in (A, *rhs)))


def key_of_sizes(
    operation: str, dtype: torch.dtype, device: torch.device, *sizes: Sequence[int]
) -> PolicyKey:
    """The same from the sizes of A, and of right-hand sides."""
    (*batch, m, n), *rhs = sizes
    columns = rhs[0][-1] if rhs and len(rhs[0]) > len(batch) + 1 else 1
    count = math.prod(batch) if batch else 0
    return (operation, m, n, columns, count, str(dtype).removeprefix("torch."), device.type)


def first_that_can(
    candidates: tuple[Strategy, ...], compute: Callable[[Strategy], Result]
) -> Result:
    """What the first strategy computes that does not refuse the input for its rank.

    Raises:
        torch.linalg.LinAlgError: the last one refuses, too.
    """
    *preferred, last = candidates
    for strategy in preferred:
        try:
            return compute(strategy)
        except LinAlgError:
            continue
    return compute(last)
