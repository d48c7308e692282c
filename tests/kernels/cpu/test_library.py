"""Finding, loading and asking the library of kernels."""

import pytest
import torch

from strategies.kernels.cpu import library
from tests.process import run_python

USES_TORCH = """
import torch
from strategies import available, linalg
A = torch.eye(3, dtype=torch.float64).requires_grad_()
for strategy in available():
    for f in (lambda: linalg.lu_factor(A, strategy=strategy).LU, lambda: linalg.det(A, strategy=strategy),
              lambda: linalg.inv(A, strategy=strategy), lambda: linalg.pinv(A, strategy=strategy),
              lambda: linalg.solve(A, A, strategy=strategy),
              lambda: linalg.lstsq(A, A, strategy=strategy)[0]):
        assert torch.autograd.grad(f().sum(), A)[0].isfinite().all()
"""


def test_every_kernel_is_there_for_every_dtype():
    for name in library.names():
        for dtype in library.DTYPES:
            for rows in range(10):
                assert library.kernel(name, dtype, rows)


def test_an_unknown_name_is_said():
    with pytest.raises(LookupError, match=r"no 'cosine' for torch\.float32"):
        library.kernel("cosine", torch.float32)


@pytest.mark.skipif(
    library.native_file("kernels_generic.so") is None,
    reason="an editable installation has the library of this processor alone",
)
def test_a_processor_without_avx2_has_a_library_of_its_own():
    code = """
import torch
from strategies.kernels.cpu import library
print(library.path().name)
A = torch.randn(50, 6, 6, dtype=torch.float64).requires_grad_()
from strategies import linalg
X = linalg.inv(A, strategy="fused")
G = torch.randn_like(X)
(found,) = torch.autograd.grad(X, A, G)
torch.testing.assert_close(found, -X.mH @ G @ X.mH)
"""
    done = run_python(code, ATEN_CPU_CAPABILITY="default")
    assert done.stdout.startswith("kernels_generic.")


def test_without_a_library_operations_of_torch_are_used_and_it_is_said_once():
    hide = "from strategies.kernels.cpu import library; library.FOLDER = 'nowhere'\n"
    done = run_python(hide + USES_TORCH)
    assert done.stderr.count("there are no compiled kernels") == 1
    assert "C++ compiler" in done.stderr


def test_a_library_of_another_version_is_not_used():
    hide = "from strategies.kernels.cpu import library; library.INTERFACE_VERSION = 0\n"
    done = run_python(hide + "print(library.is_available())")
    assert done.stdout.strip() == "False"
    assert f"is of version {library.INTERFACE_VERSION}, not 0" in done.stderr
