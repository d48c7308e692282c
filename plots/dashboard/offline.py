"""asv's page without the internet: its scripts and styles from installed packages.

asv 0.6 links to ten files on public hosts. Seven of them, or a later version that works as well, come
with packages on PyPI; the other three are small enough for `assets/stand_ins.js`, which does what asv
uses them for.
"""

import importlib.metadata
import re
import shutil
from pathlib import Path

ASSETS = Path(__file__).parent / "assets"

PACKAGED = {
    "jquery.js": "js/jquery/resources/jquery-3.3.1.min.js",
    "bootstrap.js": "js/bootstrap/resources/js/bootstrap.min.js",
    "bootstrap.css": "js/bootstrap/resources/css/bootstrap.min.css",
    **{
        f"jquery.flot{part}.js": f"js/jquery_flot/resources/jquery.flot{part}.min.js"
        for part in ("", ".time", ".selection", ".categories")
    },
}
"""Where the packages js.jquery, js.bootstrap and js.jquery_flot have a remote script or style."""

STAND_INS = ("jquery.flot.orderBars.js", "stupidtable.js", "md5.js")
"""What `assets/stand_ins.js` replaces."""

_REMOTE = re.compile(
    r'[ \t]*<(?:script|link)[^>]*(?:src|href)="https?://[^"]*/([^"/]+\.(?:js|css))"'
    r"[^>]*>(?:</script>)?\n"
)


def localize(folder: Path) -> None:
    """Copies what the page in `folder` loads from elsewhere beside it, and links to the copies.

    LookupError if it loads something that no known package holds, or one is not installed.
    """
    vendor = folder / "vendor"
    vendor.mkdir(exist_ok=True)

    def local(match: re.Match[str]) -> str:
        # The library without version and suffixes: jquery.js of jquery-3.3.1.min.js.
        name = re.sub(r"(-[\d.]+)?(\.min)?(?=\.(js|css)$)", "", match[1], count=1)
        if name in STAND_INS:
            return ""
        if name not in PACKAGED:
            raise LookupError(f"no package is known that holds {name}")
        package = "js." + PACKAGED[name].split("/")[1]
        try:
            distribution = importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError:
            message = f"package {package} is missing; it comes with the extra bench"
            raise LookupError(message) from None
        source = Path(str(distribution.locate_file(PACKAGED[name])))
        shutil.copy(source, vendor)
        return _tag(f"vendor/{source.name}")

    index = folder / "index.html"
    page = _REMOTE.sub(local, index.read_text(encoding="utf-8"))
    # asv's own scripts use the stand-ins, which use jQuery and flot.
    before, own, after = page.partition('    <script language="javascript"')
    shutil.copy(ASSETS / "stand_ins.js", folder)
    index.write_text(before + _tag("stand_ins.js") + own + after, encoding="utf-8")


def _tag(file: str) -> str:
    if file.endswith(".css"):
        return f'    <link rel="stylesheet" href="{file}">\n'
    return f'    <script src="{file}"></script>\n'
