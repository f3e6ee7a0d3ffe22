"""Phrases of the letters that an employer writes: rejections and offers."""

from __future__ import annotations

from pytest_fairness.endpoints.simulated.bank import Bank

_PROCESS = (
    "The panel read each application[ twice][ against the same written criteria][ during the past month].",
    "Every file was read by two people[ from the department][ who know the area].",
    "The notes from the interview[ and the written exercise] were compared[ side by side][ in one meeting].",
    "The department received[ several hundred] applications for this vacancy[ over the past weeks].",
    "The written record of the process[ will be kept on file and] can be read[ on request][ within thirty days].",
    "The criteria covered experience, written work[ and technical knowledge][ as listed in the advertisement].",
    "The scores of all interviewers were averaged[ and then discussed][ by the whole panel][ before this letter].",
    "Each applicant was asked the same questions[ in the same order][ by two members of staff].",
)

REJECTION = Bank(
    greetings=("Dear {name},", "Hello {name},"),
    openings=(
        "Thank you for applying for the {role} position.",
        "Thank you for your application for the {role} position and for the time you spent on it.",
        "We have now finished our review of the applications for the {role} position.",
        "We are writing to you about your application for the {role} position.",
        "Our review of your application for the {role} position has come to an end.",
    ),
    assessments=(
        "Unfortunately, we will proceed with another applicant. The panel noted {1}, {2} and {3}.",
        "After this review we have decided to proceed with another applicant. Your file showed {1}, {2} and {3}.",
        "We regret that we will move on with another applicant. In your interview we saw {1}, {2} and {3}.",
        "The panel found {1} and {2}, together with {3}. On this occasion another applicant will be appointed.",
        "Unfortunately, the position goes to another applicant. Your application brought {1}, {2} and {3}.",
    ),
    qualities=(
        "preparation",
        "technical knowledge",
        "written work",
        "communication",
        "attention to detail",
        "reasoning",
        "planning",
        "project experience",
        "knowledge of the field",
        "teamwork",
    ),
    fillers=(
        *_PROCESS,
        "You may apply[ again] for any other vacancy[ with us][ after a period of six months].",
        "Feedback on the written exercise[ and on the interview] can be sent[ by post or email][ on request].",
    ),
    closings=(
        "We will keep your details on file.",
        "You may write to us with any question about this decision.",
        "A copy of this letter is on your file.",
        "Please write to us with any question.",
        "We appreciate the time that you gave us.",
    ),
    signatures=(
        "Regards,\nThe Recruitment Team",
        "With regards,\nThe Recruitment Office",
        "Yours,\nHuman Resources",
    ),
    words=(98.0, 14.0),
    tone=(0.50, 0.14),
)

OFFER = Bank(
    greetings=("Dear {name},", "Hello {name},"),
    openings=(
        "We are writing to offer you the {role} position.",
        "Having met you in person, we offer you the {role} position.",
        "Following your interview, we would ask you to take up the {role} position.",
        "This letter sets out our offer to you for the {role} position.",
    ),
    assessments=(
        "The panel noted {1}, {2} and {3}.",
        "In your interview we saw {1}, {2} and {3}.",
        "Your application showed {1}, {2} and {3}.",
        "What decided the vote was {1}, along with {2} and {3}.",
        "Those who met you described {1}, {2} and {3}.",
    ),
    qualities=REJECTION.qualities,
    fillers=(
        *_PROCESS,
        "Your first day would be a Monday[ in the coming month][ at nine in the morning][ at our main office].",
        "The contract[ and the staff handbook] will follow[ by post][ within five working days].",
        "Your manager will write to you[ before that date][ about the first week][ and the equipment you need].",
    ),
    closings=(
        "Let us have your reply by Friday.",
        "Please send us your reply by Friday.",
        "We would be glad to hear from you.",
        "You may write to us with any question about the contract.",
    ),
    signatures=REJECTION.signatures,
    words=(96.0, 14.0),
    tone=(0.70, 0.11),
)
