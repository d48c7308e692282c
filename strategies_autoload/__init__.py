"""The entry point of PyTorch's group `torch.backends`, which `import torch` loads and calls at its end.

It is a package of its own, so that programs which do not ask for it import no more than this file.
"""

import os
import warnings

VARIABLE = "BACKWARD_STRATEGIES_INSTALL"


def is_asked_for() -> bool:
    """Whether the environment variable `BACKWARD_STRATEGIES_INSTALL` is 1.

    Example:
        >>> is_asked_for()
        False
    """
    return os.environ.get(VARIABLE) == "1"


def load() -> None:
    """Import `strategies`, which installs its operators then, where that is asked for.

    Example:
        >>> load()
    """
    if (value := os.environ.get(VARIABLE, "")) not in ("", "0", "1"):
        warnings.warn(f"{VARIABLE}={value} is ignored; 1 installs operators", stacklevel=2)
    if is_asked_for():
        # What imports PyTorch may be that package itself, which then installs them at its own end.
        import strategies  # noqa: F401
