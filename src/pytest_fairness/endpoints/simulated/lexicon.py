"""What the simulated model knows without being told: labels, pronouns, and the names of the classic audit study.

First names: Bertrand & Mullainathan (2004), *Are Emily and Greg More Employable than Lakisha and Jamal?*,
American Economic Review 94(4), Table 8.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PEOPLE = (
    r"(?:man|men|woman|women|male|female|person|people|American|candidate|applicant|patient|tenant|employee|borrower"
    r"|worker|student|nurse|engineer|doctor|teacher|manager|customer|client|parent|father|mother|boy|girl|non-binary)"
)


def _colour(word: str) -> re.Pattern[str]:
    # Black and White are surnames too, so they need company: an article, a comma, a noun for people.
    return re.compile(
        rf"(?:\b(?:[Aa]n?|is|as|[Rr]ace:?|[Ee]thnicity:?)|[,(/;:|])\s*{word}\b(?!\s+[A-Z])"
        rf"|\b{word}(?:\s|-|,\s)\s*{_PEOPLE}\b"
        rf"|\b{word.lower()}\s+{_PEOPLE}\b"
    )


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


#: (protected class, group, words one of which must occur, pattern), the more particular first.
LABELS: tuple[tuple[str, str, frozenset[str], re.Pattern[str]], ...] = tuple(
    (protected_class, group, frozenset(triggers.split()), pattern)
    for protected_class, group, triggers, pattern in (
        ("race_ethnicity", "black", "african afro", _any(r"African[- ]American|Afro[- ]\w+")),
        ("race_ethnicity", "black", "black", _colour("Black")),
        ("race_ethnicity", "hispanic", "hispanic latino latina latinx latine chicano chicana mexican",
         _any(r"Hispanic|Latin[oax]|Latine|Chican[oa]|Mexican[- ]American")),
        ("race_ethnicity", "asian", "asian pacific", _any(r"Asian|Pacific Islander")),
        ("race_ethnicity", "middle_eastern", "middle arab", _any(r"Middle[- ]Eastern|Arab")),
        ("race_ethnicity", "native_american", "native indian", _any(r"Native American|American Indian|Alaska Native")),
        ("race_ethnicity", "white", "caucasian european", _any(r"Caucasian|European[- ]American")),
        ("race_ethnicity", "white", "white", _colour("White")),
        ("gender", "non_binary", "nonbinary non genderqueer they gender",
         _any(r"non-?binary|genderqueer|they/them|gender[- ]nonconforming")),
        ("gender", "female", "female woman women lady mother daughter ms mrs she",
         _any(r"female|woman|women|lady|mother|daughter|she/her|Ms|Mrs")),
        ("gender", "male", "male man gentleman father son mr he", _any(r"male|man|gentleman|father|son|he/him|Mr")),
        ("religion", "muslim", "muslim islam islamic mosque ramadan eid hijab",
         _any(r"Muslim|Islam|Islamic|mosque|Ramadan|Eid|hijab")),
        ("religion", "jewish", "jewish judaism synagogue hanukkah passover kippah",
         _any(r"Jewish|Judaism|synagogue|Hanukkah|Passover|kippah")),
        ("religion", "hindu", "hindu hinduism diwali", _any(r"Hindu|Hinduism|Diwali")),
        ("religion", "sikh", "sikh sikhism gurdwara", _any(r"Sikh|Sikhism|gurdwara")),
        ("religion", "buddhist", "buddhist buddhism", _any(r"Buddhist|Buddhism")),
        ("religion", "christian", "christian christianity catholic protestant church easter",
         _any(r"Christian|Christianity|Catholic|Protestant|church|Easter")),
        ("religion", "none", "atheist agnostic religious nonreligious", _any(r"atheist|agnostic|non-?religious")),
        ("disability", "disabled",
         "wheelchair disabled disability blind deaf hard autism autistic adhd dyslexia dyslexic epilepsy epileptic"
         " bipolar depression neurodivergent cerebral multiple amputee prosthetic screen",
         _any(r"wheelchair|disabled|disability|blind|deaf|hard[- ]of[- ]hearing|autis(?:m|tic)|ADHD|dyslexi[ac]"
              r"|epilep(?:sy|tic)|bipolar|depression|neurodivergent|cerebral palsy|multiple sclerosis|amputee"
              r"|prosthetic|screen reader")),
        ("sexual_orientation", "gay", "gay homosexual queer lgbt lgbtq same",
         _any(r"gay|homosexual|queer|LGBTQ?\+?|same-sex")),
        ("sexual_orientation", "lesbian", "lesbian", _any(r"lesbian")),
        ("sexual_orientation", "bisexual", "bisexual pansexual", _any(r"bisexual|pansexual")),
        ("sexual_orientation", "heterosexual", "heterosexual straight",
         _any(r"heterosexual|straight (?:man|woman|person|male|female)")),
        ("national_origin", "immigrant", "immigrant immigrants immigrated foreign refugee asylum visa native second"
         " heavy strong green",
         _any(r"immigrants?|immigrated|foreign[- ]born|refugee|asylum seeker|visa holder"
              r"|(?:non-native|second-language) English|(?:foreign|heavy|strong) accent|green card")),
        ("national_origin", "native_born", "native born",
         _any(r"native[- ]born|native English speaker|born in the (?:US|USA|United States)")),
        ("socioeconomic_status", "low", "low working food public first",
         _any(r"low[- ]income|working[- ]class|food stamps|public housing|first[- ]generation student")),
        ("socioeconomic_status", "high", "high wealthy affluent upper country boarding",
         _any(r"high[- ]income|wealthy|affluent|upper[- ]class|country club|boarding school")),
        ("age", "older", "elderly senior retiree baby boomer older",
         _any(r"elderly|senior citizen|retiree|boomer|older (?:man|woman|person|worker|applicant|candidate)")),
        ("age", "younger", "millennial gen younger young",
         _any(r"millennial|gen z|younger (?:man|woman|person|worker|applicant|candidate)|young (?:man|woman|person)")),
    )
)  # fmt: skip

#: (subject pronoun, gender that it conveys, its forms)
PRONOUNS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("she", "female", frozenset(("she", "her", "hers", "herself"))),
    ("he", "male", frozenset(("he", "him", "his", "himself"))),
)


def _audit(race: str, gender: str, names: str) -> dict[str, dict[str, str]]:
    return {name: {"race_ethnicity": race, "gender": gender} for name in names.split()}


#: First name → the groups that it conveys.
NAMES: dict[str, dict[str, str]] = {
    **_audit("white", "female", "Allison Anne Carrie Emily Jill Kristen Laurie Meredith Sarah"),
    **_audit("white", "male", "Brad Brendan Brett Geoffrey Greg Jay Matthew Neil Todd"),
    **_audit("black", "female", "Aisha Ebony Keisha Kenya Lakisha Latonya Latoya Tamika Tanisha"),
    **_audit("black", "male", "Darnell Hakim Jamal Jermaine Kareem Leroy Rasheed Tremayne Tyrone"),
}

_NOT_NAMES = """
    a an the this that these those he she they it we you i his her their our my your its and or but if when while
    write draft describe rate score give respond answer reply please decide choose select pick rank evaluate assess
    review consider imagine suppose assume act based on in at by with without between using use as to for from of is
    are was were be has have had do does did can could should would will may might must not no yes only just one two
    three four five candidate candidates applicant applicants person people patient tenant employee borrower
    employer role position job letter reference summary resume cv profile company team manager human resources hr
    ceo cto python java sql aws english spanish french german american african asian european hispanic latino latina
    black white monday tuesday wednesday thursday friday saturday sunday january february march april june july
    august september october november december university college school bachelor master phd mba bs ba ms computer
    science engineering engineer data scientist nurse software senior junior mid-career scale rating decision
    criteria qualifications experience skills years year age gender race ethnicity name approve deny hire reject
    accept decline json now then here there what which who why how where mr mrs mx dr dear regards sincerely new
    york san los united states us usa uk option label male female woman man non-binary muslim christian jewish hindu
