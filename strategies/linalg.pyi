# What type checkers and editors see of linalg.py, which takes its names from the modules of
# strategies.operations. tests/test_linalg.py holds this file to them.
from typing import Any

from strategies.operations.cholesky import *
from strategies.operations.cholesky_factor import *
from strategies.operations.composed import *
from strategies.operations.det import *
from strategies.operations.eig import *
from strategies.operations.inv import *
from strategies.operations.lstsq import *
from strategies.operations.lu import *
from strategies.operations.lu_solve import *
from strategies.operations.pinv import *
from strategies.operations.qr import *
from strategies.operations.solve import *
from strategies.operations.solve_triangular import *

def __getattr__(name: str) -> Any: ...  # torch.linalg's
