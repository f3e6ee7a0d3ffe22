"""What tests ask about the source: each file of the package is read and parsed once a session."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import density
from tests.support.density import Density

PACKAGE = Path(__file__).parents[2] / "src" / "pytest_fairness"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)
#: First words of a docstring that say neither what is done nor what is returned.
QUESTIONS = {"What", "Whether", "How", "Where", "Who", "Whose", "Which", "When", "That"}


@dataclass
class SourceFile:
    """A file of the package: what it imports, defines, calls and says. No tree is kept."""

    text: str
    density: Density
    #: The identifiers of the code, not those of comments and texts.
    names: set[str]
    #: Line, module and name of each import; no name where the module itself is imported.
    imports: list[tuple[int, str, str]] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    #: Classes and functions that stand in no other.
    definitions: list[str] = field(default_factory=list)
    #: Last names of what is called.
    called: set[str] = field(default_factory=set)
    #: Calls of a method ``write_text`` or ``open``.
    files: list[ast.Call] = field(default_factory=list)
    #: Line and name of each attribute of ``os`` and ``signal``.
    of_system: list[tuple[int, str]] = field(default_factory=list)
    #: First lines of docstrings that begin with one of QUESTIONS.
    questions: list[str] = field(default_factory=list)
    #: ``line: Verdict.NAME`` of each verdict that is given to something or somebody.
    verdicts: list[str] = field(default_factory=list)


def source_files() -> dict[str, SourceFile]:
    """Return each file of the package by its path below it."""
    return {
        path.relative_to(PACKAGE).as_posix(): source_file(path)
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def source_file(path: Path) -> SourceFile:
    """Return what the file at *path* has."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    names = list(density.names_in(text))
    figures = density.measured(text, tree, nodes, names, path.relative_to(PACKAGE))
    file = SourceFile(text, figures, set(names))
    file.definitions = [node.name for node in tree.body if isinstance(node, DOCUMENTED[1:])]
    file.questions = questions(nodes)
    if "Verdict" in text:
        file.verdicts = chosen_verdicts(nodes)
    for node in nodes:
        _note(file, node)
    return file


def _note(file: SourceFile, node: ast.AST) -> None:
    """Note in *file* what *node* imports, defines or calls."""
    if isinstance(node, ast.Import):
        file.imports += [(node.lineno, alias.name, "") for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        file.imports += [(node.lineno, node.module, alias.name) for alias in node.names]
    elif isinstance(node, ast.ClassDef):
        file.classes.append(node.name)
    elif isinstance(node, FUNCTIONS):
        file.functions.append(node.name)
    elif isinstance(node, ast.Call):
        name = called(node)
        file.called.add(name)
        if name in ("write_text", "open") and isinstance(node.func, ast.Attribute):
            file.files.append(node)
    elif isinstance(node, ast.Attribute) and _is_system(node.value):
        file.of_system.append((node.lineno, node.attr))


def _is_system(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("os", "signal")


def called(node: ast.Call) -> str:
    """Return the last name of what is called; nothing where that has none."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def questions(nodes: list[ast.AST]) -> list[str]:
    """The first line of each docstring of *nodes* that begins with one of :data:`QUESTIONS`."""
    lines = []
    for node in nodes:
        if isinstance(node, DOCUMENTED):
            line = (ast.get_docstring(node, clean=False) or "").strip().partition("\n")[0]
            if re.split(r"\W", line, maxsplit=1)[0] in QUESTIONS:
                lines.append(line)
    return lines


def chosen_verdicts(nodes: list[ast.AST]) -> list[str]:
    """``line: Verdict.NAME`` of each verdict that *nodes*, of a whole file, give to something or
    somebody.
    """
    parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
    chosen = []
    for node in nodes:
        if not isinstance(node, ast.Attribute) or not node.attr.isupper():
            continue
        owner = ast.unparse(node.value).removeprefix("model.")
        if owner == "Verdict" and _is_choice(node, parents):
            chosen.append(f"{node.lineno}: Verdict.{node.attr}")
    return chosen


def _is_choice(verdict: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
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
