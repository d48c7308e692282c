"""Imports of the package point one way, those within functions too, and importing it stays light."""

import ast
import graphlib
from pathlib import Path

import strategies
from tests.process import run_python

ROOT = Path(strategies.__file__).parent


def name_of(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in ROOT.rglob("*.py")}


def imports(node):
    """The imports in a part of a file, but for those that type checkers alone see."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    for inner in ast.iter_child_nodes(node):
        yield from imports(inner)


def imported_by(path):
    """The modules of the package that one imports, sooner or later."""
    for node in imports(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_few_modules_lie_outside_of_the_folders():
    assert len(list(ROOT.glob("*.py"))) <= 6


def test_what_takes_long_waits_until_it_is_needed():
    """Heavy imports, and the file of a policy, which the first "auto" reads."""
    heavy = ("torch._dynamo", "scipy", "pandas", "matplotlib", "asv", "flint", "typer")
    code = f"""
import sys, torch
before = set(sys.modules)
import strategies
print(*(name for name in {heavy} if name in set(sys.modules) - before))
from strategies import policy
assert policy._shipped.cache_info().currsize == 0
strategies.linalg.inv(torch.eye(2))
assert policy._shipped.cache_info().currsize == 1
"""
    assert run_python(code).stdout.split() == []
