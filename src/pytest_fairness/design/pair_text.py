"""The text of a choice: numbered slots for each candidate, the list of all, and the surfaces that convey a group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pytest_fairness.design.arms import TEXT
from pytest_fairness.design.candidates import Candidate
from pytest_fairness.design.pronouns import pronouns, with_article
from pytest_fairness.design.templates import Template, base_slot
from pytest_fairness.errors import UsageError, did_you_mean, listed

CANDIDATES = "candidates"
QUALIFICATIONS = "qualifications"
_OWN = ("name", "first_name", "last_name", "demographics", "label", "candidate", "resume", QUALIFICATIONS)
_NUMBERED = re.compile(r"(?P<slot>[A-Za-z_]+)_(?P<number>\d+)")
_EMPTY = r"(?:,[ \t]*|[ \t]+)?\{{{slot}_\d+\}}"


def label_of(position: int) -> str:
    """``Candidate A`` for the first in the list, counted from 0."""
    return f"Candidate {chr(65 + position)}"


def candidate_line(candidate: Candidate, position: int, qualifications: str) -> str:
    """``Greg Walsh, 2 Years of Experience, Male, White``: a candidate as the list has it; a résumé in full."""
    if candidate.text is not None:
        return "\n".join(part for part in (candidate.demographics, candidate.text) if part)
    parts = (candidate.name or label_of(position), qualifications, candidate.demographics)
    return ", ".join(part for part in parts if part)


def block(slate: Sequence[Candidate], qualifications: str) -> str:
    """All candidates: numbered lines, or, for résumés, each under its label."""
    lines = [candidate_line(candidate, at, qualifications) for at, candidate in enumerate(slate)]
    if any(candidate.text is not None for candidate in slate):
        return "\n\n".join(f"{label_of(at)}:\n{line}" for at, line in enumerate(lines))
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


def values_of(slate: Sequence[Candidate], context: Mapping[str, str]) -> dict[str, str]:
    """What every slot of a template holds for *slate*: numbered slots, ``{candidates}`` and the context."""
    values = dict(context)
    for at, candidate in enumerate(slate):
        number = at + 1
        qualifications = _qualifications(candidate, context)
        first, _, last = (candidate.name or label_of(at)).partition(" ")
        own = {**candidate.values, **(pronouns(candidate.pronouns).values() if candidate.pronouns else {})}
        own |= {
            "name": candidate.name or label_of(at),
            "first_name": first,
            "last_name": last,
            "demographics": candidate.demographics,
            "label": label_of(at),
            "candidate": candidate_line(candidate, at, qualifications),
            "resume": candidate.text or "",
            QUALIFICATIONS: qualifications,
        }
        values |= {f"{slot}_{number}": value for slot, value in own.items()}
    qualifications = context.get(QUALIFICATIONS, "")
    values[CANDIDATES] = block(slate, qualifications or _qualifications(slate[0], context))
    return values


def _qualifications(candidate: Candidate, context: Mapping[str, str]) -> str:
    given = context.get(QUALIFICATIONS)
    if given is not None:
        return given
    years = candidate.values.get("experience_years")
    return f"{years} years of experience" if years is not None else ""


def render(template: Template, values: Mapping[str, str]) -> str:
    """The text of *template*; slots with an article in front are made from the plain ones."""
    filled = dict(values)
    for slot in template.slots:
        base = base_slot(slot)
        if slot not in filled and base in filled:
            filled[slot] = with_article(filled[base], capital=slot[0] == "A")
    return template.render(filled)


def without_empty(template: Template, slate: Sequence[Candidate]) -> Template:
    """*template* without the slots of words that no candidate has, nor the comma before them."""
    text = template.text
    if not any(candidate.demographics for candidate in slate):
        text = re.sub(_EMPTY.format(slot="demographics"), "", text)
    return template if text == template.text else Template(template.id, text)


def scrubbed_template(template: Template) -> Template:
    """*template* with ``{text}`` where it lists the candidates: from the first line that does to the last."""
    lines = template.text.split("\n")
    at = [number for number, line in enumerate(lines) if _lists(line)]
    return Template(template.id, "\n".join([*lines[: at[0]], f"{{{TEXT}}}", *lines[at[-1] + 1 :]]))


def _lists(line: str) -> bool:
    return f"{{{CANDIDATES}}}" in line or any(
        _NUMBERED.fullmatch(slot) is not None for slot in re.findall(r"\{(\w+)\}", line)
    )


def check_slots(template: Template, values: Mapping[str, str], size: int) -> None:
    """Every slot has a value, and every candidate a place. Raises UsageError with the mend."""
    for slot in template.slots:
        base = base_slot(slot)
        if slot in values or (base is not None and base in values):
            continue
        numbered = _NUMBERED.fullmatch(slot)
        if numbered and int(numbered["number"]) > size:
            raise UsageError(
                f"template {template.id!r} has the slot {{{slot}}}, but a choice is among {size}: take it out, or give "
                "size=…"
            )
        known = sorted({key for key in values if not _NUMBERED.fullmatch(key)} | {f"{own}_1" for own in _OWN})
        raise UsageError(
            f"template {template.id!r}: nothing fills the slot {{{slot}}} (slots that are filled: {listed(known)}, and "
            f"so on for each candidate){did_you_mean(slot, known)}; give an axis {slot}=[...], or take the slot out"
        )
    if CANDIDATES in template.slots:
        return
    for number in range(1, size + 1):
        if not any(f"{own}_{number}" in template.slots for own in _OWN if own != QUALIFICATIONS):
            raise UsageError(
                f"template {template.id!r} has no place for candidate {number}: write {{name_{number}}} or "
                f"{{candidate_{number}}}, or {{{CANDIDATES}}} for the whole list"
            )


def surfaces(slate: Sequence[Candidate], text: str) -> dict[str, Mapping[str, str]]:
    """The strings in *text* that convey a group, each with what it conveys."""
    found: dict[str, Mapping[str, str]] = {}
    for candidate in slate:
        for surface in (candidate.name if candidate.named else None, candidate.demographics, candidate.text):
            if surface and surface in text:
                found[surface] = candidate.conveys
    return found
