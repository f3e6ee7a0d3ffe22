"""Measure how dense the source is: branches, expressions and long lines, per room.

``python -m tests.support.density [PATH …]`` prints the figures of each room, and of each function over the limits.
Needs radon and complexipy, which the extra ``dev`` brings.
"""

from __future__ import annotations

import ast
import io
import keyword
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import complexipy
from radon.complexity import cc_visit_ast

SOURCE = Path(__file__).parents[2] / "src" / "pytest_fairness"
#: Columns of a line, cognitive complexity and cyclomatic complexity of a function.
COLUMNS, COGNITIVE, CYCLOMATIC = 100, 15, 10
#: Names that stand for want of a noun.
GESTURES = ("one", "found", "own", "known")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Density:
    """Figures of one file, or of the files of a room."""

    lines: int = 0
    long_lines: int = 0
    functions: int = 0
    function_lines: int = 0
    cyclomatic: int = 0
    conditionals: int = 0
    comprehensions: int = 0
    names: int = 0
    gestures: Counter[str] = field(default_factory=Counter)
    #: ``path:line name`` of each function over COGNITIVE, with its cognitive complexity.
    cognitive: dict[str, int] = field(default_factory=dict)
    #: The same over CYCLOMATIC, expressions counted.
    branching: dict[str, int] = field(default_factory=dict)
    #: ``path:line`` of each statement that hides a branch, with what it does.
    hidden: dict[str, str] = field(default_factory=dict)

    def add(self, other: Density) -> None:
        """Add the figures of *other*."""
        for name in ("lines", "long_lines", "functions", "function_lines", "cyclomatic"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("conditionals", "comprehensions", "names"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.gestures += other.gestures
        self.cognitive |= other.cognitive
        self.branching |= other.branching
        self.hidden |= other.hidden

    def per_hundred(self, count: int) -> float:
        """*count* for each hundred non-blank lines."""
        return 100 * count / max(self.lines, 1)

    @property
    def complexity(self) -> float:
        """Cyclomatic complexity for each hundred lines of functions and methods."""
        return 100 * self.cyclomatic / max(self.function_lines, 1)

    @property
    def gestures_per_thousand(self) -> float:
        """Uses of the GESTURES for each thousand identifiers."""
        return 1000 * self.gestures.total() / max(self.names, 1)


def measure(path: Path) -> Density:
    """Return the figures of one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    where = path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else path
    return measured(text, tree, list(ast.walk(tree)), list(names_in(text)), where)


def measured(
    text: str, tree: ast.Module, nodes: list[ast.AST], names: list[str], where: Path
) -> Density:
    """Return the figures of a file with this *text*, the *nodes* of its *tree*, and *names*."""
    density = Density()
    lines = [line for line in text.splitlines() if line.strip()]
    density.lines = len(lines)
    density.long_lines = sum(len(line) > COLUMNS for line in lines)
    _count_complexity(density, text, tree, where)
    for node in nodes:
        density.conditionals += isinstance(node, ast.IfExp)
        density.comprehensions += isinstance(node, COMPREHENSIONS)
    hidden = hidden_branches(nodes, density.conditionals)
    density.hidden = {f"{where}:{line}": what for line, what in hidden}
    words = [name for name in names if not keyword.iskeyword(name)]
    density.names = len(words)
    density.gestures = Counter(name for name in words if name in GESTURES)
    return density


def _count_complexity(density: Density, text: str, tree: ast.Module, where: Path) -> None:
    for block in cc_visit_ast(tree):
        for function in (block, *getattr(block, "closures", ())):
            if function.letter == "C":  # the methods of a class come by themselves
                continue
            density.functions += 1
            density.function_lines += function.endline - function.lineno + 1
            density.cyclomatic += function.complexity
            if function.complexity > CYCLOMATIC:
                density.branching[f"{where}:{function.lineno} {function.name}"] = (
                    function.complexity
                )
    for function in complexipy.code_complexity(text).functions:
        if function.complexity > COGNITIVE:
            density.cognitive[f"{where}:{function.line_start} {function.name}"] = (
                function.complexity
            )


def names_in(text: str) -> Iterator[str]:
    """Yield the identifiers and keywords of the code of *text*."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.string


def hidden_branches(nodes: list[ast.AST], conditionals: int) -> Iterator[tuple[int, str]]:
    """Yield line and kind of what rule 10 of the house forbids, of the *nodes* of a file with so
    many *conditionals*.
    """
    for node in nodes:
        if isinstance(node, ast.IfExp) and any(
            isinstance(inner, ast.IfExp) for inner in ast.walk(node) if inner is not node
        ):
            yield node.lineno, "a conditional inside a conditional"
        if (
            isinstance(node, COMPREHENSIONS)
            and len(node.generators) > 1
            and any(generator.ifs for generator in node.generators)
        ):
            yield node.lineno, "a comprehension with two for and an if"
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and _is_text_by_condition(node)
        ):
            yield node.lineno, "a text or list times a condition"
        if conditionals > 2 and isinstance(node, ast.stmt) and _conditionals_of(node) > 2:
            yield node.lineno, "three conditionals in a statement"


def _is_text_by_condition(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    texts = [side for side in sides if _is_text_or_list(side)]
    conditions = [side for side in sides if isinstance(side, (ast.Compare, ast.BoolOp))]
    conditions += [
        side for side in sides if isinstance(side, ast.UnaryOp) and isinstance(side.op, ast.Not)
    ]
    conditions += [side for side in sides if isinstance(side, ast.Call) and _called(side) == "bool"]
    return bool(texts and conditions)


def _is_text_or_list(node: ast.AST) -> bool:
    if isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple)):
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _conditionals_of(statement: ast.stmt) -> int:
    """Count the conditional expressions of *statement* itself, not those of statements inside it."""
    count = 0
    nodes: list[ast.AST] = list(ast.iter_child_nodes(statement))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.stmt):
            continue
        count += isinstance(node, ast.IfExp)
        nodes += ast.iter_child_nodes(node)
    return count


