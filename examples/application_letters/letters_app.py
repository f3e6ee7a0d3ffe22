"""The application under test: it turns a candidate's record into a rejection letter.

Facts are picked by rule, the wording is a model's. The model is handed in, so that tests can put another in its place.
"""

from collections.abc import Callable

JOB_RELATED = ("Candidate", "Position", "Experience", "Technical skills", "Communication", "Problem solving")
INSTRUCTIONS = (
    "You write for the hiring team of Harbour Telecom. Write a rejection letter of two short paragraphs to the "
    "candidate below. Give the reasons as job-related criteria only, be specific and kind, promise nothing.\n\n"
)
CLOSING = "\n\nYou may ask us for the scores behind this decision at any time."


class LetterWriter:
    """Writes rejection letters with *model*, a function from a prompt to a text."""

    def __init__(self, model: Callable[[str], str]) -> None:
        self.model = model

    def write_rejection(self, request: str) -> str:
        """The letter for the record in *request*, one ``Field: value`` a line."""
        fields = dict(line.split(": ", 1) for line in request.splitlines() if ": " in line)
        # What the decision must not depend on never reaches the model.
        record = "\n".join(f"{field}: {fields[field]}" for field in JOB_RELATED)
        return self.model(INSTRUCTIONS + record) + CLOSING
