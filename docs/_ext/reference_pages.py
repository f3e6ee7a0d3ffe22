"""Pages of the reference, made from the code: what is documented is what is there.

Each function returns a page as Markdown. Only ``api`` leaves work to Sphinx, whose autodoc reads
the docstrings.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness import cli, plugin
from pytest_fairness.analysis.frameworks import frameworks
from pytest_fairness.pytest_layer import hookspecs, markers
from pytest_fairness.pytest_layer.options import OPTIONS, Option
from pytest_fairness.reports.framework_page import DISCLAIMER

DOCS = Path(__file__).parents[1]
#: The pages that say what the arguments of a marker mean.
_ARGUMENTS = {"fairness_grid": ("grids",), "fairness_pairs": ("designs", "grids")}


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown."""
    titles = list(head)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(text: object) -> str:
    return " ".join(str(text).replace("|", r"\|").split())


def _code(text: object) -> str:
    return f"`{text}`"


# ---------------------------------------------------------------- options


def options() -> str:
    """Every option of the command line and every ini value, each under a heading to link to."""
    lines = [
        "# Options and ini values",
        "",
        "An option is typed after `pytest`. An ini value stands in the table `[tool.pytest]` of "
        "`pyproject.toml` or in `pytest.ini`, or is set for one session with `-o`. Where both are "
        "given, the command line wins. [Runs and reports](../runs.md#options) says what paths are "
        "relative to.",
        "",
        "## Command line",
        "",
    ]
    for option in OPTIONS:
        if option.flag is not None:
            lines += _described(option)
    lines += ["## Ini values without an option", ""]
    for option in OPTIONS:
        if option.flag is None:
            lines += _described(option)
    return "\n".join(lines)


def _described(option: Option) -> list[str]:
    """The section of *option* under its name."""
    return [
        f"### `{option.flag or option.ini}`",
        "",
        _sentence(_text(option.help)),
        "",
        _facts(option),
        "",
    ]


def _facts(option: Option) -> str:
    """What *option* takes, what holds without it, and where else it is set."""
    value = "none"
    if option.read is not bool:
        value = _code(option.field.upper())
    facts = [f"Value: {value}", f"default: {_default(option)}"]
    if option.where == "approval":
        facts += ["the command line alone: the session ends with an error where a file sets it"]
    elif option.where == "typed":
        facts += ["the command line alone"]
    elif option.flag is not None:
        facts += [f"ini value: `{option.ini}`"]
    return "; ".join(facts) + "."


def _default(option: Option) -> str:
    if isinstance(option.default, bool):
        return "off"
    if option.default in (None, ""):
        return "none"
    return _code(option.default)


# ---------------------------------------------------------------- commands


def commands() -> str:
    """Every command of ``pytest-fairness``, with its arguments."""
    whole = cli.parser()
    (subparsers,) = (
        action for action in whole._actions if isinstance(action, argparse._SubParsersAction)
    )
    lines = ["# Commands of `pytest-fairness`", "", str(whole.description), ""]
    lines += ["[Commands](../commands.md) shows them at work.", ""]
    for purpose, names in cli.COMMANDS.items():
        lines += [f"## {purpose.capitalize()}", ""]
        for name in names:
            lines += _command(f"pytest-fairness {name}", subparsers.choices[name])
    return "\n".join(lines)


