"""Looks at what `make bench` left behind: all there, and all sane."""

import json
import math
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

OPERATIONS = {"det", "inv", "lstsq", "lu_factor", "pinv", "solve"}
PNG = b"\x89PNG\r\n\x1a\n"


def problems() -> list[str]:
    """Every fault found, in words."""
    recommendation = Path("out/recommendation.json")
    if not recommendation.is_file():
        return [f"{recommendation} is missing"]
    cells = json.loads(recommendation.read_text())["cells"]
    found = [fault for cell in cells for fault in _faults_of_cell(cell)]
    silent = OPERATIONS - {cell["operation"] for cell in cells if cell["chosen"]}
    found += [f"nothing is recommended for {operation}" for operation in sorted(silent)]
    found += _faults_of_figures(Path("out/figures"))
    found += _faults_of_dashboard(Path(".asv/html"))
    return found


def _faults_of_cell(cell: dict) -> list[str]:
    name = f"{cell['operation']} {cell['m']}x{cell['n']}"
    if not cell["chosen"]:
        return [f"{name}: nothing chosen"]
    faults = []
    for row in cell["strategies"]:
        if row["strategy"] != cell["chosen"]:
            continue
        worst = 1e-3 if cell["dtype"] in ("float32", "complex64") else 1e-9
        measured = {name: row[name] for name in ("error", "peak_bytes")}
        measured |= {name: row[name][0] for name in ("backward", "forward_backward")}
        limits = {"error": worst, "peak_bytes": 1e9, "backward": 60, "forward_backward": 60}
        for quantity, value in measured.items():
            limit = limits[quantity]
            if value is None or not math.isfinite(value) or not 0 < value < limit:
                faults.append(f"{name}: {cell['chosen']} has {quantity} {value}")
    return faults


def _faults_of_figures(folder: Path) -> list[str]:
    faults = []
    for stem in ("speedup_heatmap", "error_against_conditioning"):
        png, svg = folder / f"{stem}.png", folder / f"{stem}.svg"
        if not png.is_file() or png.stat().st_size < 5000 or png.read_bytes()[:8] != PNG:
            faults.append(f"{png} is no picture")
        # A drawn series is a path or a use of one.
        if not svg.is_file() or sum(1 for _ in ET.parse(svg).iter()) < 100:  # noqa: S314 own file
            faults.append(f"{svg} is no drawing")
    return faults


def _faults_of_dashboard(folder: Path) -> list[str]:
    index = folder / "index.json"
    if not index.is_file() or not (folder / "index.html").is_file():
        return [f"{folder} holds no dashboard"]
    page = (folder / "index.html").read_text()
    if "defaults-display" not in page or 'src="http' in page:
        return ["the dashboard lacks the page Defaults, or needs the internet"]
    names = [f"{operation}.Single.time_backward" for operation in sorted(OPERATIONS)]
    published = json.loads(index.read_text())["benchmarks"]
    return [
        f"the dashboard lacks {name}"
        for name in names
        if name not in published or not _has_points(folder / f"graphs/summary/{name}.json")
    ]


def _has_points(graph: Path) -> bool:
    return graph.is_file() and any(value for _, value in json.loads(graph.read_text()))


if __name__ == "__main__":
    faults = problems()
    print("\n".join(faults) or "outputs: recommendation, figures and dashboard are there and sane")
    sys.exit(bool(faults))
