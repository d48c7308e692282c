"""asv's page without the internet: its scripts and styles from installed packages.

asv 0.6 links to ten files on public hosts. Seven of them, or a later version that works as well, come
with packages on PyPI; the other three are small enough for `assets/stand_ins.js`, which does what asv
uses them for.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ASSETS = Path(__file__).parent / "assets"

PACKAGES = {
    "jquery": "js.jquery",
    "jquery.flot": "js.jquery_flot",
    "jquery.flot.time": "js.jquery_flot",
    "jquery.flot.selection": "js.jquery_flot",
    "jquery.flot.categories": "js.jquery_flot",
    "bootstrap": "js.bootstrap",
}
"""The distribution that a remote script or style is in."""

STAND_INS = ("jquery.flot.orderBars", "stupidtable", "md5")
"""What `assets/stand_ins.js` replaces."""

_REMOTE = re.compile(
    r'[ \t]*<(?P<tag>script|link)[^>]*(?:src|href)="https?://[^"]*/(?P<file>[^"/]+\.(?P<kind>js|css))"'
    r"[^>]*>(?:</script>)?\n"
)


def localize(folder: Path) -> None:
    """Copies what the page in `folder` loads from elsewhere beside it, and links to the copies.

    Raises:
        LookupError: the page loads something that no known package holds, or one is not installed.
    """
    vendor = folder / "vendor"
    vendor.mkdir(exist_ok=True)
    index = folder / "index.html"

    def local(match: re.Match[str]) -> str:
        stem = _stem(match["file"])
        if stem in STAND_INS:
            return ""
        source = _installed(stem, match["kind"])
        shutil.copy(source, vendor / source.name)
        return _tag(f"vendor/{source.name}")

    page = _REMOTE.sub(local, index.read_text(encoding="utf-8"))
    # asv's own scripts use the stand-ins, which use jQuery and flot.
    before, own, after = page.partition('    <script language="javascript"')
    shutil.copy(ASSETS / "stand_ins.js", folder)
    index.write_text(before + _tag("stand_ins.js") + own + after, encoding="utf-8")


def _tag(file: str) -> str:
    if file.endswith(".css"):
        return f'    <link rel="stylesheet" href="{file}">\n'
    return f'    <script src="{file}"></script>\n'


def _stem(name: str) -> str:
    """The library's name without version and suffixes.

    Example:
        >>> _stem("jquery-3.3.1.min.js"), _stem("jquery.flot.time.min.js")
        ('jquery', 'jquery.flot.time')
    """
    return re.sub(r"(-[\d.]+)?(\.min)?\.(js|css)$", "", name)


def _installed(stem: str, kind: str) -> Path:
    """The minified file of that library in the package that has it."""
    if stem not in PACKAGES:
        raise LookupError(f"no package is known that holds {stem}.{kind}")
    package = PACKAGES[stem]
    for path in _files(package):
        if path.name.endswith(f".min.{kind}") and _stem(path.name) == stem:
            return Path(str(importlib.metadata.distribution(package).locate_file(path)))
    raise LookupError(f"package {package} holds no {stem}.min.{kind}")


def _files(package: str) -> Iterator[PurePosixPath]:
    try:
        yield from importlib.metadata.files(package) or ()
    except importlib.metadata.PackageNotFoundError as error:
        raise LookupError(f"package {package} is missing; it comes with the extra bench") from error