def _command(name: str, parser: argparse.ArgumentParser) -> list[str]:
    """The section of one command, and of those below it."""
    lines = [f"### `{name}`", "", _text(parser.description or ""), ""]
    rows = []
    below: Mapping[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = action.choices
        elif action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
            rows.append((_spelling(action), _text((action.help or "") % _filling(action, parser))))
    if rows:
        lines += [table(("argument", "meaning"), rows)]
    example = getattr(parser, "example", "")
    if example:
        lines += ["```sh", *(line.strip() for line in example.splitlines()), "```", ""]
    for child, child_parser in below.items():
        lines += _command(f"{name} {child}", child_parser)
    return lines


def _filling(action: argparse.Action, parser: argparse.ArgumentParser) -> dict[str, object]:
    return {**vars(action), "prog": parser.prog}


def _spelling(action: argparse.Action) -> str:
    metavar = action.metavar or action.dest.upper()
    if isinstance(metavar, tuple):
        metavar = " ".join(metavar)
    if action.choices is not None and action.metavar is None:
        metavar = "{" + ",".join(map(str, action.choices)) + "}"
    if not action.option_strings:
        return _code(metavar)
    if action.nargs == 0:
        return ", ".join(map(_code, action.option_strings))
    return ", ".join(_code(f"{spelling} {metavar}") for spelling in action.option_strings)


def _text(text: str) -> str:
    """*text* of ``--help`` as Markdown: what looks like markup stands for itself."""
    return re.sub(r"([\\`*_<>\[\]])", r"\\\1", text)


# ---------------------------------------------------------------- markers, fixtures, hooks


def marker_page() -> str:
    """Every marker, with its arguments."""
    lines = ["# Markers", ""]
    lines += ["Each marker is also a typed function of the same name in `pytest_fairness`.", ""]
    for description in markers.descriptions():
        name, _, rest = description.partition("(")
        about = rest.rpartition("): ")[2]
        lines += [f"## `@pytest.mark.{name}`", "", _sentence(about), ""]
        pages = _ARGUMENTS.get(name, ())
        meanings: dict[str, str] = {}
        for page in reversed(pages):
            meanings |= _meanings(page)
        rows = []
        for parameter in markers.signature_of(name).parameters.values():
            row = [_argument(parameter), _annotation(parameter), _standard(parameter)]
            if pages:
                row.append(meanings.get(parameter.name, "–"))
            rows.append(row)
        head = ["argument", "type", "default", "meaning"]
        lines += [table(head[: len(rows[0])], rows)]
        if pages:
            linked = ", ".join(f"[{_title(page)}](../{page}.md)" for page in pages)
            lines += [f"With examples: {linked}.", ""]
    return "\n".join(lines)


def _meanings(page: str) -> dict[str, str]:
    """What the table of arguments in *page* says of each, its links as seen from the reference."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    (rows,) = re.findall(
        r"^\| argument \| what it takes .*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE
    )
    said = {}
    for names, meaning in re.findall(r"^\| (.+?) \| (.+) \| .+? \|$", rows, re.MULTILINE):
        here = re.sub(r"\]\((?=#)", f"]({page}.md", meaning).removesuffix(": see below")
        for name in re.findall(r"`(\w+)`", names):
            said[name] = re.sub(r"\]\((?=\w+\.md)", "](../", here)
    return said


def _argument(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_KEYWORD:
        return "any other name"
    return _code(parameter.name)


def _annotation(parameter: inspect.Parameter) -> str:
    if parameter.annotation is parameter.empty:
        return "–"
    return _code(inspect.formatannotation(parameter.annotation).strip("'"))


def _standard(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_KEYWORD:
        return "–"
    if parameter.default is parameter.empty:
        return "required"
    return _code(repr(parameter.default))


def _title(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def fixture_page() -> str:
    """Every fixture, with its scope."""
    lines = ["# Fixtures", ""]
    for name in plugin.__all__:
        definition = getattr(plugin, name)
        function = definition._get_wrapped_function()
        scope = definition._fixture_function_marker.scope
        returned = inspect.formatannotation(inspect.signature(function).return_annotation)
        lines += [f"## `{name}`", "", f"Scope: {scope}. Type: `{returned.strip(chr(39))}`.", ""]
        lines += [_docstring(function), ""]
    return "\n".join(lines)


def hook_page() -> str:
    """Every hook that a ``conftest.py`` or a plugin can implement."""
    lines = ["# Hooks", "", "A `conftest.py` or a plugin implements them.", ""]
    for name, function in vars(hookspecs).items():
        if name.startswith("pytest_fairness_"):
            lines += [f"## `{name}`", "", "```python", _header(name, function), "```", ""]
            lines += [_docstring(function), ""]
    return "\n".join(lines)


def _header(name: str, function: types.FunctionType) -> str:
    signature = inspect.signature(function)
    parameters = [
        f"{parameter.name}: {str(parameter.annotation).strip(chr(39))}"
        for parameter in signature.parameters.values()
    ]
    returned = str(signature.return_annotation).strip("'")
    return f"def {name}({', '.join(parameters)}) -> {returned}: ..."


def _docstring(function: Callable[..., object]) -> str:
    """The docstring of *function* as Markdown: ``::`` begins code, double backquotes are single."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    return "\n\n".join(_paragraphs(paragraphs))


def _paragraphs(paragraphs: Iterable[str]) -> Iterator[str]:
    code: list[str] = []
    for paragraph in paragraphs:
        if paragraph.startswith("    "):
            code.append(paragraph)
            continue
        if code:
            yield _fenced(code)
            code = []
        words = re.sub(r":\w+(?::\w+)?:`~?([^`]*)`", r"`\1`", paragraph)
        yield words.replace("``", "`").replace("::", ":")
    if code:
        yield _fenced(code)


def _fenced(paragraphs: list[str]) -> str:
    return "```python\n" + inspect.cleandoc("\n" + "\n\n".join(paragraphs)) + "\n```"


# ---------------------------------------------------------------- exit codes


def exit_codes() -> str:
    """What the exit codes mean: the tables of two pages, checked against pytest and the commands."""
    session, command = _codes("runs"), _codes("commands")
    names = {int(code): code.name for code in pytest.ExitCode}
    if not session.keys() <= names.keys():
        raise ValueError(f"docs/runs.md explains {list(session)}, pytest has {list(names)}")
    for code in names.keys() - session.keys():
        session[code] = "as pytest documents it"
    stated = [int(code) for code in re.findall(r"\d", cli._CODES)]
    if list(command) != stated:
        raise ValueError(f"docs/commands.md explains {list(command)}, the commands have {stated}")
    return "\n".join(
        [
            "# Exit codes",
            "",
            "## `pytest`",
            "",
            table(
                ("code", "name", "when"),
                ((code, _code(names[code]), when) for code, when in sorted(session.items())),
            ),
            "## `pytest-fairness`",
            "",
            table(("code", "when"), command.items()),
        ]
    )


def _codes(page: str) -> dict[int, str]:
    """The first table of exit codes in *page*."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    (rows,) = re.findall(r"^\| code \| when \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return {
        int(code): when for code, when in re.findall(r"^\| (\d) \| (.*) \|$", rows, re.MULTILINE)
    }


# ---------------------------------------------------------------- laws and standards


def framework_page() -> str:
    """Every clause that ``audit --framework`` knows, with where it was read, and when: the links are
    checked with those of the other pages.
    """
    lines = ["# Laws and standards", "", DISCLAIMER, ""]
    lines += [
        "`pytest-fairness audit --framework NAME` sets a run against one of them "
        "([Evidence for an auditor](../audit.md)).",
        "",
    ]
    head = ("clause", "in our words", "answered by", "strength", "read")
    for name, framework in frameworks().items():
        rule = f"[{framework.rule}]({framework.source})"
        lines += [f"## `{name}`", ""]
        lines += [f"{rule}, read on {framework.checked_on}. Applies: {framework.applies}.", ""]
        rows = []
        for clause in framework.lines:
            read = f"[{clause.checked_on}]({clause.source})"
            rows.append((clause.clause, clause.title, clause.artefact, clause.strength, read))
        lines += [table(head, rows)]
    return "\n".join(lines)


# ---------------------------------------------------------------- findings.json


def findings_schema() -> str:
    """Every member of ``findings.json``, from its schema."""
    text = (files("pytest_fairness.reports") / "findings.schema.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    lines = ["# The schema of findings.json", "", str(schema["description"]), ""]
    lines += ["[findings.json](../findings.md) has an example, and how versions change.", ""]
    lines += ["## The document", "", _members(schema)]
    for name, definition in schema["$defs"].items():
        lines += [f"## {name}", ""]
        if "description" in definition:
            lines += [_text(definition["description"]), ""]
        if "properties" in definition:
            lines += [_members(definition)]
        else:
            lines += [f"{_sentence(_kind(definition))}", ""]
    return "\n".join(lines)


def _members(definition: Mapping[str, Any], prefix: str = "") -> str:
    rows = list(_member_rows(definition, prefix))
    return table(("member", "type", "always there", "meaning"), rows)


def _member_rows(definition: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, ...]]:
    required = definition.get("required", ())
    for name, member in definition.get("properties", {}).items():
        there = "no"
        if name in required:
            there = "yes"
        yield (
            _code(prefix + name),
            _kind(member),
            there,
            _text(member.get("description", "")) or "–",
        )
        for inner, mark in ((member, "."), (member.get("items", {}), "[].")):
            yield from _member_rows(inner, f"{prefix}{name}{mark}")


def _kind(definition: Mapping[str, Any]) -> str:
    """The type of a value, in words."""
    if "$ref" in definition:
        name = definition["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in definition:
        return _code(json.dumps(definition["const"]))
    if "enum" in definition:
        return ", ".join(_code(json.dumps(value)) for value in definition["enum"])
    for key in ("anyOf", "oneOf"):
        if key in definition:
            return " or ".join(map(_kind, definition[key]))
    kinds = definition.get("type", "any")
    if isinstance(kinds, list):
        kinds = " or ".join(kinds)
    if "items" in definition:
        return f"{kinds} of {_kind(definition['items'])}"
    others = definition.get("additionalProperties")
    if isinstance(others, dict):
        return f"{kinds} of {_kind(others)}"
    return str(kinds)


# ---------------------------------------------------------------- the public API


def public_names() -> dict[str, dict[str, str]]:
    """What ``docs/public.md`` lists: module → name → what it is."""
    text = (DOCS / "public.md").read_text(encoding="utf-8")
    listed = {}
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        module = section.partition("\n")[0].strip("`")
        if module.startswith("pytest_fairness"):
            listed[module] = dict(re.findall(r"^- `(\w+)`: (.+)$", section, flags=re.MULTILINE))
    return listed


def api_page(module: str, names: Mapping[str, str]) -> str:
    """The public names of *module*, documented by autodoc."""
    lines = [
        f"# {module}",
        "",
        f"[What is public](../public.md) lists these {len(names)} names.",
        "",
    ]
    there = import_module(module)
    for name, about in names.items():
        lines += [f"## {name}", "", _sentence(about), ""]
        if about.startswith("the same as "):
            continue
        lines += [
            "```{eval-rst}",
            *_directive(f"{module}.{name}", getattr(there, name), about),
            "```",
            "",
        ]
    return "\n".join(lines)


def _directive(path: str, value: object, about: str) -> list[str]:
    """How autodoc documents *value*; of a class the members that *about* calls public, or all."""
    if isinstance(value, type):
        public = re.findall(r"`(\w+)", about.partition("public are ")[2])
        members = f"   :members: {', '.join(public)}".rstrip()
        return [f".. autoclass:: {path}", members, "   :undoc-members:"]
    if inspect.isfunction(value):
        return [f".. autofunction:: {path}"]
    if isinstance(value, str | int | float | bool):
        return [f".. autodata:: {path}"]
    return [f".. py:data:: {path}", f"   :type: {_type(value)}"]


def _type(value: object) -> str:
    kind = type(value).__name__
    if kind in ("_UnionGenericAlias", "UnionType", "_GenericAlias"):
        return re.sub(r"\bpytest_fairness\.[\w.]*\.", "", str(value))
    return kind


# ---------------------------------------------------------------- all of them


def pages() -> dict[str, str]:
    """Every page of the reference: its name and its text, in the order in which they are listed."""
    made = {
        "options": options(),
        "commands": commands(),
        "markers": marker_page(),
        "fixtures": fixture_page(),
        "hooks": hook_page(),
        "exit_codes": exit_codes(),
        "findings_schema": findings_schema(),
        "frameworks": framework_page(),
    }
    for module, names in public_names().items():
        made["api_" + module.replace(".", "_")] = api_page(module, names)
    return made
