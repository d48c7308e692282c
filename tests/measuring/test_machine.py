import torch

from strategies.measuring.machine import describe


def test_a_description_says_what_times_depend_on():
    machine = describe(("numpy",))
    assert machine.name
    assert machine.cpu
    assert machine.blas
    assert machine.torch == torch.__version__
    assert machine.threads == torch.get_num_threads()
    assert machine.instruction_set == torch.backends.cpu.get_cpu_capability()
    assert machine.load is machine.noise is None
    assert set(machine.libraries) == {"numpy"}
