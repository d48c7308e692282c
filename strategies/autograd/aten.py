"""Calls that the fast path computes: of PyTorch's operators, where installed, and of our functions.

Both have the same parameters (`csrc/torch/aten.hpp`, `csrc/torch/python_calls.hpp`). A module of
`strategies.operations` lists in `ATEN` the calls of operators under `aten::` for which its fast path has
plans. Those are operators whose outputs are no more than what the fast path returns: `aten::linalg_det`,
and not `aten::_linalg_det`, which returns LU, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from strategies.autograd.fast_path import FastPath
from strategies.autograd.rule import Tensors


@dataclass
class AtenCalls:
    """Calls of an operator that a fast path computes.

    Args:
        operator: its name without "aten::", and that of its overload, if it has one.
        fast_path: of the operation.
        usual: the values of the arguments that follow the inputs; an ellipsis stands for any.
        takes_tolerances: whether the first two of these are atol and rtol, None or tensors of one number.
        inputs: positions of the inputs of the fast path among the arguments; by default the first ones.
        is_transposed: whether the fast path is given transposes, and returns one.
        returned: positions of the outputs among those of the fast path, None for an empty one; by default
            the first ones.
        by_columns: positions of outputs that lie by columns in PyTorch, and not in the fast path.
        by_rows: the other way round.

    Example:
        >>> det = FastPath("det", lambda _, A: (A.det(),), policy_operation="det")
        >>> AtenCalls("linalg_det", det).inputs
        range(0, 1)
    """

    operator: str
    fast_path: FastPath
    usual: Sequence[Any] = ()
    _: KW_ONLY
    inputs: Sequence[int] = ()
    takes_tolerances: bool = False
    is_transposed: bool = False
    returned: Sequence[int | None] = (0,)
    by_columns: Sequence[int] = ()
    by_rows: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.inputs = self.inputs or range(self.fast_path.arity)

    @property
    def function(self) -> str:
        """The name of the public function of the same parameters."""
        return self.operator.partition(".")[0].removeprefix("linalg_")

    @property
    def compiled(self) -> Callable[..., Tensors | None] | None:
        """The fast path in C++, if that is there."""
        return self.fast_path.compiled
