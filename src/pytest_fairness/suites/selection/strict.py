"""Reading frozen dataclasses back from JSON, strictly: a key too many or a wrong type is an error with its place."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pytest_fairness.errors import FairnessError

T = TypeVar("T")
_INFINITE = ("Infinity", "-Infinity")


def decode(kind: type[T], data: object, where: str) -> T:
    """*data* as an instance of the dataclass *kind*; *where* begins every message.

    Raises FairnessError naming the place for what has another shape, a key that is missing or unknown, a value of
    another type, or a word that its enumeration does not know.
    """
    if not isinstance(data, Mapping):
        raise FairnessError(f"{where}: expected an object, found {_told(data)}")
    shape: Any = kind
    known = _fields(shape)
    unknown = sorted(set(data) - set(known))
    if unknown:
        raise FairnessError(f"{where}: unknown key {unknown[0]!r}; it was written by another version, or by hand")
    missing = next((name for name, (_, needed) in known.items() if needed and name not in data), None)
    if missing is not None:
        raise FairnessError(f"{where}: the key {missing!r} is missing")
    return kind(**{name: _value(known[name][0], value, f"{where}.{name}") for name, value in data.items()})


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    hints = get_type_hints(kind)
    return {
        field.name: (hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    }


def _value(hint: Any, value: Any, where: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        kinds = [one for one in inner if one is not type(None)]
        return None if value is None and len(kinds) < len(inner) else _value(kinds[0], value, where)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise FairnessError(f"{where}: expected a list, found {_told(value)}")
        return tuple(_value(inner[0], item, f"{where}[{at}]") for at, item in enumerate(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise FairnessError(f"{where}: expected an object, found {_told(value)}")
        return {str(key): _value(inner[1], item, f"{where}.{key}") for key, item in value.items()}
    if is_dataclass(hint) and isinstance(hint, type):
        return decode(hint, value, where)
    return _plain(hint, value, where)


def _plain(hint: Any, value: Any, where: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        if value not in list(hint):
            raise FairnessError(f"{where}: expected one of {', '.join(hint)}, found {_told(value)}")
        return hint(value)
    if hint is float:
        if value in _INFINITE or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return float(value)
        raise FairnessError(f"{where}: expected a number, found {_told(value)}")
    if hint in (str, bool, int):
        if isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
            return value
        raise FairnessError(f"{where}: expected {_NOUNS[hint]}, found {_told(value)}")
    raise TypeError(f"{where}: {hint!r} is no type that results are made of")


_NOUNS = {str: "a text", bool: "true or false", int: "a whole number"}


def _told(value: object) -> str:
    return f"{value!r:.60}"
