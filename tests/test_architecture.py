"""The house as ARCHITECTURE.md draws it: which way imports point, and who may import what."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "pytest_fairness"

#: Floors from the bottom up. A room imports from itself and from lower floors, never from its own or above.
FLOORS = [
    {"model", "errors"},
    {"documents", "context", "statistics", "trials_frame"},
    {"design", "scorers"},
    {"endpoints"},
    {"runs"},
    {"engine"},
    {"analysis", "baselines"},
    {"reports"},
    {"asserts"},
    {"suites"},
    {"pytest_layer"},
    {"plugin", "testing", "commands"},
    {"cli"},
]
PYTEST_LAYER = {"pytest_layer", "plugin", "testing", "commands", "suites"}
#: Arrows that still run upwards, each with a reason to go.
UPWARDS: set[tuple[str, str]] = set()


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def floor(name: str) -> int:
    return next(height for height, rooms in enumerate(FLOORS) if name in rooms)


def imports(path: Path, *, runtime: bool) -> set[str]:
    """Modules that *path* imports; with *runtime*, without those that only a type checker sees."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    if runtime:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                skipped.update(child for statement in node.body for child in ast.walk(statement))
    found = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "pytest_fairness":
                # A public name that is no room comes from the assertions, which ready-made tests use like anybody's.
                rooms = (
                    (PACKAGE / alias.name).exists() or (PACKAGE / f"{alias.name}.py").exists() for alias in node.names
                )
                names = [alias.name if there else "asserts" for alias, there in zip(node.names, rooms, strict=True)]
                found.update(f"pytest_fairness.{name}" for name in names)
            else:
                found.add(node.module)
    return found


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


ROOMS = {path: path.relative_to(PACKAGE).with_suffix("").parts[0] for path in MODULES}


def test_imports_point_down() -> None:
    """No room reaches up or beside itself; a room may use itself."""
    wrong = set()
    for path, own in ROOMS.items():
        for module in imports(path, runtime=True):
            other = room(module) if module.startswith("pytest_fairness.") else own
            if other != own and floor(other) >= floor(own) and (own, other) not in UPWARDS:
                wrong.add(f"{path.relative_to(PACKAGE)} imports {module}")
    assert not wrong


def test_only_the_pytest_layer_imports_pytest() -> None:
    others = (path for path, own in ROOMS.items() if own not in PYTEST_LAYER)
    assert not [p for p in others for m in imports(p, runtime=True) if m.split(".")[0] in ("pytest", "_pytest")]


def test_only_statistics_imports_scipy_and_statsmodels() -> None:
    others = (path for path, own in ROOMS.items() if own != "statistics")
    assert not [p for p in others for m in imports(p, runtime=False) if m.split(".")[0] in ("scipy", "statsmodels")]


def test_nothing_imports_the_plugin() -> None:
    assert not [p for p in MODULES if "pytest_fairness.plugin" in imports(p, runtime=False)]


def test_every_room_stands_on_a_floor() -> None:
    assert set(ROOMS.values()) <= set().union(*FLOORS)


def test_hooks_are_short() -> None:
    """``plugin.py`` reads like a table of contents: no function of more than ten lines."""
    tree = ast.parse((PACKAGE / "plugin.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 10, node.name
