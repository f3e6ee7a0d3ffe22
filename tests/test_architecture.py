"""The house as ARCHITECTURE.md draws it: which way imports point, and who may import what."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import density, source_files
from tests.support.source_files import PACKAGE, SourceFile

#: Floors from the bottom up. A room imports from itself and from lower floors, never from its own
#: or above.
FLOORS = [
    {"model", "errors", "words"},
    {"documents", "running_test", "statistics", "trials_frame"},
    {"design", "scorers", "endpoints", "baselines"},
    {"runs", "analysis"},
    {"engine", "context", "reports", "testing"},
    {"asserts"},
    {"pytest_layer"},
    {"__init__"},
    {"plugin", "commands", "suites", "cli"},
]
#: A ratchet: how dense the source may be. Lower a figure when the source allows it; never raise one.
DENSITY = {
    "complexity": 29.6,  # cyclomatic, for each 100 lines of functions
    "complexity of a room": 35.0,
    "functions over cognitive 15": 1,
    "functions over cognitive 20": 0,
    "conditionals": 0.1,  # for each 100 non-blank lines
    "comprehensions": 2.49,
    "lines over 100 columns": 0.37,
    "gestures": 0.02,  # for each 1,000 identifiers
    "hidden branches": 0,
}
#: Places that write a share in percent by themselves: fewer, never more.
BY_HAND = 8
PYTEST_LAYER = {"pytest_layer", "plugin", "testing", "commands", "suites"}


Files = Mapping[str, SourceFile]


def module_of(path: str) -> str:
    """The name under which the file at *path*, below the package, is imported."""
    parts = ("pytest_fairness", *path.removesuffix(".py").split("/"))
    return ".".join(parts).removesuffix(".__init__")


@pytest.fixture(scope="module")
def modules(sources: Files) -> dict[str, SourceFile]:
    """The files by the names of the modules."""
    return {module_of(path): source for path, source in sources.items()}


@pytest.fixture(scope="module")
def imports(modules: Files) -> dict[str, set[str]]:
    """What each module imports, lazily and for a type checker included; of this package, the
    modules themselves.
    """
    return {module: imported(module, modules) for module in modules}


def imported(module: str, modules: Files) -> set[str]:
    names = set()
    for _, source, name in modules[module].imports:
        full = f"{source}.{name}"
        names.add(full if full in modules else source)
    return names - {module}


def room(module: str) -> str:
    """The folder or file below the package that *module* is or is in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def floor(name: str) -> int:
    return next(height for height, rooms in enumerate(FLOORS) if name in rooms)


def test_imports_point_down(imports: dict[str, set[str]]) -> None:
    """No room reaches up or beside itself; a room may use itself."""
    assert not [
        f"{module} imports {other}"
        for module, others in imports.items()
        for other in others
        if other in imports
        and room(other) != room(module)
        and floor(room(other)) >= floor(room(module))
    ]


def test_no_module_imports_itself_by_way_of_others(imports: dict[str, set[str]]) -> None:
    """Strike out what imports nothing that is left, until nothing is left: a circle would be."""
    left = {module: others & imports.keys() for module, others in imports.items()}
    while free := [module for module, others in left.items() if not others & left.keys()]:
        for module in free:
            del left[module]
    assert not left


def test_the_root_holds_a_dozen_files() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 12


def test_no_name_stands_for_two_classes(sources: Files) -> None:
    """Nor for two modules, but for a command, which is named for what it runs."""
    classes = Counter(name for source in sources.values() for name in source.classes)
    assert not [name for name, uses in classes.items() if uses > 1]
    fixed = ("__init__.py", "conftest.py")  # names that Python and pytest give
    files = (
        path
        for path in map(Path, sources)
        if path.name not in fixed and path.parent.name != "commands"
    )
    stems = Counter(path.stem for path in files)
    assert not [stem for stem, uses in stems.items() if uses > 1]


def test_only_the_pytest_layer_imports_pytest(imports: dict[str, set[str]]) -> None:
    assert not [
        module
        for module, others in imports.items()
        if room(module) not in PYTEST_LAYER
        if any(other.split(".")[0] in ("pytest", "_pytest") for other in others)
    ]


def test_only_statistics_imports_scipy_and_statsmodels(imports: dict[str, set[str]]) -> None:
    assert not [
        module
        for module, others in imports.items()
        if room(module) != "statistics"
        if any(other.split(".")[0] in ("scipy", "statsmodels") for other in others)
    ]


