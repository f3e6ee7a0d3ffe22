"""Phrases of descriptions: a professional summary, qualifications for a role, and any other paragraph."""

from __future__ import annotations

from pytest_fairness.endpoints.simulated.bank import Bank

_CAREER = (
    "{Their} recent projects covered data[ collection] and reporting[ for several departments].",
    "{They} worked on a team[ of six][ across two offices][ with a common roadmap].",
    "Earlier roles included analysis[ and testing][ for a regional company][ in the same sector].",
    "{They} wrote the internal guide[ to the main system][ that new staff read][ in the first week].",
    "Day to day, {they} moved between planning[, writing] and review[ with people from other departments].",
    "{Their} training covered methods[ and tools] of the field[ at the usual level][ over three years].",
    "{They} presented results[ to managers][ every quarter][ in writing and in person].",
    "The tools in {their} daily work are[ those] common in the field[ and in the wider industry].",
    "{They} took over the release calendar[ of one product][ during the second year][ of that project].",
)

SUMMARY = Bank(
    openings=(
        "{name} works in the {role} role and brings several years of practice to it.",
        "{name} is known in the {role} role for work on projects of every size.",
        "With several years of practice in the {role} role, {name} has worked on projects of every size.",
        "{name} has spent several years in the {role} role, in teams large and small.",
    ),
    assessments=(
        "{Their} record shows {1}, {2} and {3}.",
        "Colleagues point to {1}, {2} and {3}.",
        "The work stands for {1}, {2} and {3}.",
        "{They} brought {1}, {2} and {3} to each project.",
        "Past managers mention {1}, {2} and {3}.",
    ),
    qualities=(
        "technical knowledge",
        "communication",
        "analysis",
        "planning",
        "attention to detail",
        "teamwork",
        "documentation",
        "judgement",
        "project management",
        "presentation",
    ),
    fillers=_CAREER,
    closings=(
        "{They} would be a welcome member of any team.",
        "The next step is a role with a wider scope.",
        "{They} looked for a role with a wider scope.",
        "Teams were glad to have {them}.",
    ),
    words=(78.0, 12.0),
    tone=(0.68, 0.12),
    default_role="chosen",
)

QUALIFICATIONS = Bank(
    openings=(
        "{name} meets the stated requirements of the {role} role in training and experience.",
        "For the {role} role, {name} has the training and the years of experience asked for.",
        "The background of {name} covers what the {role} role asks for on paper.",
        "On paper, {name} has the degree and the experience that the {role} role asks for.",
    ),
    assessments=SUMMARY.assessments,
    qualities=(
        "system design",
        "technical knowledge",
        "communication",
        "testing",
        "code review",
        "planning",
        "documentation",
        "teamwork",
        "analysis",
        "knowledge of databases",
    ),
    fillers=_CAREER,
    closings=(
        "An interview would show the rest.",
        "I recommend an interview.",
        "I would be glad to see {them} in an interview.",
        "The references on file say the same.",
    ),
    words=(82.0, 12.0),
    tone=(0.62, 0.13),
    default_role="stated",
)

GENERAL = Bank(
    openings=(
        "Here is what can be said about {name} from the details given.",
        "{name} comes across in these details as a person with a settled routine.",
        "The details given about {name} make for a first picture.",
        "What follows is a short account of {name}.",
    ),
    assessments=(
        "One sees {1}, {2} and {3}.",
        "The picture is one of {1}, {2} and {3}.",
        "The account shows {1}, {2} and {3}.",
        "What stands out is {1}, along with {2} and {3}.",
    ),
    qualities=(
        "judgement",
        "communication",
        "planning",
        "conduct",
        "preparation",
        "self-control",
        "teamwork",
        "reasoning",
    ),
    fillers=(
        "{They} got up at the same hour[ each day][ and walked to work][ along the river].",
        "In the evening {they} read[ the news] or met neighbours[ from the same street][ for an hour or two].",
        "{They} had lived in the same town[ for some years][ with family close by].",
        "The week had a set order[ of work and errands][ that changed with the season].",
        "At work {they} dealt with people[ of every age][ and kept the records][ of the day].",
        "On weekends {they} went to the market[ in the old town][ and cooked for the week].",
        "{Their} neighbours knew {them}[ by name][ and asked for advice][ about practical questions].",
        "{They} planned[ the next] journeys months ahead[ with a map][ and a list of things to see].",
    ),
    closings=(
        "With further details the account could be longer.",
        "{They} would be welcome in any town.",
        "That is the account in brief.",
        "People were glad to see {them}.",
    ),
    words=(76.0, 12.0),
    tone=(0.58, 0.14),
)
