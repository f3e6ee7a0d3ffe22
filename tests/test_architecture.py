"""The house as ARCHITECTURE.md draws it: which way imports point, and who may import what."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

from tests.support import density

PACKAGE = Path(__file__).parents[1] / "src" / "pytest_fairness"

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


MODULES = {
    ".".join(("pytest_fairness", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
        ".__init__"
    ): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def room(module: str) -> str:
    """The folder or file below the package that *module* is or is in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def floor(name: str) -> int:
    return next(height for height, rooms in enumerate(FLOORS) if name in rooms)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(module: str) -> set[str]:
    """What *module* imports, lazily and for a type checker included; of this package, the modules
    themselves.
    """
    found = set()
    for node in ast.walk(tree_of(MODULES[module])):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(name if name in MODULES else node.module for name in names)
    return found - {module}


def test_imports_point_down() -> None:
    """No room reaches up or beside itself; a room may use itself."""
    assert not [
        f"{module} imports {other}"
        for module in MODULES
        for other in imports(module)
        if other in MODULES
        and room(other) != room(module)
        and floor(room(other)) >= floor(room(module))
    ]


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Strike out what imports nothing that is left, until nothing is left: a circle would be."""
    left = {module: imports(module) & MODULES.keys() for module in MODULES}
    while free := [module for module, others in left.items() if not others & left.keys()]:
        for module in free:
            del left[module]
    assert not left


def test_the_root_holds_a_dozen_files() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 12


def test_no_name_stands_for_two_classes() -> None:
    """Nor for two modules, but for a command, which is named for what it runs."""
    trees = map(tree_of, MODULES.values())
    classes = Counter(
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    assert not [name for name, uses in classes.items() if uses > 1]
    fixed = ("__init__.py", "conftest.py")  # names that Python and pytest give
    files = (
        path
        for path in MODULES.values()
        if path.name not in fixed and path.parent.name != "commands"
    )
    stems = Counter(path.stem for path in files)
    assert not [stem for stem, uses in stems.items() if uses > 1]


def test_only_the_pytest_layer_imports_pytest() -> None:
    others = (module for module in MODULES if room(module) not in PYTEST_LAYER)
    assert not [
        one for one in others for m in imports(one) if m.split(".")[0] in ("pytest", "_pytest")
    ]


def test_only_statistics_imports_scipy_and_statsmodels() -> None:
    others = (module for module in MODULES if room(module) != "statistics")
    assert not [
        one for one in others for m in imports(one) if m.split(".")[0] in ("scipy", "statsmodels")
    ]


def test_nothing_imports_the_plugin() -> None:
    assert not [module for module in MODULES if "pytest_fairness.plugin" in imports(module)]


def test_every_room_stands_on_a_floor() -> None:
    assert {room(module) for module in MODULES} <= set().union(*FLOORS)


def test_hooks_are_short() -> None:
    """``plugin.py`` reads like a table of contents: no function of more than ten lines."""
    tree = tree_of(PACKAGE / "plugin.py")
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


def test_the_source_is_no_denser_than_it_was() -> None:
    """A branch is a statement, a variable a noun; ``python -m tests.support.density`` has places."""
    figures = density.rooms()
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


def test_numbers_and_lists_become_words_in_one_place() -> None:
    """``words.py`` alone writes shares, plurals and lists."""
    sources = {
        name: path.read_text(encoding="utf-8")
        for name, path in MODULES.items()
        if name != "pytest_fairness.words"
    }
    twin = re.compile(
        r"^def (?:percent|points|p_value|count|listed|enumerated|signed)\(", re.MULTILINE
    )
    assert not [name for name, text in sources.items() if twin.search(text)]
    plural = re.compile(r"""['"]s['"] \* |\* ['"]s['"]""")
    assert not [name for name, text in sources.items() if plural.search(text)]
    by_hand = re.compile(r"\{(?:\d+ \+ )?100 \* ")
    assert sum(len(by_hand.findall(text)) for text in sources.values()) <= BY_HAND


def is_choice(verdict: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether the member *verdict* is somebody's value; else it is compared with, is the key
    of a table, or its own properties are read.
    """
    node = verdict
    while True:
        parent = parents[node]
        if isinstance(parent, (ast.Compare, ast.MatchValue, ast.Attribute)):
            return False
        if isinstance(parent, ast.Subscript) and parent.slice is node:
            return False
        if isinstance(parent, ast.Dict) and node in parent.keys:
            return False
        if isinstance(parent, ast.IfExp) and parent.test is node:
            return False
        if isinstance(parent, (ast.stmt, ast.Call, ast.keyword, ast.Dict)):
            return True
        node = parent


def chosen_verdicts(source: str) -> list[str]:
    """``line: Verdict.NAME`` of each verdict that *source* gives to something or somebody."""
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    chosen = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = ast.unparse(node.value).removeprefix("model.")
        if owner == "Verdict" and node.attr.isupper() and is_choice(node, parents):
            chosen.append(f"{node.lineno}: Verdict.{node.attr}")
    return chosen


#: Where a verdict is a value outside ``analysis/``, and how often at most.
_CHOSEN_ELSEWHERE = {
    "model.py": 2,  # the verdicts that are alarms
    "reports/finding_sections.py": 1,  # the colour of a block that raised an alarm
}


def test_verdicts_are_chosen_in_the_analysis_alone() -> None:
    """Others compare them, count them and show them. ``docs/decisions/0211``."""
    chosen = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("analysis/"):
            chosen[name] = chosen_verdicts(path.read_text(encoding="utf-8"))
    assert not {
        name: places
        for name, places in chosen.items()
        if len(places) > _CHOSEN_ELSEWHERE.get(name, 0)
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


def called(node: ast.Call) -> str:
    """Return the last name of what is called; nothing where that has none."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def test_findings_are_built_in_the_analysis_alone() -> None:
    """Suites ask, read and count; ``analysis/`` judges."""
    builders = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and called(node).endswith("Finding"):
                builders.add(name)
    assert {name for name in builders if not name.startswith("analysis/")} <= _OTHER_FINDINGS


#: Words that name nothing: what a thing holds names it.
GESTURES = {"aside", "barred", "book", "guest", "leave_sign", "plainly", "rung", "stamp", "way"}


def identifiers(path: Path) -> set[str]:
    """The names that the code of *path* uses, not its comments and texts."""
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    return {token.string for token in tokens if token.type == tokenize.NAME}


def is_gesture(name: str) -> bool:
    """Return whether *name* is one of :data:`GESTURES`: in the plural, private, or as a class, too."""
    word = name.strip("_").lower()
    return word in GESTURES or word.removesuffix("s") in GESTURES


def test_no_name_is_a_gesture() -> None:
    """Nor that of a module, or of a function by what it stands beside."""
    assert not [
        f"{module}: {name}"
        for module, path in MODULES.items()
        for name in (path.stem, *identifiers(path))
        if is_gesture(name)
    ]
    functions = {
        node.name
        for path in MODULES.values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    assert not {"beside", "_beside"} & functions


#: First words of a docstring that say neither what is done nor what is returned.
QUESTIONS = {"What", "Whether", "How", "Where", "Who", "Whose", "Which", "When", "That"}
#: Docstrings that begin so, at most: the sentences of four tests in suites.
BEGIN_WITH_A_QUESTION = 4


def questions(source: str) -> list[str]:
    """The first line of each docstring in *source* that begins with one of :data:`QUESTIONS`."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented):
            line = (ast.get_docstring(node) or "").partition("\n")[0]
            if re.split(r"\W", line, maxsplit=1)[0] in QUESTIONS:
                lines.append(line)
    return lines


def test_docstrings_begin_with_what_is_done_or_returned() -> None:
    """A ratchet: lower the number when the source allows it; never raise it."""
    begun = {name: questions(path.read_text("utf-8")) for name, path in MODULES.items()}
    found = {name: lines for name, lines in begun.items() if lines}
    assert sum(map(len, found.values())) <= BEGIN_WITH_A_QUESTION, found


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
    assert questions(source) == ["What a module has.", "Whether it is one.", "Who's asked."]


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


def definitions(path: Path) -> set[str]:
    """Classes and functions of the module at *path*, by themselves and behind its name."""
    tree = tree_of(path)
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = {node.name for node in tree.body if isinstance(node, kinds)}
    return names | {f"{path.stem}.{name}" for name in names}


def names_in(rooms: list[str]) -> set[str]:
    """All that the table may name of *rooms*: files, folders, modules, classes, functions."""
    names = set()
    for path in files_of(rooms):
        if path.is_dir():
            names.add(f"{path.name}/")
        elif path.suffix == ".py":
            names |= {path.name, path.stem, *definitions(path)}
        else:
            names.add(path.name)
    return names


def test_the_table_names_what_is_there() -> None:
    """An option of the command line is no file."""
    table = table_of_rooms()
    assert len(table) > 10
    assert not [
        (rooms, name)
        for rooms, named in table
        for name in sorted(set(named) - names_in(rooms))
        if not name.startswith("--")
    ]


def test_every_room_stands_in_the_table() -> None:
    """Every folder of the package, and every file beside them."""
    folders = {f"{path.parent.name}/" for path in PACKAGE.glob("*/*.py")}
    files = {path.name for path in PACKAGE.glob("*.py")} - {"__init__.py"}
    named = [name for rooms, _ in table_of_rooms() for name in rooms]
    assert sorted(named) == sorted(folders | files)
