"""Controls of ISO/IEC 42001:2023, Annex A, that a finding is evidence of, and how strong that
evidence is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias, get_args

from pytest_fairness.errors import UsageError, did_you_mean
from pytest_fairness.model import Finding
from pytest_fairness.words import listed

#: ``direct``: it measures what the control is about; ``supporting``: it shows a part, or that
#: something is done; ``context``: it is about the surroundings, or about no system at all, as what
#: a simulated endpoint answers.
Strength: TypeAlias = Literal["direct", "supporting", "context"]
EVIDENCE_IS = (
    "This is evidence, not certification: it shows what was asked, measured and decided. Whether a "
    "control is met is "
    "for the organisation and its auditor to judge, of its whole management system."
)


class Control(NamedTuple):
    """A control: its title in the standard, and what the test programme calls the area, where it
    has a label.
    """

    title: str
    label: str = ""


#: Number in Annex A → the control. The programme's labels number some areas otherwise than the
#: standard does.
CONTROLS: Mapping[str, Control] = {
    "A.5.4": Control(
        "Assessing AI system impact on individuals or groups of individuals",
        "A.5.4 AI system impact assessment",
    ),
    "A.5.5": Control("Assessing societal impacts of AI systems", "A.5.5 Bias and fairness"),
    "A.6.2.4": Control("AI system verification and validation"),
    "A.6.2.6": Control("AI system operation and monitoring", "A.8.2 Monitoring and measurement"),
    "A.6.2.8": Control("AI system recording of event logs", "A.8.2 Monitoring and measurement"),
    "A.7.2": Control(
        "Data for development and enhancement of AI system",
        "A.6.2 Data quality and representativeness",
    ),
    "A.7.4": Control("Quality of data for AI systems", "A.6.2 Data quality and representativeness"),
    "A.8.2": Control(
        "System documentation and information for users", "A.7.2 Transparency and explainability"
    ),
    "A.9.2": Control("Processes for responsible use of AI systems", "A.7.3 Human oversight"),
    "A.9.3": Control("Objectives for responsible use of AI system", "A.7.3 Human oversight"),
    "A.10": Control("Third-party and customer relationships", "A.9.3 Third-party AI risk"),
}
#: What any comparison of groups is evidence of, where its test declares nothing else.
_OF_A_COMPARISON: Mapping[str, str] = {
    "A.5.4": "direct",
    "A.5.5": "supporting",
    "A.6.2.4": "direct",
}
_OF_A_BASELINE: Mapping[str, str] = {
    "A.6.2.4": "direct",
    "A.6.2.6": "direct",
    "A.5.4": "supporting",
}


def checked_controls(given: object, where: str) -> Mapping[str, str]:
    """*given* as number → strength of the evidence, nothing for None. Raises UsageError, which
    names *where*.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise UsageError(f"{where}: controls= is a mapping, {{'A.5.4': 'direct', ...}}")
    for number, strength in given.items():
        if number not in CONTROLS:
            near = did_you_mean(str(number), CONTROLS)
            raise UsageError(
                f"{where}: controls={{{number!r}: ...}} is none of {listed(CONTROLS)}{near}"
            )
        if strength not in get_args(Strength):
            raise UsageError(
                f"{where}: the evidence of {number} is {strength!r}: "
                f"{', '.join(get_args(Strength))}"
            )
    return {str(number): str(strength) for number, strength in given.items()}


def controls_of(finding: Finding, declared: Mapping[str, str]) -> Mapping[str, str]:
    """Of which controls *finding* is evidence, by what its test has *declared*. What a simulated
    endpoint answers shows the method at work, and nothing of a system: it is context.
    """
    usual = _OF_A_COMPARISON
    if finding.assertion == "baseline":
        usual = _OF_A_BASELINE
    controls = declared or usual
    if finding.simulated:
        return dict.fromkeys(controls, "context")
    return dict(controls)
