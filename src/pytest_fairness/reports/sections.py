"""The document that every sink renders, as plain data: sentences, tables, pictures, conversations,
under headings.

Builders make a :class:`Page` of parts; a sink (``html``, ``plain_text``, ``markdown``, ``slack``,
``pdf``) has a short function for each part that it can show. A picture stands beside its table, so
that a sink without pictures loses no figure.

Any suite can hand in sections of the report (``NAME.sections.json`` in the run's folder) or, where
they are many, a page of its own (``NAME.page.json``, which becomes ``NAME.html``). Texts are as
they are, hostile or not; the sink escapes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, Union

import msgspec

from pytest_fairness.errors import FairnessError
from pytest_fairness.model import Reason, Verdict, to_json
from pytest_fairness.reports.charts import Chart, Spec
from pytest_fairness.runs.files import write_atomically

SUFFIX = ".page.json"
SECTIONS_SUFFIX = ".sections.json"
T = TypeVar("T")
Kind: TypeAlias = Literal["", "heat", "findings", "sign"]
"""Of a table: figures, tinted squares, lines that stand below each other on a narrow screen, lines
to sign on.
"""


class Entry(Spec, frozen=True):
    """More than words in a table: a verdict as a badge, a link to a section or to a ``file`` beside
    the page, small print on lines of its own, marks; ``tint`` colours it, from −5 (less) to 5
    (more).
    """

    words: str = ""
    verdict: Verdict | None = None
    reason: Reason | None = None
    link: str = ""
    file: str = ""
    small: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    tint: int = 0

    def __post_init__(self) -> None:
        if ":" in self.file or self.file.startswith(("/", "\\")):
            raise ValueError(f"{self.file!r:.80} is no file beside the page")


class Table(Spec, tag="table", frozen=True):
    """Rows under a head; the first column names the row, the others are figures, but for verdicts
    and *words*.

    ``anchors``: what links to a row are called, empty where nothing leads there; none for a table
    without such rows. ``more`` says how many rows are left out.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | Entry, ...], ...]
    words: tuple[str, ...] = ()
    kind: Kind = ""
    anchors: tuple[str, ...] = ()
    more: str = ""

    def is_figure(self, column: int) -> bool:
        return column > 0 and self.head[column] not in ("verdict", *self.words)


Columns: TypeAlias = dict[str, Callable[[Any], Any]]
"""The title of each column, and what makes its words or :class:`Entry` of an item."""


def table(
    caption: str, items: Iterable[Any], columns: Columns, words: Sequence[str] = (), kind: Kind = ""
) -> Table:
    """A row for each of *items*; *columns* say what stands under which title."""
    rows = []
    for item in items:
        rows.append(tuple(cell(item) for cell in columns.values()))
    return Table(
        caption=caption, head=tuple(columns), rows=tuple(rows), words=tuple(words), kind=kind
    )


def of_columns(shown: Table, *titles: str) -> Table:
    """Return *shown* with the columns of these *titles* alone, for a narrow page."""
    places = list(map(shown.head.index, titles))
    rows = tuple(tuple(map(row.__getitem__, places)) for row in shown.rows)
    return msgspec.structs.replace(shown, head=titles, rows=rows)


class Facts(Spec, tag="facts", frozen=True):
    """Names and what they stand for."""

    rows: tuple[tuple[str, str], ...]


def facts(rows: Mapping[str, object]) -> Facts:
    """Return what is known of *rows*; those that are empty are left out."""
    shown = []
    for name, value in rows.items():
        if value not in (None, ""):
            shown.append((name, str(value)))
    return Facts(rows=tuple(shown))


class Link(Spec, tag="link", frozen=True):
    """Words that lead to the section *to*."""

    words: str
    to: str


class Notes(Spec, tag="notes", frozen=True):
    """Remarks, a line each."""

    items: tuple[str, ...]


class Printed(Spec, tag="printed", frozen=True):
    """Lines that keep their blanks; they stand in the terminal and in the Markdown report, too."""

    lines: tuple[str, ...]


class Counts(Spec, tag="counts", frozen=True):
    """Counts of the findings of each verdict."""

    rows: tuple[tuple[Verdict, int], ...]


class Statements(Spec, tag="statements", frozen=True):
    """Conclusions side by side: each a section's heading, sentence and verdict.

    ``more`` says how many others there are.
    """

    items: tuple[Section, ...]
    more: str = ""


class Dialogue(Spec, tag="dialogue", frozen=True):
    """Questions and answers, verbatim: who speaks, and the text. What the model said is a
    ``reply``.
    """

    about: str
    turns: tuple[tuple[str, str], ...]


class ScoredReply(Spec, frozen=True):
    """A reply with its score, in runs of words: alike in both replies, ``differs``, or a ``name``."""

    who: str
    score: str
    words: tuple[tuple[str, str], ...]


class SideBySide(Spec, tag="side_by_side", frozen=True):
    """Two replies to what is the same but for the person."""

    about: str
    replies: tuple[ScoredReply, ...]


class Details(Spec, tag="details", frozen=True):
    """Parts that are shown on request."""

    summary: str
    parts: tuple[Part, ...]