def rooms(files: Mapping[str, Density]) -> dict[str, Density]:
    """Return the figures of each room, ``root`` being the files of the package itself, and of
    ``all``, of those of the *files* by their paths below the package.
    """
    figures: defaultdict[str, Density] = defaultdict(Density)
    for path, density in files.items():
        room, below, _ = path.partition("/")
        figures[room if below else "root"].add(density)
        figures["all"].add(density)
    return dict(figures)


def _print(title: str, density: Density) -> None:
    print(  # noqa: T201
        f"{title:16} lines {density.lines:6}  cc/100 {density.complexity:5.1f}"
        f"  cognitive >15 {len(density.cognitive):3}  >20 {sum(n > 20 for n in density.cognitive.values()):3}"
        f"  cond {density.per_hundred(density.conditionals):4.2f}"
        f"  comp {density.per_hundred(density.comprehensions):4.2f}"
        f"  >100 {density.per_hundred(density.long_lines):5.2f} %"
        f"  gestures {density.gestures_per_thousand:5.2f}  hidden {len(density.hidden):3}"
    )


def main(arguments: list[str]) -> None:
    """Print the figures of *arguments* (files and folders), or of all rooms."""
    if not arguments:
        paths = sorted(SOURCE.rglob("*.py"))
        files = {path.relative_to(SOURCE).as_posix(): measure(path) for path in paths}
        for name, density in rooms(files).items():
            _print(name, density)
        return
    total = Density()
    for argument in arguments:
        path = Path(argument).resolve()
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            density = measure(file)
            total.add(density)
            _print(str(file.relative_to(SOURCE))[-40:], density)
    _print("sum", total)
    for place, number in sorted(total.cognitive.items(), key=lambda item: -item[1]):
        print("cognitive", number, place)  # noqa: T201
    for place, number in sorted(total.branching.items(), key=lambda item: -item[1]):
        print("cyclomatic", number, place)  # noqa: T201
    for place, what in total.hidden.items():
        print(place, what)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
