"""How results look: one file a figure, rows in, Figure out."""

import importlib.util

_MISSING = [each for each in ("matplotlib", "pandas") if importlib.util.find_spec(each) is None]
if _MISSING:
    raise SystemExit(
        f"error: figures need {' and '.join(_MISSING)}: pip install 'backward-strategies[bench]'"
    )
