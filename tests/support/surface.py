"""Write down the public surface: names and signatures, as ``docs/public.md`` lists them.

``python -m tests.support.surface`` writes ``tests/data/public_surface.txt`` anew.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path

from pytest_fairness.pytest_layer import hookspecs
from pytest_fairness.pytest_layer.markers import descriptions
from pytest_fairness.pytest_layer.options import OPTIONS

RECORD = Path(__file__).parents[1] / "data" / "public_surface.txt"
PAGE = Path(__file__).parents[2] / "docs" / "public.md"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def parameters(thing: object) -> str:
    """Names, kinds and defaults of parameters; annotations, which Python versions print each in
    their own way, are left out.
    """
    try:
        signature = inspect.signature(thing)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return _ADDRESS.sub("", text)


def members(thing: type) -> Iterator[str]:
    """The public members that a class itself has, those of an enumeration with their values."""
    for name, member in sorted(vars(thing).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, Enum):
            yield f"{name} = {member.value!r}"
        elif isinstance(member, property):
            yield name
        elif inspect.isfunction(member) or isinstance(member, (classmethod, staticmethod)):
            yield f"{name}{parameters(getattr(thing, name))}"
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            if not field.name.startswith("_"):
                yield f"{field.name}: field"


def surface() -> str:
    """A line for each public name, and for each member of a public class."""
    lines = []
    modules = re.findall(r"^### `(pytest_fairness[\w.]*)`$", PAGE.read_text(encoding="utf-8"), re.M)
    for module in modules:
        lines.append(f"[{module}]")
        for name in sorted(import_module(module).__all__):
            thing = getattr(import_module(module), name)
            if isinstance(thing, type):
                shown = "" if issubclass(thing, (Enum, BaseException)) else parameters(thing)
                lines.append(f"class {name}{shown}")
                lines += [f"  {name}.{member}" for member in members(thing)]
            else:
                lines.append(f"{name}{parameters(thing)}")
        lines.append("")
    lines += ["[markers]", *(text.partition(":")[0] for text in descriptions()), ""]
    lines.append("[hooks]")
    hooks = [name for name in vars(hookspecs) if name.startswith("pytest_fairness_")]
    lines += [f"{name}{parameters(getattr(hookspecs, name))}" for name in sorted(hooks)]
    lines += ["", "[options]"]
    lines += sorted(f"{option.flag or '-'} {option.ini or '-'}" for option in OPTIONS)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    RECORD.write_text(surface(), encoding="utf-8", newline="\n")
