# What type checkers and editors see of linalg.py, which takes its names from the records in
# strategies.operations. tests/test_linalg.py holds this file to them.
from typing import Any

from strategies.operations.aliases import inverse as inverse
from strategies.operations.aliases import pinverse as pinverse
from strategies.operations.cholesky import CholeskyExResult as CholeskyExResult
from strategies.operations.cholesky import cholesky as cholesky
from strategies.operations.cholesky import cholesky_ex as cholesky_ex
from strategies.operations.cholesky_inverse import cholesky_inverse as cholesky_inverse
from strategies.operations.cholesky_solve import cholesky_solve as cholesky_solve
from strategies.operations.composed import logdet as logdet
from strategies.operations.composed import matrix_power as matrix_power
from strategies.operations.composed import tensorinv as tensorinv
from strategies.operations.composed import tensorsolve as tensorsolve
from strategies.operations.det import SlogdetResult as SlogdetResult
from strategies.operations.det import det as det
from strategies.operations.det import slogdet as slogdet
from strategies.operations.eig import EigResult as EigResult
from strategies.operations.eig import eig as eig
from strategies.operations.inv import inv as inv
from strategies.operations.lstsq import LstsqResult as LstsqResult
from strategies.operations.lstsq import lstsq as lstsq
from strategies.operations.lu import LUFactorExResult as LUFactorExResult
from strategies.operations.lu import LUFactorResult as LUFactorResult
from strategies.operations.lu import LUResult as LUResult
from strategies.operations.lu import lu as lu
from strategies.operations.lu import lu_factor as lu_factor
from strategies.operations.lu import lu_factor_ex as lu_factor_ex
from strategies.operations.lu_solve import lu_solve as lu_solve
from strategies.operations.pinv import pinv as pinv
from strategies.operations.qr import QRResult as QRResult
from strategies.operations.qr import qr as qr
from strategies.operations.reporting import InvExResult as InvExResult
from strategies.operations.reporting import SolveExResult as SolveExResult
from strategies.operations.reporting import inv_ex as inv_ex
from strategies.operations.reporting import solve_ex as solve_ex
from strategies.operations.solve import solve as solve
from strategies.operations.solve_triangular import solve_triangular as solve_triangular

def __getattr__(name: str) -> Any: ...  # torch.linalg's