class Section(Spec, tag="section", frozen=True):
    """Parts under a heading, with the verdict on them, if there is one, and the sentence that says
    it.
    """

    heading: str
    id: str = ""
    about: str = ""
    verdict: Verdict | None = None
    reason: Reason | None = None
    sentence: str = ""
    chips: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    tone: Literal["", "failed", "undecided", "nothing", "passed"] = ""
    parts: tuple[Part, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what stands beside a statement, a line each."""
        notes: tuple[str, ...] = ()
        for part in self.parts:
            if isinstance(part, Notes):
                notes += part.items
        return notes


Part: TypeAlias = Union[  # noqa: UP007 - the names stand in strings until all are defined
    str,
    Table,
    Facts,
    Link,
    Notes,
    Printed,
    Counts,
    Statements,
    Dialogue,
    SideBySide,
    Details,
    Section,
    Chart,
]


class Banner(Spec, frozen=True):
    """A notice to read before anything else: ``about`` in a word or two, and the ``words``."""

    kind: Literal["note", "missing", "simulated", "replayed"]
    about: str
    words: str


class Page(Spec, frozen=True):
    """Sections under a title; ``name`` is what a link to the page is called."""

    name: str
    title: str
    lead: str
    sections: tuple[Section, ...]
    simulated: bool = False
    replayed: bool = False
    banners: tuple[Banner, ...] = ()

    @property
    def opening(self) -> tuple[Banner, ...]:
        """Every banner: first where the replies come from."""
        sources = []
        if self.simulated:
            which = ""
            if any(map(_is_marked, self.sections)):
                which = " for what is marked “simulated”"
            sources.append(
                Banner(
                    kind="simulated",
                    about="Simulated endpoint.",
                    words=f"No model was asked{which}. The replies are made up by a seeded program, "
                    "so they show how the test works and say nothing about any model.",
                )
            )
        if self.replayed:
            words = "Replies come from a recorded run; no model was asked now."
            sources.append(Banner(kind="replayed", about="Replayed.", words=words))
        return (*sources, *self.banners)


def _is_marked(section: Section) -> bool:
    """Return whether *section* says of itself, or of a statement in it, where its replies come
    from.
    """
    if section.marks:
        return True
    for part in section.parts:
        if isinstance(part, Statements) and any(item.marks for item in part.items):
            return True
    return False


def write_page(run_dir: Path, stem: str, page: Page) -> None:
    """Hand *page* in: it becomes ``STEM.html``. Raises StoreError."""
    _write(run_dir / f"{stem}{SUFFIX}", page)


def write_sections(run_dir: Path, stem: str, *sections: Section) -> None:
    """Hand *sections* in: they stand in every report of the run, after its findings. Raises
    StoreError.
    """
    _write(run_dir / f"{stem}{SECTIONS_SUFFIX}", sections)


def write_json(path: Path, results: object) -> None:
    """Write the *results* of a suite beside the reports, safe to read in any encoding. Raises
    StoreError.
    """
    text = json.dumps(to_json(results), ensure_ascii=True, allow_nan=False, indent=1)
    write_atomically(path, text.encode("ascii"))


def _write(path: Path, handed_in: object) -> None:
    text = json.dumps(to_json(msgspec.to_builtins(handed_in)), ensure_ascii=True, allow_nan=False)
    write_atomically(path, text.encode("ascii"))


def read_pages(run_dir: Path) -> dict[str, Page]:
    """The pages that suites handed in, by their stems. Raises FairnessError, naming the file, for
    what is none.
    """
    return {stem: _read(run_dir / f"{stem}{SUFFIX}", Page) for stem in page_stems(run_dir)}


def read_sections(run_dir: Path) -> tuple[Section, ...]:
    """The sections that suites handed in, those of one suite together, and those of one id as one.
    Raises as :func:`read_pages`.
    """
    sections: list[Section] = []
    places: dict[str, int] = {}
    for path in sorted(run_dir.glob(f"*{SECTIONS_SUFFIX}")):
        for section in _read(path, tuple[Section, ...]):
            place = places.setdefault(section.id or str(len(sections)), len(sections))
            if place == len(sections):
                sections.append(section)
            else:
                sections[place] = _joined(sections[place], section)
    return tuple(sections)


def _joined(section: Section, more: Section) -> Section:
    """Return *section* with the parts of *more*: rows of a table under the same caption and head
    stand below each other.
    """
    parts = list(section.parts)
    for part in more.parts:
        if not parts:
            parts.append(part)
        else:
            parts += _one_table(parts.pop(), part)
    return msgspec.structs.replace(section, parts=tuple(parts))


def _one_table(part: Part, after: Part) -> tuple[Part, ...]:
    """Return a *part* and the one *after* it: as one table, where that goes on with its rows."""
    if not isinstance(part, Table) or not isinstance(after, Table):
        return part, after
    if (part.caption, part.head) != (after.caption, after.head):
        return part, after
    return (msgspec.structs.replace(part, rows=(*part.rows, *after.rows)),)


def _read(path: Path, kind: type[T]) -> T:
    try:
        # Not strict about numbers: an infinite one stands as a text.
        return msgspec.convert(json.loads(path.read_bytes()), kind, strict=False)
    except (OSError, ValueError, RecursionError) as error:
        raise FairnessError(f"{path} cannot be read: {error}") from error


def page_stems(run_dir: Path) -> list[str]:
    """Return what the pages that suites handed in are called."""
    return sorted(path.name.removesuffix(SUFFIX) for path in run_dir.glob(f"*{SUFFIX}"))


def printed_lines(sections: Iterable[Section]) -> list[str]:
    """Return what *sections* have to print, a line each, with an empty one before each block."""
    lines: list[str] = []
    for section in sections:
        for part in section.parts:
            if isinstance(part, Printed):
                lines += ["", *part.lines]
    return lines