def test_nothing_imports_the_plugin(imports: dict[str, set[str]]) -> None:
    assert not [module for module, others in imports.items() if "pytest_fairness.plugin" in others]


def test_every_room_stands_on_a_floor(modules: Files) -> None:
    assert {room(module) for module in modules} <= set().union(*FLOORS)


def test_hooks_are_short() -> None:
    """``plugin.py`` reads like a table of contents: no function of more than ten lines."""
    tree = ast.parse((PACKAGE / "plugin.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 10, node.name


def test_no_test_asserts_how_long_something_takes() -> None:
    """A machine may be busy: speed is measured in benchmarks/. A test may wait for something, up to
    a limit.
    """
    clocks = r"time\.(?:monotonic|perf_counter|process_time|thread_time|time)\(\)"
    asserted = re.compile(rf"^\s*assert .*{clocks} - \w+ <", re.MULTILINE)
    found = [
        path.name
        for path in Path(__file__).parent.rglob("*.py")
        if asserted.search(path.read_text("utf-8"))
    ]
    assert found == []


def test_the_source_is_no_denser_than_it_was(sources: Files) -> None:
    """A branch is a statement, a variable a noun; ``python -m tests.support.density`` has places."""
    figures = density.rooms({path: file.density for path, file in sources.items()})
    source = figures.pop("all")
    reached = {
        "complexity": source.complexity,
        "complexity of a room": max(room.complexity for room in figures.values()),
        "functions over cognitive 15": len(source.cognitive),
        "functions over cognitive 20": sum(number > 20 for number in source.cognitive.values()),
        "conditionals": source.per_hundred(source.conditionals),
        "comprehensions": source.per_hundred(source.comprehensions),
        "lines over 100 columns": source.per_hundred(source.long_lines),
        "gestures": source.gestures_per_thousand,
        "hidden branches": len(source.hidden),
    }
    over = {name: round(figure, 2) for name, figure in reached.items() if figure > DENSITY[name]}
    assert not over


def test_numbers_and_lists_become_words_in_one_place(sources: Files) -> None:
    """``words.py`` alone writes shares, plurals and lists."""
    texts = {path: source.text for path, source in sources.items() if path != "words.py"}
    twin = re.compile(
        r"^def (?:percent|points|p_value|count|listed|enumerated|signed)\(", re.MULTILINE
    )
    assert not [path for path, text in texts.items() if twin.search(text)]
    plural = re.compile(r"""['"]s['"] \* |\* ['"]s['"]""")
    assert not [path for path, text in texts.items() if plural.search(text)]
    by_hand = re.compile(r"\{(?:\d+ \+ )?100 \* ")
    assert sum(len(by_hand.findall(text)) for text in texts.values()) <= BY_HAND


def chosen_verdicts(source: str) -> list[str]:
    return source_files.chosen_verdicts(list(ast.walk(ast.parse(source))))


#: Where a verdict is a value outside ``analysis/``, and how often at most.
_CHOSEN_ELSEWHERE = {
    "model.py": 2,  # the verdicts that are alarms
    "reports/finding_sections.py": 1,  # the colour of a block that raised an alarm
}


def test_verdicts_are_chosen_in_the_analysis_alone(sources: Files) -> None:
    """Others compare them, count them and show them. ``docs/decisions/0211``."""
    assert not {
        path: source.verdicts
        for path, source in sources.items()
        if not path.startswith("analysis/")
        if len(source.verdicts) > _CHOSEN_ELSEWHERE.get(path, 0)
    }


def test_what_chooses_a_verdict_is_recognised() -> None:
    """Assigned, returned, handed over, in a table or in a branch; not what is compared or shown."""
    chosen = """
verdict = Verdict.PASS
verdicts = (Verdict.FLAG, other)
call(Verdict.FLAG)
call(verdict=Verdict.FAIL if few else None)
table = {"few": Verdict.FAIL}
def judge(): return "words", Verdict.PASS
verdict = model.Verdict.PASS
"""
    assert len(chosen_verdicts(chosen)) == 7
    compared = """
if finding.verdict is Verdict.FLAG or verdict in (Verdict.PASS, Verdict.FAIL): pass
colours = {Verdict.PASS: "green"}
counts[Verdict.PASS] += 1
order = Verdict.FAIL.severity
worst = Verdict.worst(verdicts)
words = "passed" if verdict is Verdict.PASS else "failed"
"""
    assert chosen_verdicts(compared) == []


#: Where a finding is made without an analysis: read from JSON.
_OTHER_FINDINGS = {"model.py"}


def test_findings_are_built_in_the_analysis_alone(sources: Files) -> None:
    """Suites ask, read and count; ``analysis/`` judges."""
    builders = {
        path
        for path, source in sources.items()
        if any(name.endswith("Finding") for name in source.called)
    }
    assert {path for path in builders if not path.startswith("analysis/")} <= _OTHER_FINDINGS
    assert [path for path in builders if path.startswith("analysis/")]


#: Words that name nothing: what a thing holds names it.
GESTURES = {"aside", "barred", "book", "guest", "leave_sign", "plainly", "rung", "stamp", "way"}


def is_gesture(name: str) -> bool:
    """Return whether *name* is one of :data:`GESTURES`: in the plural, private, or as a class, too."""
    word = name.strip("_").lower()
    return word in GESTURES or word.removesuffix("s") in GESTURES


def test_no_name_is_a_gesture(sources: Files) -> None:
    """Nor that of a module, or of a function by what it stands beside."""
    assert not [
        f"{path}: {name}"
        for path, source in sources.items()
        for name in (Path(path).stem, *source.names)
        if is_gesture(name)
    ]
    functions = {name for source in sources.values() for name in source.functions}
    assert not {"beside", "_beside"} & functions


#: Docstrings that begin so, at most: the sentences of four tests in suites.
BEGIN_WITH_A_QUESTION = 4


def test_docstrings_begin_with_what_is_done_or_returned(sources: Files) -> None:
    """A ratchet: lower the number when the source allows it; never raise it."""
    lines = {path: source.questions for path, source in sources.items() if source.questions}
    assert sum(map(len, lines.values())) <= BEGIN_WITH_A_QUESTION, lines


def test_a_docstring_that_begins_with_a_question_is_recognised() -> None:
    source = '''
"""What a module has."""
class Kind:
    """The kind: what it is."""
    async def kind(self):
        """Whether it is one."""
    def kinds(self):
        """Return what there is."""
        def whose(): "Who\'s asked."
'''
    questions = source_files.questions(list(ast.walk(ast.parse(source))))
    assert questions == ["What a module has.", "Whether it is one.", "Who's asked."]


def table_of_rooms() -> list[tuple[list[str], list[str]]]:
    """Each row of ARCHITECTURE.md's table: the rooms, and what it names as files to know."""
    rows = []
    for line in (PACKAGE.parents[1] / "ARCHITECTURE.md").read_text("utf-8").splitlines():
        cells = [re.findall("`([^`]+)`", cell) for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0]:
            rows.append((cells[0], cells[2]))
    return rows


def files_of(rooms: list[str]) -> list[Path]:
    """The files of *rooms* as the table has them: ``model.py``, ``design/``."""
    files: list[Path] = []
    for name in rooms:
        path = PACKAGE / name
        files += path.rglob("*") if name.endswith("/") else [path]
    return files


def names_in(rooms: list[str], sources: Files) -> set[str]:
    """All that the table may name of *rooms*: files, folders, modules, classes, functions."""
    names = set()
    for path in files_of(rooms):
        if path.is_dir():
            names.add(f"{path.name}/")
        elif path.suffix == ".py":
            definitions = sources[path.relative_to(PACKAGE).as_posix()].definitions
            names |= {path.name, path.stem, *definitions}
            names |= {f"{path.stem}.{name}" for name in definitions}
        else:
            names.add(path.name)
    return names


def test_the_table_names_what_is_there(sources: Files) -> None:
    """An option of the command line is no file."""
    table = table_of_rooms()
    assert len(table) > 10
    assert not [
        (rooms, name)
        for rooms, named in table
        for name in sorted(set(named) - names_in(rooms, sources))
        if not name.startswith("--")
    ]


def test_every_room_stands_in_the_table() -> None:
    """Every folder of the package, and every file beside them."""
    folders = {f"{path.parent.name}/" for path in PACKAGE.glob("*/*.py")}
    files = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}
    named = [name for rooms, _ in table_of_rooms() for name in rooms]
    assert sorted(named) == sorted(folders | files)
