"""What a release would say of itself."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_place_names_the_same_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    latest = re.search(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited
    assert latest
    assert cited[1] == latest[1] == version
