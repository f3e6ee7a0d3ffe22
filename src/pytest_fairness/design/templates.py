"""Prompt text with slots. What is not a slot is sent byte for byte.

A slot is a plain name in braces, ``{name}``, and nothing else: no attributes, no indices, no conversions, no
format specifications, because a template is data, perhaps a stranger's. All slots are filled in one
pass, so a value is never read again, whatever it looks like. Every other brace, as in JSON, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pytest_fairness.design.slugs import is_slug, slug
from pytest_fairness.documents import read_text
from pytest_fairness.errors import UsageError

_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
# What str.format would have understood, and what people write when they expect a template language.
_CLEVER = re.compile(
    r"\{[A-Za-z0-9_]*\s*(?:\.[A-Za-z_]|\[|![rsa]\b|:)[^{}\n]*\}|\{\s+[A-Za-z_]\w*\s*\}|\{[A-Za-z_]\w*\s+\}"
)
_DOUBLED = re.compile(r"\{\{[A-Za-z_][A-Za-z0-9_]*\}\}")
MAX_CHARACTERS = 1_000_000

TemplateLike: TypeAlias = "str | Path | Template"


def base_slot(slot: str) -> str | None:
    """``role`` for ``a_role`` and ``A_role``: the slot that an article stands before."""
    return slot[2:] if slot[:2] in ("a_", "A_") and len(slot) > 2 else None


@dataclass(frozen=True, slots=True)
class Filled:
    """A prompt with its slots filled; ``spans`` are (slot, start, end) of each value in ``text``, in
    order."""

    text: str
    spans: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with slots. ``id`` is the name of the statistical block; ``slots`` are in order of
    appearance."""

    id: str
    text: str
    slots: tuple[str, ...] = field(init=False)
    plain_slots: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not is_slug(self.id):
            raise UsageError(f"template id {self.id!r}: use 1 to 80 of the characters a-z 0-9 _ . - (not . or - first)")
        slots = _parse(self.text, f"template {self.id!r}")
        object.__setattr__(self, "slots", slots)
        object.__setattr__(self, "plain_slots", frozenset(slots) | {b for b in map(base_slot, slots) if b})

    def fill(self, values: Mapping[str, str], first: Mapping[str, str] | None = None) -> Filled:
        """The text with every slot filled from *values*; *first* overrides a slot's first appearance.

        Values are inserted as they are and never read again. Raises UsageError for a slot without a value.
        """
        pending = dict(first or {})
        pieces: list[str] = []
        spans: list[tuple[str, int, int]] = []
        read = written = 0
        for match in _SLOT.finditer(self.text):
            slot = match[1]
            value = pending.pop(slot) if slot in pending else values.get(slot)
            if value is None:
                raise UsageError(f"template {self.id!r}: no value for the slot {{{slot}}}")
            literal = self.text[read : match.start()]
            start = written + len(literal)
            written = start + len(value)
            pieces += (literal, value)
            spans.append((slot, start, written))
            read = match.end()
        pieces.append(self.text[read:])
        return Filled("".join(pieces), tuple(spans))

    def render(self, values: Mapping[str, str]) -> str:
        """The text with every slot filled from *values*. Raises UsageError for a slot without a value."""
        return self.fill(values).text


def _parse(text: str, where: str) -> tuple[str, ...]:
    if not text.strip():
        raise UsageError(f"{where} is empty")
    if len(text) > MAX_CHARACTERS:
        raise UsageError(f"{where} is longer than {MAX_CHARACTERS:,} characters")
    for position, character in enumerate(text):
        if character == "\x00" or "\ud800" <= character <= "\udfff":
            raise UsageError(f"{where}, line {_line(text, position)}: holds {character!r}, which cannot be sent")
    clever = _CLEVER.search(text)
    if clever:
        raise UsageError(
            f"{where}, line {_line(text, clever.start())}: {clever[0]!r} is not a slot. A slot is a plain name in "
            "braces, such as {name}: no spaces, attributes, indices, conversions or format specifications"
        )
    doubled = _DOUBLED.search(text)
    if doubled:
        raise UsageError(
            f"{where}, line {_line(text, doubled.start())}: {doubled[0]!r} could be a slot or literal braces; "
            f"write {doubled[0][1:-1]!r} for the slot"
        )
    return tuple(dict.fromkeys(_SLOT.findall(text)))


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def read_template(path: Path, id: str | None = None) -> Template:  # noqa: A002 - the field's name
    """The template in the UTF-8 file *path*, newlines kept; its id is *id* or the slug of the file's stem."""
    text = read_text(path, max_bytes=4 * MAX_CHARACTERS, encoding="utf-8")
    return Template(id or slug(path.stem), text)


def templates(
    source: TemplateLike | Iterable[TemplateLike] | Mapping[str, str | Path],
) -> tuple[Template, ...]:
    """Templates from a text, a path, a Template, a list of those, or a mapping from ids to texts or paths.

    A text is called ``t1``, ``t2`` … by its place in the list. Raises UsageError for none at all, for two
    with one id, for two with one text, and for whatever a single template is refused for.
    """
    if isinstance(source, Mapping):
        made = tuple(_template(item, id_, id_, f"template {id_!r}") for id_, item in source.items())
    else:
        items = [source] if isinstance(source, (str, Path, Template)) else list(source)
        made = tuple(_template(item, f"t{n}", None, f"template number {n}") for n, item in enumerate(items, start=1))
    if not made:
        raise UsageError("template: the list is empty; give at least one prompt text")
    ids: set[str] = set()
    texts: dict[str, str] = {}
    for template in made:
        if template.id in ids:
            raise UsageError(
                f"two templates are called {template.id!r}; give each its own id: "
                "template={'first': ..., 'second': ...}"
            )
        if template.text in texts:
            raise UsageError(f"the templates {texts[template.text]!r} and {template.id!r} are the same text; keep one")
        ids.add(template.id)
        texts[template.text] = template.id
    return made


def _template(item: object, of_text: str, of_path: str | None, where: str) -> Template:
    if isinstance(item, Path):
        return read_template(item, of_path)
    if isinstance(item, str):
        return Template(of_text, item)
    if isinstance(item, Template) and of_path is None:
        return item
    raise UsageError(f"{where} is {type(item).__name__}; give a text, a Path or a Template")
