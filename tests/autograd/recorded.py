"""Which operators are computed, and of which tensors."""

from torch.utils._python_dispatch import TorchDispatchMode


class Recorded(TorchDispatchMode):
    """Names and tensors of the operators that are computed below all transforms."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, tuple]] = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.calls.append((function.overloadpacket.__name__, arguments))
        return function(*arguments, **options or {})

    def count(self, name: str) -> int:
        return [each for each, _ in self.calls].count(name)
