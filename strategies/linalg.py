"""`torch.linalg` with a choice of how the inverse in a backward is applied.

Names, signatures and return fields are those of `torch.linalg`, plus `strategy=`: a name from
`strategies.available()`, a `Strategy` of your own, or "auto", the measured default. The names are those
of the records in `strategies.operations`; all others are torch.linalg's own functions.
"""

from typing import Any

import torch

from strategies import operations

__all__ = sorted(name for module in operations.modules() for name in module.__all__)  # noqa: PLE0605

globals().update(
    {name: getattr(module, name) for module in operations.modules() for name in module.__all__}
)


def __getattr__(name: str) -> Any:
    if name in operations.names():
        return operations.get(name).function
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(torch.linalg, name)
    except AttributeError:
        raise AttributeError(f"neither {__name__} nor torch.linalg has {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *operations.names(), *dir(torch.linalg)})
