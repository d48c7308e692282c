"""Imports of the package point one way, and importing it stays light."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import strategies

ROOT = Path(strategies.__file__).parent


def name_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in ROOT.rglob("*.py")}


def is_for_types(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imported_by(path):
    """The modules of the package that one imports when it is imported itself."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if is_for_types(node):
            continue
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)


def test_no_module_imports_itself_by_way_of_others():
    graph = {
        name: {other for other in imported_by(path) if other != name}
        for name, path in MODULES.items()
    }
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) >= len(MODULES)


def test_what_takes_long_to_import_waits_until_it_is_needed():
    heavy = ("torch._dynamo", "scipy", "pandas", "matplotlib", "asv", "flint", "typer")
    code = f"""
import sys, torch
before = set(sys.modules)
import strategies
print(*(name for name in {heavy} if name in set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
