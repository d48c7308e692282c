import msgspec
import pytest
import torch

from strategies.measuring.machine import describe
from strategies.policy import validators


def test_they_say_what_a_result_file_says():
    here, machine = validators.here(), describe()
    assert (here.cpu, here.torch, here.blas) == (machine.cpu, machine.torch, machine.blas)
    assert all(msgspec.structs.asdict(here)[name] for name in ("cpu", "instruction_set", "package"))
    assert here.gpu == here.cuda == ""


@pytest.mark.parametrize("name", validators.Validators.__struct_fields__)
def test_each_of_them_is_compared_and_named(name):
    here = validators.here()
    other = msgspec.structs.replace(here, **{name: "another"})
    (told,) = other.differences(here)
    assert told.endswith(f"another, not {getattr(here, name) or 'none'}")
    assert here.differences(here) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there_is_an_error():
    with pytest.raises(RuntimeError, match="no CUDA device"):
        validators.here("cuda")
