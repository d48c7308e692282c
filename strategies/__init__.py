"""Backward passes of linear algebra by interchangeable strategies.

    from strategies import linalg
    X = linalg.lstsq(A, B, strategy="triangular_solve").solution

`available()` names the strategies, `get(name)` is one of them, `Strategy` is what a new one derives
from, and `linalg` is `torch.linalg` with the argument `strategy=`. `factor` makes one factorization serve
many uses. `explain` says what "auto" stands for, and `warmup` builds what makes calls on small matrices
faster. `replace_torch` lets a program that calls torch's functions use "auto", and `install` lets PyTorch's
own operators do so, whoever calls them. `backward-strategies calibrate` measures what "auto" is on a
machine.
"""

import importlib.metadata

from strategies import linalg
from strategies.autograd.explanation import explain
from strategies.errors import StrategyNotFoundError, UnsupportedError
from strategies.factorization.choice import factor
from strategies.factorization.factor import Factor
from strategies.factors.pseudo_inverse import PseudoInverse, Structure
from strategies.integration.installation import install, install_if_asked, is_installed, uninstall
from strategies.integration.recording import record
from strategies.integration.replacement import (
    is_replaced,
    load_ipython_extension,
    replace_torch,
    unload_ipython_extension,
)
from strategies.kernels.extension import warmup
from strategies.policy import use
from strategies.registry import available, get
from strategies.strategy import Saved, Strategy

__version__ = importlib.metadata.version("backward-strategies")

__all__ = [
    "Factor",
    "PseudoInverse",
    "Saved",
    "Strategy",
    "StrategyNotFoundError",
    "Structure",
    "UnsupportedError",
    "available",
    "explain",
    "factor",
    "get",
    "install",
    "is_installed",
    "is_replaced",
    "linalg",
    "load_ipython_extension",
    "record",
    "replace_torch",
    "uninstall",
    "unload_ipython_extension",
    "use",
    "warmup",
]

install_if_asked()
