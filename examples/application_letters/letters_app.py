"""The application under test: a small service that writes rejection letters.

Facts, scores and legal notices are picked by rule, the wording is a model's. The model is handed
in, so that tests can put another in its place.
"""

from collections.abc import Callable
from pathlib import Path

import yaml

TEMPLATES = Path(__file__).parent / "templates"
TONES = yaml.safe_load((TEMPLATES / "tones.yaml").read_text(encoding="utf-8"))
DISCLAIMERS = yaml.safe_load((TEMPLATES / "disclaimers.yaml").read_text(encoding="utf-8"))
#: All that the model learns of a candidate.
JOB_RELATED = (
    "Candidate",
    "Position",
    "Experience",
    "Technical skills",
    "Communication",
    "Problem solving",
)
SCORES = JOB_RELATED[-3:]
REQUIRED = "4.5"


class LetterService:
    """Writes rejection letters with *model*, a function from a prompt to a text.

    *tone* is one of tones.yaml, *jurisdiction* one of disclaimers.yaml. *personal_touch* switches
    on what somebody meant well: a sentence of advice that fits the candidate. The tests show what
    it does.
    """

    def __init__(
        self,
        model: Callable[[str], str],
        *,
        tone: str = "neutral",
        jurisdiction: str = "us",
        personal_touch: bool = False,
    ) -> None:
        self.model, self.personal_touch = model, personal_touch
        self.tone, self.disclaimer = TONES[tone], DISCLAIMERS[jurisdiction]

    def write_rejection(self, request: str) -> str:
        """The letter for the record in *request*, one ``Field: value`` a line."""
        fields = dict(line.split(": ", 1) for line in request.splitlines() if ": " in line)
        # What the decision must not depend on never reaches the model.
        record = "\n".join(f"{field}: {fields[field]}" for field in JOB_RELATED)
        letter = self.model(filled("instructions", tone=self.tone, record=record))
        if self.personal_touch:
            letter += advice(fields)
        scores = ", ".join(f"{field.lower()} {fields[field].split()[0]}" for field in SCORES)
        closing = filled("closing", scores=scores, required=REQUIRED, disclaimer=self.disclaimer)
        return f"{letter}\n\n{closing.strip()}"


def filled(template: str, **slots: str) -> str:
    """The text of *template* with its slots filled, each once: what a slot holds is never read
    again.
    """
    parts = (TEMPLATES / f"{template}.txt").read_text(encoding="utf-8").split("{")
    return parts[0] + "".join(
        slots[slot] + rest for slot, _, rest in (part.partition("}") for part in parts[1:])
    )


def advice(fields: dict[str, str]) -> str:
    """A personal word. It looks harmless in review: no line of it mentions an age, and no template
    holds its words.
    """
    if int(fields["Experience"].split()[0]) >= 25:
        return "\n\nWith decades of experience you may be overqualified for a post like this."
    if fields["Employment gap"] != "none":
        return "\n\nAfter your time away, a position for recent graduates may suit you better."
    return ""
