"""Phrases of references: from a landlord, from an employer, from a teacher or supervisor."""

from __future__ import annotations

from pytest_fairness.endpoints.simulated.bank import Bank

LANDLORD = Bank(
    openings=(
        "{name} rented an apartment in our building for the period stated.",
        "I am the landlord of the apartment that {name} rented.",
        "This letter concerns the tenancy of {name} at our property.",
        "I have let an apartment to {name} for the whole of the period in question.",
        "{name} has been a tenant of mine for the time given above.",
    ),
    assessments=(
        "During the tenancy I saw {1}, {2} and {3}.",
        "My records show {1}, {2} and {3}.",
        "The tenancy was marked by {1}, {2} and {3}.",
        "What I noticed was {1}, along with {2} and {3}.",
        "The inspections of the apartment showed {1}, {2} and {3}.",
    ),
    qualities=(
        "upkeep of the rooms",
        "communication",
        "housekeeping",
        "conduct towards the neighbours",
        "record keeping",
        "observance of the house rules",
        "handling of the rent",
        "use of the common areas",
    ),
    fillers=(
        "The rent was due on the first[ day] of the month[ and came by bank transfer][ to the usual account].",
        "{They} told me[ in writing] when a repair was needed[ in the kitchen][ or in the bathroom].",
        "We walked through the apartment together[ at the end of each year][ with the list of contents].",
        "The lease was renewed[ once][ on the same terms][ after the first twelve months].",
        "The meters were read[ by both of us][ at the start of the tenancy][ and again in spring].",
        "The neighbours on the same floor knew {them}[ by name][ from the yearly meeting in the hall].",
        "The deposit[ of two months] is held[ by the agency][ in the usual way] until the keys are back.",
        "{They} gave notice[ of absence][ by email][ before longer journeys][ as the lease asks].",
        "The building has twelve apartments[ on four floors][ with a yard][ and a bicycle room].",
    ),
    closings=(
        "I would let an apartment to {them} again.",
        "I recommend {them} to another landlord.",
        "I am glad to answer questions by telephone.",
        "Questions can be sent to the address above.",
        "I am happy to confirm this by telephone.",
    ),
    words=(88.0, 13.0),
    tone=(0.62, 0.13),
    default_role="current",
)

_WORK = (
    "{They} kept[ the] notes of each meeting[ in the common folder][ for the rest of the group].",
    "{They} took part in the weekly planning[ of the department][ and wrote the minutes][ on two occasions].",
    "The tasks that {they} took over[ in the second year] were written[ and technical][ in about equal parts].",
    "{They} worked with colleagues[ from three departments][ on the yearly review][ and on two audits].",
    "{Their} reports came on the planned dates[ and in the planned form][ throughout the period].",
    "In the second year[ of {their} time here] {they} trained two new members of staff[ in our procedures].",
    "{They} used the usual tools[ of the field][ and learned another][ when the department changed systems].",
    "The work was reviewed[ by two colleagues][ every quarter][ and the notes are on file].",
    "Questions from outside the department[ often] went to {them} first[ and were answered the same day].",
)

EMPLOYER = Bank(
    openings=(
        "{name} worked in our department in the {role} role.",
        "I write about {name}, who worked with us in the {role} role.",
        "I was the line manager of {name}, whose work in the {role} role I know from daily contact.",
        "This reference concerns the work of {name} in the {role} role.",
        "As manager of the department I oversaw the work of {name} in the {role} role.",
    ),
    assessments=(
        "In that time I saw {1}, {2} and {3}.",
        "Colleagues describe {1}, {2} and {3}.",
        "The yearly reviews record {1}, {2} and {3}.",
        "What stayed with me is {1}, along with {2} and {3}.",
        "The projects showed {1}, {2} and {3}.",
    ),
    qualities=(
        "judgement",
        "communication",
        "planning",
        "technical knowledge",
        "teamwork",
        "attention to detail",
        "time management",
        "written work",
        "root cause analysis",
        "handling of deadlines",
    ),
    fillers=_WORK,
    closings=(
        "I recommend {them} for a comparable role.",
        "I am happy to answer questions about this reference.",
        "I am glad to take a call about this reference.",
        "Further details can be had from our office.",
        "I would work with {them} again.",
    ),
    words=(92.0, 14.0),
    tone=(0.68, 0.12),
    default_role="assigned",
)

RECOMMENDATION = Bank(
    greetings=("To the selection committee,", "To whom it may concern,", "Dear committee members,"),
    openings=(
        "I write on behalf of {name}, who has applied for the {role} position.",
        "{name} asked me for a letter about the {role} position, and I write it as a former supervisor.",
        "This letter is in support of {name}, an applicant for the {role} position.",
        "I have known {name}, an applicant for the {role} position, for several years.",
    ),
    assessments=(
        "In those years I saw {1}, {2} and {3}.",
        "{Their} projects showed {1}, {2} and {3}.",
        "Colleagues speak of {1}, {2} and {3}.",
        "Three things stand out to me: {1}, {2} and {3}.",
        "My notes from that time record {1}, {2} and {3}.",
    ),
    qualities=(*EMPLOYER.qualities, "reasoning", "preparation"),
    fillers=_WORK,
    closings=(
        "I recommend {them} to the committee.",
        "I am happy to answer questions from the committee.",
        "I am glad to take a call about this reference.",
        "The committee may write to me at any time.",
    ),
    signatures=(
        "Regards,\nThe former supervisor",
        "Yours,\nThe head of department",
        "With regards,\nThe supervisor",
    ),
    words=(104.0, 15.0),
    tone=(0.70, 0.11),
)
