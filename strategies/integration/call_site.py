"""Where in a program a call is: the innermost frame that is neither PyTorch's nor this package's."""

from types import FrameType

_OWN = __name__.partition(".")[0]


def is_own(frame: FrameType | None) -> bool:
    """Whether code of this package runs in a frame."""
    return frame is not None and _package(frame) == _OWN


def call_site(frame: FrameType | None) -> tuple[str, int]:
    """File and line of the program that a call in this frame comes from; "" and 0 if there is none."""
    while frame is not None and _package(frame) in (_OWN, "torch"):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _package(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name.partition(".")[0] if isinstance(name, str) else ""
