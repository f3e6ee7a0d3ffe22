"""Prompt text with slots. What is not a slot is sent byte for byte.

A slot is a plain name in braces, ``{name}``, and nothing else: no attributes, no indices, no conversions, no
format specifications, because a template is data, perhaps a stranger's. All slots are filled in one
pass, so a value is never read again, whatever it looks like. Every other brace, as in JSON, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pytest_fairness.design.slugs import is_slug, slug
from pytest_fairness.documents import read_text
from pytest_fairness.errors import UsageError

_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
UNSENDABLE = re.compile(r"[\x00\ud800-\udfff]")
_FAULTS = (
    (UNSENDABLE, "cannot be sent"),
    (  # what str.format would have understood, and what people write when they expect a template language
        re.compile(
            r"\{[A-Za-z0-9_]*\s*(?:\.[A-Za-z_]|\[|![rsa]\b|:)[^{}\n]*\}|\{\s+[A-Za-z_]\w*\s*\}|\{[A-Za-z_]\w*\s+\}"
        ),
        "is not a slot. A slot is a plain name in braces, such as {name}: no spaces, attributes, indices, conversions "
        "or format specifications",
    ),
    (
        re.compile(r"\{\{[A-Za-z_][A-Za-z0-9_]*\}\}"),
        "could be a slot or literal braces; for the slot write one brace on either side",
    ),
)
MAX_CHARACTERS = 1_000_000

TemplateLike: TypeAlias = "str | Path | Template"


def base_slot(slot: str) -> str | None:
    """``role`` for ``a_role`` and ``A_role``: the slot that an article stands before."""
    return slot[2:] if slot[:2] in ("a_", "A_") and len(slot) > 2 else None


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with slots. ``id`` is the name of the statistical block; ``slots`` are in order of appearance."""

    id: str
    text: str
    slots: tuple[str, ...] = field(init=False)
    plain_slots: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not is_slug(self.id):
            raise UsageError(f"template id {self.id!r}: use 1 to 80 of the characters a-z 0-9 _ . - (not . or - first)")
        if not self.text.strip():
            raise UsageError(f"template {self.id!r} is empty")
        if len(self.text) > MAX_CHARACTERS:
            raise UsageError(f"template {self.id!r} is longer than {MAX_CHARACTERS:,} characters")
        for pattern, why in _FAULTS:
            if match := pattern.search(self.text):
                line = self.text.count("\n", 0, match.start()) + 1
                raise UsageError(f"template {self.id!r}, line {line}: {match[0]!r} {why}")
        slots = tuple(dict.fromkeys(_SLOT.findall(self.text)))
        object.__setattr__(self, "slots", slots)
        object.__setattr__(self, "plain_slots", frozenset(slots) | {base for base in map(base_slot, slots) if base})

    def missing(self, known: Container[str]) -> str | None:
        """The first slot that no *known* one fills, by itself or with an article in front."""
        return next((slot for slot in self.slots if slot not in known and base_slot(slot) not in known), None)

    def fill(
        self, values: Mapping[str, str], first: Mapping[str, str] | None = None
    ) -> tuple[str, list[tuple[str, int, int]]]:
        """The text with every slot filled from *values*, and (slot, start, end) of each value in it, in order.

        *first* overrides a slot's first appearance. Values are inserted as they are and never read again. Raises
        UsageError for a slot without a value.
        """
        pending, spans, grown = dict(first or {}), list[tuple[str, int, int]](), 0

        def value(match: re.Match[str]) -> str:
            nonlocal grown
            text = pending.pop(match[1], values.get(match[1]))
            if text is None:
                raise UsageError(f"template {self.id!r}: no value for the slot {match[0]}")
            start = match.start() + grown
            spans.append((match[1], start, start + len(text)))
            grown += len(text) - len(match[0])
            return text

        return _SLOT.sub(value, self.text), spans

    def render(self, values: Mapping[str, str]) -> str:
        """The text with every slot filled from *values*. Raises UsageError for a slot without a value."""
        return self.fill(values)[0]


def read_template(path: Path, id: str | None = None) -> Template:  # noqa: A002 - the field's name
    """The template in the UTF-8 file *path*, newlines kept; its id is *id* or the slug of the file's stem."""
    text = read_text(path, max_bytes=4 * MAX_CHARACTERS, encoding="utf-8")
    return Template(id or slug(path.stem), text)


def templates(source: TemplateLike | Iterable[TemplateLike] | Mapping[str, str | Path]) -> tuple[Template, ...]:
    """Templates from a text, a path, a Template, a list of those, or a mapping from ids to texts or paths.

    A text is called ``t1``, ``t2`` … by its place in the list. Raises UsageError for none at all, for two
    with one id, for two with one text, and for whatever a single template is refused for.
    """
    if isinstance(source, Mapping):
        made = [_template(item, id_, id_, f"template {id_!r}") for id_, item in source.items()]
    else:
        items = [source] if isinstance(source, (str, Path, Template)) else source
        made = [_template(item, f"t{n}", None, f"template number {n}") for n, item in enumerate(items, start=1)]
    if not made:
        raise UsageError("template: the list is empty; give at least one prompt text")
    texts: dict[str, str] = {}
    for template in made:
        if template.id in texts.values():
            raise UsageError(
                f"two templates are called {template.id!r}; give each its own id: "
                "template={'first': ..., 'second': ...}"
            )
        if template.text in texts:
            raise UsageError(f"the templates {texts[template.text]!r} and {template.id!r} are the same text; keep one")
        texts[template.text] = template.id
    return tuple(made)


def _template(item: object, of_text: str, of_path: str | None, where: str) -> Template:
    if isinstance(item, Path):
        return read_template(item, of_path)
    if isinstance(item, str):
        return Template(of_text, item)
    if isinstance(item, Template) and of_path is None:
        return item
    raise UsageError(f"{where} is {type(item).__name__}; give a text, a Path or a Template")