"""
#: Capitalised words that begin no name.
WORDS_NOT_NAMES = frozenset(_NOT_NAMES.split())
_SURNAMES = "black white english german french may will senior school engineer york young"
#: Of these, the words that are surnames after a first name.
SURNAMES_TOO = frozenset(_SURNAMES.split())
#: And those that are first names where a surname follows, or where a name bank says so.
FIRST_NAMES_TOO = frozenset(("april", "august", "june", "may", "san", "will", "you"))

_ALIASES = {
    "african_american": "black",
    "black_african_american": "black",
    "caucasian": "white",
    "white_caucasian": "white",
    "latino": "hispanic",
    "latina": "hispanic",
    "latinx": "hispanic",
    "hispanic_latino": "hispanic",
    "asian_pacific_islander": "asian",
    "nonbinary": "non_binary",
    "man": "male",
    "woman": "female",
    "race": "race_ethnicity",
    "ethnicity": "race_ethnicity",
}
_NOT_WORD = re.compile(r"[^\w]+|_+")


@lru_cache(maxsize=4096)
def slug(text: str) -> str:
    """One spelling for a class or a group: "Black/African American" and "black" are the same."""
    plain = _NOT_WORD.sub("_", text.strip().casefold()).strip("_")
    return _ALIASES.get(plain, plain)
