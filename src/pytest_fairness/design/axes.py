"""Context axes: what varies in a grid beside the groups, such as the role or the criteria."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pytest_fairness.design.pronouns import SLOTS, pronouns
from pytest_fairness.design.slugs import slugs
from pytest_fairness.errors import UsageError

PRONOUNS = "pronouns"
_LONG = 60


@dataclass(frozen=True, slots=True)
class Axis:
    """A context axis. ``labels`` stand in the table and in ids, ``texts`` in the prompt, in the same
    order."""

    name: str
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    slugs: tuple[str, ...]

    @property
    def slots(self) -> frozenset[str]:
        """The slots that this axis fills, articles aside."""
        return SLOTS | {self.name} if self.name == PRONOUNS else frozenset({self.name})

    def values(self, position: int) -> Mapping[str, str]:
        """What value number *position* puts into each of its slots."""
        text = self.texts[position]
        if self.name == PRONOUNS:
            return {**pronouns(text).values(), PRONOUNS: pronouns(text).label}
        return {self.name: text}


def axes(context: Mapping[str, object]) -> tuple[Axis, ...]:
    """The axes of *context*: each a list of values, or a mapping from a short label to a long text.

    Raises UsageError for a name that no slot could have or that a pronoun has, for an axis without values, a
    value that is not text or a number, and a value that stands twice.
    """
    return tuple(_axis(name, values) for name, values in context.items())


def _axis(name: str, values: object) -> Axis:
    if not name.isidentifier() or not name.isascii():
        raise UsageError(f"axis {name!r}: a slot's name is made of letters, digits and _")
    if name in SLOTS:
        raise UsageError(f"axis {name!r}: {{{name}}} is a pronoun slot; choose another name")
    if isinstance(values, Mapping):
        pairs = [(str(label), _text(name, text)) for label, text in values.items()]
    elif isinstance(values, (str, int, float)):
        pairs = [(_text(name, values), _text(name, values))]
    elif isinstance(values, (set, frozenset)):
        raise UsageError(f"axis {name!r}: a set has no order, so ids would change from run to run; give a list")
    elif isinstance(values, Iterable):
        pairs = [(text, text) for text in (_text(name, value) for value in values)]
    else:
        raise UsageError(f"axis {name!r}: give a list of values, not {type(values).__name__}")
    if not pairs:
        raise UsageError(f"axis {name!r} has no values; give at least one, or leave the axis out")
    labels = tuple(label for label, _ in pairs)
    texts = tuple(text for _, text in pairs)
    for kind, items in (("value", texts), ("label", labels)):
        twice = next((item for item in items if items.count(item) > 1), None)
        if twice is not None:
            raise UsageError(f"axis {name!r}: the {kind} {twice[:_LONG]!r} stands twice; keep one")
    by_label = slugs(labels)
    axis = Axis(name, labels, texts, tuple(by_label[label] for label in labels))
    if name == PRONOUNS:
        for position in range(len(texts)):
            axis.values(position)  # refuses pronouns that are not known, here rather than cell by cell
    return axis


def _text(axis: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UsageError(f"axis {axis!r}: {value!r} is {type(value).__name__}; give text or a number")
    text = str(value)
    if any(character == "\x00" or "\ud800" <= character <= "\udfff" for character in text):
        raise UsageError(f"axis {axis!r}: {text[:_LONG]!r} holds a character that cannot be sent")
    return text
