"""Slots and what fills them: pronouns, articles, context axes, a unit's name and words; and the text that is sent.

In a template, write the sentence with *they*, as slots: ``{They} {have} six years of experience, and {their} manager
says that {they} work{s}``. There are ``{they}``, ``{them}``, ``{their}``, ``{theirs}``, ``{themself}``, the verbs
``{are}``, ``{were}``, ``{have}``, ``{do}``, and the endings ``{s}`` and ``{es}``; with a capital (``{They}``) the word
is capitalised. Any other slot has an article form: ``{a_role}`` is "a nurse" or "an IT engineer".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pytest_fairness.design.slugs import slugs
from pytest_fairness.design.templates import UNSENDABLE, Template, base_slot
from pytest_fairness.errors import UsageError, refuse_twice
from pytest_fairness.model import JSON

PRONOUNS = "pronouns"
LABEL_SLOT = "label"
_AROUND = 20

_CASES = ("they", "them", "their", "theirs", "themself")
_VERBS = {"are": ("is", "are"), "were": ("was", "were"), "have": ("has", "have"), "do": ("does", "do"),
          "s": ("s", ""), "es": ("es", "")}  # fmt: skip
SLOTS = frozenset(form for word in (*_CASES, *_VERBS) for form in (word, word.capitalize()))
_KNOWN = {
    forms.split()[0]: tuple(forms.split())
    for forms in (
        "she her her hers herself",
        "he him his his himself",
        "they them their theirs themself",
        # Neopronouns in use; any other set can be given by its five forms.
        "xe xem xyr xyrs xemself",
        "ze hir hir hirs hirself",
        "ey em eir eirs emself",
        "fae faer faer faers faerself",
    )
}
BY_GENDER = {"female": "she", "male": "he", "non_binary": "they", "nonbinary": "they", "unisex": "they"}


def pronouns(text: str) -> dict[str, str]:
    """What every pronoun and agreement slot holds under *text*: ``she``, ``she/her``, or all five forms,
    ``ae/aer/aer/aers/aerself``. Verbs in the plural agree with *they* alone.

    Raises UsageError for anything else.
    """
    parts = tuple(part.strip().lower() for part in text.split("/"))
    forms = parts if len(parts) == len(_CASES) and all(parts) else _KNOWN.get(parts[0], ())
    if not set(parts) <= set(forms):
        raise UsageError(
            f"unknown pronouns {text!r}: give one of {', '.join(_KNOWN)} (or she/her and so on), "
            "or all five forms, as in 'ae/aer/aer/aers/aerself'"
        )
    lower = dict(zip(_CASES, forms, strict=True)) | {slot: verb[forms[0] == "they"] for slot, verb in _VERBS.items()}
    return lower | {slot.capitalize(): word[:1].upper() + word[1:] for slot, word in lower.items()}


# Words that sound otherwise than they are spelled; enough for job titles, groups and ages.
_VOWEL_SOUND = re.compile(r"(?:hour|honest|honou?r|heir)|8|11(?:[^0-9]|$)|18(?:[^0-9]|$)", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(r"(?:uni(?!n)|us[ei]|eu|one|once|ut[ei]|ubiq|ukr)", re.IGNORECASE)
_ACRONYM = re.compile(r"[A-Z]{2,}(?![a-z])")


def article(text: str) -> str:
    """``a`` or ``an``, as English has it before *text*: an IT engineer, a university, an 18-year-old."""
    word = text.lstrip(" \"'“‘(")
    if _ACRONYM.match(word) and word[:4] not in ("NASA", "NATO"):
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    if _VOWEL_SOUND.match(word):
        return "an"
    if not word or _CONSONANT_SOUND.match(word):
        return "a"
    return "an" if word[0].lower() in "aeiouáéíóúâêîôûäëïöü" else "a"


def with_articles(template: Template, values: Mapping[str, str]) -> dict[str, str]:
    """*values*, and those of *template*'s slots with an article in front; nothing before nothing."""
    filled = dict(values)
    for slot in template.slots:
        base = base_slot(slot)
        if base is not None and slot not in filled and base in filled:
            before = article(filled[base])
            filled[slot] = f"{before.capitalize() if slot[0] == 'A' else before} {filled[base]}" if filled[base] else ""
    return filled


@dataclass(frozen=True, slots=True)
class Axis:
    """A context axis. ``labels`` stand in the table and in ids, ``texts`` in the prompt, in the same order."""

    name: str
    labels: tuple[str, ...]
    texts: tuple[str, ...]
    slugs: tuple[str, ...]

    @property
    def slots(self) -> frozenset[str]:
        """The slots that this axis fills, articles aside."""
        return SLOTS | {self.name} if self.name == PRONOUNS else frozenset({self.name})

    def values(self, position: int) -> dict[str, str]:
        """What value number *position* puts into each of its slots."""
        if self.name != PRONOUNS:
            return {self.name: self.texts[position]}
        words = pronouns(self.texts[position])
        return words | {PRONOUNS: f"{words['they']}/{words['them']}"}


