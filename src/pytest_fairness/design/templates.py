"""Prompt text with slots. What is not a slot is sent byte for byte.

A slot is a plain name in braces, ``{name}``, and nothing else: no attributes, no indices, no
conversions, no format specifications, because a template is data, perhaps a stranger's. All slots
are filled in one pass, so a value is never read again, whatever it looks like. Every other brace,
as in JSON, stays as it is.

Any slot has an article form: ``{a_role}`` is "a nurse" or "an IT engineer". Pronouns are slots of a
sentence with
*they*: ``{They} {have} six years of experience, and {their} manager says that {they} work{s}``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, chain, starmap
from pathlib import Path
from typing import TypeAlias

from pytest_fairness.design.slugs import is_slug, slug
from pytest_fairness.documents import read_text
from pytest_fairness.errors import UsageError, did_you_mean, refuse_twice
from pytest_fairness.words import listed

_SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
UNSENDABLE = re.compile(r"[\x00\ud800-\udfff]")
_FAULTS = (
    (UNSENDABLE, "cannot be sent"),
    (  # what str.format would have understood, and what people write when they expect a template language
        re.compile(
            r"\{[A-Za-z0-9_]*\s*(?:\.[A-Za-z_]|\[|![rsa]\b|:)[^{}\n]*\}|\{\s+[A-Za-z_]\w*\s*\}|\{[A-Za-z_]\w*\s+\}"
        ),
        "is not a slot. A slot is a plain name in braces, such as {name}: no spaces, attributes, "
        "indices, conversions "
        "or format specifications",
    ),
    (
        re.compile(r"\{\{[A-Za-z_][A-Za-z0-9_]*\}\}"),
        "could be a slot or literal braces; for the slot write one brace on either side",
    ),
)
MAX_CHARACTERS = 1_000_000
_FEWEST_STRENGTHS = 3

TemplateLike: TypeAlias = "str | Path | Template"
#: The text under an id, or a series of texts by their strength, from the weakest to the strongest.
TextOrSeries: TypeAlias = "str | Path | Mapping[str, str | Path]"


def base_slot(slot: str) -> str:
    """``role`` for ``role``, ``a_role`` and ``A_role``: what fills the slot, an article aside."""
    if slot[:2] in ("a_", "A_") and len(slot) > 2:
        return slot[2:]
    return slot


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with slots. ``id`` is the name of the statistical block; ``slots`` are in order of
    appearance, and ``plain_slots`` those and what fills them. ``series`` names the series of texts
    of rising strength that it belongs to; empty for none.
    """

    id: str
    text: str
    series: str = ""
    slots: tuple[str, ...] = field(init=False)
    plain_slots: frozenset[str] = field(init=False, repr=False, compare=False)
    _pieces: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a text that cannot be sent; read its slots once."""
        if not is_slug(self.id):
            raise UsageError(
                f"template id {self.id!r}: use 1 to 80 of the characters a-z 0-9 _ . - (not . or - "
                "first)"
            )
        if not self.text.strip():
            raise UsageError(f"template {self.id!r} is empty")
        if len(self.text) > MAX_CHARACTERS:
            raise UsageError(f"template {self.id!r} is longer than {MAX_CHARACTERS:,} characters")
        for pattern, why in _FAULTS:
            if match := pattern.search(self.text):
                line = self.text.count("\n", 0, match.start()) + 1
                raise UsageError(f"template {self.id!r}, line {line}: {match[0]!r} {why}")
        pieces = tuple(_SLOT.split(self.text))  # text and slots in turns
        slots = tuple(dict.fromkeys(pieces[1::2]))
        object.__setattr__(self, "_pieces", pieces)
        object.__setattr__(self, "slots", slots)
        object.__setattr__(self, "plain_slots", frozenset((*slots, *map(base_slot, slots))))

    def missing(self, slots: Collection[str]) -> str | None:
        """The first slot that none of *slots* fills, by itself or with an article in front."""
        for slot in self.slots:
            if slot not in slots and base_slot(slot) not in slots:
                return slot
        return None

    def check(self, slots: Collection[str]) -> None:
        """Raise UsageError for a slot that none of *slots* fills."""
        slot = self.missing(slots)
        if slot is None:
            return
        wanted = base_slot(slot)
        # Of numbered slots those of the first candidate stand for all.
        plain = sorted(
            name for name in {*slots} - SLOTS if not re.search(r"_(?:[2-9]|\d\d+)$", name)
        )
        shown = [name for name in plain if name.removesuffix("_1") not in SLOTS]
        others = "pronouns such as {they}"
        if "label_1" in slots:
            others = "so on for each candidate"
        raise UsageError(
            f"template {self.id!r}: nothing fills the slot {{{slot}}} (slots that are filled: "
            f"{listed(shown)}, and "
            f"{others}){did_you_mean(wanted, shown)}; give an axis {wanted}=[...], or take the "
            "slot out"
        )

    def fill(
        self, values: Mapping[str, str], first: Mapping[str, str] | None = None
    ) -> tuple[str, list[tuple[str, int, int]]]:
        """The text with every slot filled from *values* as they are, and (slot, start, end) of each
        in it, in order.

        *first* overrides a slot's first appearance. Raises UsageError for a slot without a value.
        """
        pieces = self._filled_pieces(values, first or {})
        ends = list(accumulate(map(len, pieces)))
        spans = list(zip(self._pieces[1::2], ends[0::2], ends[1::2], strict=False))
        return "".join(pieces), spans

    def render(self, values: Mapping[str, str], first: Mapping[str, str] | None = None) -> str:
        """The text alone of what :meth:`fill` gives. Raises UsageError for a slot without a value."""
        return "".join(self._filled_pieces(values, first or {}))

    def _filled_pieces(self, values: Mapping[str, str], first: Mapping[str, str]) -> list[str]:
        """Return text and what fills each slot, in turns."""
        pieces = list(self._pieces)
        try:
            pieces[1::2] = map(values.__getitem__, pieces[1::2])
        except KeyError:
            for place in range(1, len(pieces), 2):
                pieces[place] = self._value_of(pieces[place], values)
        for slot, value in first.items():
            if slot in self.slots:
                pieces[1 + 2 * self._pieces[1::2].index(slot)] = value
        return pieces

    def _value_of(self, slot: str, values: Mapping[str, str]) -> str:
        """Return what fills *slot*; of one such as ``a_role`` article included. Raises UsageError."""
        if slot in values:
            return values[slot]
        value = values.get(base_slot(slot))
        if value is None:
            raise UsageError(f"template {self.id!r}: no value for the slot {{{slot}}}")
        return _with_article(value, capital=slot[0] == "A")


def read_template(path: Path, id: str | None = None) -> Template:  # noqa: A002 - the field's name
    """The template in the UTF-8 file *path*, newlines kept; its id is *id* or the slug of the
    file's stem.
    """
    text = read_text(path, max_bytes=4 * MAX_CHARACTERS, encoding="utf-8")
    return Template(id or slug(path.stem), text)


def templates(
    source: TemplateLike | Iterable[TemplateLike] | Mapping[str, TextOrSeries],
) -> tuple[Template, ...]:
    """Templates from a text, a path, a Template, a list of those, or a mapping from ids to texts,
    paths or series: a series maps strengths to texts, from the one that speaks least for the person
    to the one that speaks most, and its templates are called ``<id>_<strength>``.

    A text is called ``t1``, ``t2`` … by its place in the list. Raises UsageError for none, for two
    of one id or text, and for whatever a single template is refused for.
    """
    if isinstance(source, Mapping):
        made = list(chain.from_iterable(starmap(_templates_under, source.items())))
    else:
        several = source
        if isinstance(several, (str, Path, Template)):
            several = [several]
        made = [_template(None, given, place) for place, given in enumerate(several, start=1)]
    if not made:
        raise UsageError("template: the list is empty; give at least one prompt text")
    refuse_twice("template: the id", (template.id for template in made))
    refuse_twice("template: the same text", (template.text for template in made))
    return tuple(made)


def _templates_under(id_: str, given: TextOrSeries) -> list[Template]:
    """Return the template *given* under *id_*, or each of a series. Raises UsageError."""
    if not isinstance(given, Mapping):
        return [_template(id_, given)]
    if len(given) < _FEWEST_STRENGTHS:
        raise UsageError(
            f"template {id_!r}: a series has {_FEWEST_STRENGTHS} texts or more, from the weakest "
            f"to the strongest, not {len(given)}"
        )
    return [
        replace(_template(f"{id_}_{strength}", text), series=id_)
        for strength, text in given.items()
    ]


def _template(id_: str | None, given: object, place: int = 0) -> Template:
    """Return the template *given* under *id_*, or at a *place* of a list. Raises UsageError."""
    if isinstance(given, Path):
        return read_template(given, id_)
    if isinstance(given, Template) and id_ is None:
        return given
    if id_ is None:
        id_ = f"t{place}"
    if not isinstance(given, str):
        raise UsageError(
            f"template {id_!r} is {type(given).__name__}; give a text, a Path or a Template"
        )
    return Template(id_, given)


# ---------------------------------------------------------------- words that follow a value

PRONOUNS = "pronouns"
_CASES = ("they", "them", "their", "theirs", "themself")
_VERBS = {"are": ("is", "are"), "were": ("was", "were"), "have": ("has", "have"), "do": ("does", "do"),
          "s": ("s", ""), "es": ("es", "")}  # fmt: skip
#: Where the template's text stands in the turns of a conversation.
REQUEST = "request"
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
BY_GENDER = {
    "female": "she",
    "male": "he",
    "non_binary": "they",
    "nonbinary": "they",
    "unisex": "they",
}


def pronouns(text: str) -> dict[str, str]:
    """Return what every pronoun and agreement slot holds under *text*: ``she``, ``she/her``, or all
    five forms, ``ae/aer/aer/aers/aerself``. Verbs in the plural agree with *they* alone.

    Raises UsageError for anything else.
    """
    return dict(_pronoun_slots(text))


@cache
def _pronoun_slots(text: str) -> Mapping[str, str]:
    """Return each pronoun slot with its word for ``she/her/…``. Raises UsageError."""
    parts = tuple(map(str.strip, text.lower().split("/")))
    if len(parts) == len(_CASES) and all(parts):
        forms = parts
    else:
        forms = _KNOWN.get(parts[0], ())
    if not set(parts) <= set(forms):
        raise UsageError(
            f"unknown pronouns {text!r}: give one of {', '.join(_KNOWN)} (or she/her and so on), "
            "or all five forms, as in 'ae/aer/aer/aers/aerself'"
        )
    slots = dict(zip(_CASES, forms, strict=True))
    for slot, (singular, plural) in _VERBS.items():
        slots[slot] = singular
        if forms[0] == "they":
            slots[slot] = plural
    for slot, word in tuple(slots.items()):
        slots[slot.capitalize()] = word[:1].upper() + word[1:]
    return slots


def pronouns_of(gender: str | None) -> dict[str, str]:
    """The pronoun slots of a gender; none for one without known pronouns."""
    if gender in BY_GENDER:
        return pronouns(BY_GENDER[gender])
    return {}


# Words that sound otherwise than they are spelled; enough for job titles, groups and ages.
_VOWEL_SOUND = re.compile(
    r"(?:hour|honest|honou?r|heir)|8|11(?:[^0-9]|$)|18(?:[^0-9]|$)", re.IGNORECASE
)
_CONSONANT_SOUND = re.compile(r"(?:uni(?!n)|us[ei]|eu|one|once|ut[ei]|ubiq|ukr)", re.IGNORECASE)
_ACRONYM = r"(?!NASA|NATO)[A-Z]{2,}(?![a-z])"
#: How a word begins, and its article; the first that fits decides.
_ARTICLES = (
    (re.compile(rf"(?=[AEFHILMNORSX]){_ACRONYM}"), "an"),
    (re.compile(_ACRONYM), "a"),
    (_VOWEL_SOUND, "an"),
    (_CONSONANT_SOUND, "a"),
    (re.compile("[aeiouáéíóúâêîôûäëïöüAEIOUÁÉÍÓÚÂÊÎÔÛÄËÏÖÜ]"), "an"),
)


def article(text: str) -> str:
    """``a`` or ``an``, as English has it before *text*: an IT engineer, a university, an
    18-year-old.
    """
    word = text.lstrip(" \"'“‘(")
    for beginning, before in _ARTICLES:
        if beginning.match(word):
            return before
    return "a"


def _with_article(text: str, *, capital: bool) -> str:
    """Return *text* after its article, which may begin a sentence; nothing has none."""
    if not text:
        return text
    before = article(text)
    if capital:
        before = before.capitalize()
    return f"{before} {text}"


def are_texts(values: Iterable[object]) -> bool:
    """Return whether all of *values* are texts."""
    return all(isinstance(value, str) for value in values)


def are_some_texts(values: Collection[object]) -> bool:
    """Return whether *values* are one text or more, and nothing else."""
    return bool(values) and are_texts(values)


def spoken_turns(given: Sequence[str] | None) -> tuple[Template, ...]:
    """The turns of a conversation, as ``turns=`` gives them; exactly one holds the request. Raises
    UsageError.
    """
    if given is None:
        return ()
    if isinstance(given, str) or not are_some_texts(given):
        raise UsageError(
            "turns= is a list of texts, one of them with {request}: ['You review loans …', "
            "'{request}']"
        )
    spoken = tuple(Template(f"turn-{number}", text) for number, text in enumerate(given, start=1))
    if sum(turn.slots.count(REQUEST) for turn in spoken) != 1:
        raise UsageError("turns=: {request} stands exactly once, where the template's text belongs")
    return spoken
