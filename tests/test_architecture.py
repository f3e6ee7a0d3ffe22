"""The house as ARCHITECTURE.md draws it: which way imports point, who may import what, how large a module gets."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "pytest_fairness"

#: Floors from the bottom up. A module imports from its own floor's room or from lower floors, never from above.
FLOORS = [
    {"model", "errors", "current", "safe_yaml", "steps"},
    {"design", "endpoints", "scorers", "statistics"},
    {"running", "verdict", "wording", "explaining"},
    {"baselines", "analysis", "frame", "justifications", "confirming", "across"},
    {"reports"},
    {"concluding"},
    {"asserts"},
    {
        "guest",
        "options",
        "settings",
        "hookspecs",
        "collecting",
        "planned",
        "asking",
        "repeating",
        "systems",
        "capabilities",
        "command",
        "contexts",
        "replacing",
        "earlier",
        "elsewhere",
        "estimating",
        "remarks",
        "announcing",
        "pulling",
        "continued",
        "telling",
        "transport",
        "ledger",
        "session",
        "fixtures",
        "bridges",
        "commands",
        "suites",
    },
    {"plugin", "testing", "cli"},
]
PYTEST_LAYER = FLOORS[-2] | FLOORS[-1]


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


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
class TestEveryModule:
    def test_its_imports_point_down(self, path: Path) -> None:
        """No module reaches up; a room may use itself."""
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        for module in imports(path, runtime=True):
            if module.startswith("pytest_fairness."):
                other = room(module)
                # The nouns at the bottom and the modules of the pytest layer know each other; rooms between do not.
                together = floor(other) == floor(own) and floor(own) in (0, len(FLOORS) - 2)
                assert other == own or floor(other) < floor(own) or together, f"not below {path.name}: {module}"

    def test_only_the_pytest_layer_imports_pytest(self, path: Path) -> None:
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if own not in PYTEST_LAYER:
            assert not {m for m in imports(path, runtime=True) if m.split(".")[0] in ("pytest", "_pytest")}

    def test_only_statistics_imports_scipy_and_statsmodels(self, path: Path) -> None:
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if own != "statistics":
            assert not {m for m in imports(path, runtime=False) if m.split(".")[0] in ("scipy", "statsmodels")}

    def test_nothing_imports_the_plugin(self, path: Path) -> None:
        assert "pytest_fairness.plugin" not in imports(path, runtime=False)

    def test_it_has_one_job(self, path: Path) -> None:
        """A module over 400 lines has more than one."""
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_every_room_stands_on_a_floor() -> None:
    rooms = {p.relative_to(PACKAGE).with_suffix("").parts[0] for p in MODULES}
    assert rooms <= set().union(*FLOORS)


def test_hooks_are_short() -> None:
    """``plugin.py`` reads like a table of contents: no function of more than ten lines."""
    tree = ast.parse((PACKAGE / "plugin.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 10, node.name