def axes(context: Mapping[str, object] | None, keywords: Mapping[str, object]) -> tuple[Axis, ...]:
    """The axes of *context* and *keywords*: each a list of values, or a mapping from a short label to a long text.

    Raises UsageError for an axis that both have, a name that no slot could have or that a pronoun has, for an axis
    without values, a value that is not text or a number, and a value that stands twice.
    """
    both = sorted((context or {}).keys() & keywords.keys())
    if both:
        raise UsageError(f"the axis {both[0]!r} is given twice, in context and as a keyword; keep one")
    return tuple(_axis(name, values) for name, values in {**(context or {}), **keywords}.items())


def _axis(name: str, values: object) -> Axis:
    if not name.isidentifier() or not name.isascii():
        raise UsageError(f"axis {name!r}: a slot's name is made of letters, digits and _")
    if name in SLOTS:
        raise UsageError(f"axis {name!r}: {{{name}}} is a pronoun slot; choose another name")
    if isinstance(values, (set, frozenset)):
        raise UsageError(f"axis {name!r}: a set has no order, so ids would change from run to run; give a list")
    if isinstance(values, (str, int, float)):
        values = [values]
    if not isinstance(values, Iterable):
        raise UsageError(f"axis {name!r}: give a list of values, not {type(values).__name__}")
    texts = tuple(_text(name, text) for text in (values.values() if isinstance(values, Mapping) else values))
    labels = tuple(map(str, values)) if isinstance(values, Mapping) else texts
    if not texts:
        raise UsageError(f"axis {name!r} has no values; give at least one, or leave the axis out")
    refuse_twice(f"axis {name!r}: the value", texts)
    refuse_twice(f"axis {name!r}: the label", labels)
    by_label = slugs(labels)
    axis = Axis(name, labels, texts, tuple(by_label[label] for label in labels))
    for position in range(len(texts) if name == PRONOUNS else 0):
        axis.values(position)  # refuses pronouns that are not known, here rather than cell by cell
    return axis


def _text(axis: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UsageError(f"axis {axis!r}: {value!r} is {type(value).__name__}; give text or a number")
    if UNSENDABLE.search(str(value)):
        raise UsageError(f"axis {axis!r}: {str(value)[:60]!r} holds a character that cannot be sent")
    return str(value)


def check_axes_used(axes: Iterable[Axis], used: frozenset[str], hint: str = "") -> None:
    """Raise UsageError for an axis whose slots are not among the *used* ones."""
    for axis in axes:
        if not used & axis.slots:
            raise UsageError(
                f"axis {axis.name!r} is given, but no template uses it: write {{{axis.name}}} in a template, "
                f"or leave the axis out{hint}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One combination of groups with one name, one persona, or both: all of a cell but template and context.

    ``values`` fills slots; ``labels`` are the words to put where a template has a place for them, by class;
    ``conveys`` says which slots carry which groups; ``swapped`` are the groups that the grid compares,
    empty for personas as they are. ``cluster`` is the unit of evidence, ``parts`` its share of the cell's
    id.
    """

    parts: tuple[str, ...]
    groups: Mapping[str, str]
    swapped: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    conveys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cluster: str | None = None
    persona: str | None = None
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    signal: str | None = None

    def loose(self, template: Template) -> dict[str, str]:
        """The words that *template* has no slot for."""
        return {name: words for name, words in self.labels.items() if name not in template.plain_slots}


def render(
    template: Template, unit: Unit, values: Mapping[str, str], name_slot: str, *, needs_labels: bool = True
) -> tuple[str, dict[str, Mapping[str, str]]]:
    """The text of *template* for *unit*, and its surface strings with the groups that each conveys.

    *values* are the unit's and the context's. Words without a slot of their own stand in ``{label}``, else in brackets
    behind the name, ``(Black, female)``; with *needs_labels* off (a system prompt) they are left out.
    """
    loose, bracket = unit.loose(template), ""
    filled = {**values, **unit.labels}
    if loose and LABEL_SLOT in template.plain_slots:
        filled[LABEL_SLOT] = " ".join(loose.values())
    elif loose and needs_labels:
        bracket = f"({', '.join(loose.values())})"
    filled = with_articles(template, filled)
    first = {name_slot: f"{filled[name_slot]} {bracket}"} if bracket and name_slot in filled else {}
    text, spans = template.fill(filled, first)
    surfaces: dict[str, Mapping[str, str]] = {}
    for slot, start, end in spans:
        base = base_slot(slot) or slot
        groups = unit.conveys.get(base)
        if groups and start < end:
            is_name = base in (name_slot, "first_name", "last_name")
            surfaces.setdefault(values[base] if is_name else _with_surroundings(text, start, end), groups)
    if bracket and bracket in text:
        surfaces[bracket] = {name: unit.groups[name] for name in loose}
    return text, surfaces


def _with_surroundings(text: str, start: int, end: int) -> str:
    """The value with the whole words around it on its line: "24" alone would be found anywhere."""
    left, right = max(0, start - _AROUND), min(len(text), end + _AROUND)
    while 0 < left < start and text[left - 1].isalnum():
        left += 1
    while end < right < len(text) and text[right].isalnum():
        right -= 1
    before = text[left:start].rpartition("\n")[2]
    after = text[end:right].partition("\n")[0]
    return f"{before}{text[start:end]}{after}".strip()
