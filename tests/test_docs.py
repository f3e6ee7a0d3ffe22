"""The documentation is true: its examples run, its links lead somewhere, its tables are those of
the code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import pytest_fairness
from pytest_fairness.pytest_layer.options import OPTIONS
from tests.support.markdown import ROOT, Page, anchors, blocks, links

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
#: Every page that a user reads; decisions and examples have links, too.
LINKED = [*PAGES, *sorted(DOCS.glob("decisions/*.md")), *sorted(ROOT.glob("examples/*/README.md")),
          ROOT / "README.md", ROOT / "personas" / "README.md", ROOT / "personas" / "names" / "README.md"]  # fmt: skip
#: Pages whose blocks are marked. The console sessions of baselines.md are shortened for the reader
#: and are not run.
RUN = [
    DOCS / f"{name}.md"
    for name in (
        "tutorial",
        "agents",
        "audit",
        "verdicts",
        "grids",
        "designs",
        "endpoints",
        "runs",
        "reports",
        "running",
        "many_machines",
        "selection",
        "letters",
        "red_team",
        "bias",
        "differences",
        "governance",
        "governance_processes",
        "lexicon",
        "linting",
        "testing",
        "findings",
        "ll144",
        "pictures",
        "ci",
        "commands",
    )
]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", RUN, ids=named)
def test_what_a_page_says_happens(path: Path, tmp_path: Path) -> None:
    """Files, commands and outputs of the page, in its order, in a project of its own."""
    Page(path, tmp_path).work_through()


@pytest.mark.parametrize(
    "path", [*RUN, DOCS / "other_logs.md"], ids=named
)  # tests/test_other_logs.py runs it
def test_every_block_of_code_is_shown_what_to_do(path: Path) -> None:
    """Code that nobody runs has to say so, and why."""
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language in ("python", "sh", "yaml"):
            assert block.action in ("file", "run", "exec") or (
                block.action == "not run" and block.argument
            ), f"{path.name}:{block.line}"


@pytest.mark.parametrize("path", LINKED, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    """Relative links name files that exist, and headings that these have."""
    for link in links(path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{path.name}: {link}"
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), (
            f"{path.name}: {link}"
        )


def test_the_table_of_options_is_that_of_the_code() -> None:
    """Flag, ini name, default and help of every option, in the order of ``--help``."""
    page = (DOCS / "runs.md").read_text(encoding="utf-8")
    cell = r"(`(?:--)?fairness[\w-]+`|–)"
    listed = re.findall(rf"^\| {cell} \| {cell} \| (.*?) \| (.*?) \|$", page, re.MULTILINE)

    def default(value: object) -> str:
        if isinstance(value, bool):
            return "on" if value else "off"
        return "–" if value in (None, "") else f"`{value}`"

    def name(text: str | None) -> str:
        return "–" if text is None else f"`{text}`"

    assert listed == [(name(o.flag), name(o.ini), default(o.default), o.help) for o in OPTIONS]


def test_every_option_that_is_named_exists() -> None:
    """No page sends a reader to an option that is not there."""
    known = {option.flag for option in OPTIONS if option.flag is not None}
    for path in [*PAGES, *ROOT.glob("examples/*/README.md"), ROOT / "README.md"]:
        assert (
            set(re.findall(r"--fairness-[a-z-]*[a-z]", path.read_text(encoding="utf-8"))) <= known
        ), path.name


def test_every_public_name_that_exists_is_explained() -> None:
    """Each name of ``pytest_fairness.__all__`` that can be imported stands in a page."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in [*PAGES, ROOT / "README.md"])
    silent = []
    for name in pytest_fairness.__all__:
        try:
            getattr(pytest_fairness, name)
        except (AttributeError, ImportError):
            continue
        if not re.search(rf"\b{name}\b", text):
            silent.append(name)
    assert silent == []


def test_the_numbers_of_the_example_are_its_own(tmp_path: Path) -> None:
    """What the text says of the worked example follows from the table in it."""
    from pytest_fairness import analyze_disparity

    page = (DOCS / "verdicts.md").read_text(encoding="utf-8")
    example: dict[str, Any] = {}
    exec(next(block.text for block in blocks(page) if block.argument == "test_credit.py"), example)
    pair = analyze_disparity(example["DECISIONS"], "approved", "race").pairs[2]
    assert (pair.group_1, pair.group_2) == ("black", "white")
    reason = (
        f"p_row {pair.p_row:.2g}, p_cluster {pair.p_cluster:.2g}, d {pair.effect:.3f} (90 % "
        f"{pair.effect_low:.3f} to "
        f"{pair.effect_high:.3f}), odds ratio {pair.statistics['odds_ratio']:.3f}, design effect "
        f"{pair.statistics['design_effect']:.2f}, minimum detectable effect {pair.mde:.2f}"
    )
    assert reason in " ".join(page.split())


def test_the_statistics_of_a_pair_are_all_listed(tmp_path: Path) -> None:
    """Every key of ``PairResult.statistics`` has its place in verdicts.md, under its own name."""
    import numpy as np
    import pandas as pd

    from pytest_fairness import analyze_disparity, analyze_four_fifths, analyze_preference

    page = (DOCS / "verdicts.md").read_text(encoding="utf-8")
    rng = np.random.default_rng(7)
    rows = [
        {"group": group, "name": f"{group}{name}", "template": template, "repetition": repetition}
        for group in "ab" for name in range(12) for template in ("t1", "t2") for repetition in range(3)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    table["score"] = rng.normal(size=len(table))
    table["mark"] = rng.integers(1, 6, size=len(table))
    table["yes"] = rng.random(len(table)) < 0.6
    table["label"] = rng.choice(["x", "y", "z"], size=len(table))
    refusing = table.assign(refused=(table["group"] == "a") & (table.index % 6 == 0))
    choices = pd.DataFrame(
        {"first": first, "second": second, "chosen": rng.choice([first, second]), "name": f"n{name}", "template": "t"}
        for name in range(30) for first, second in (("a", "b"), ("b", "a"))
    )  # fmt: skip
    findings = [
        analyze_disparity(table, outcome, "group") for outcome in ("score", "mark", "yes", "label")
    ]
    findings += [analyze_disparity(refusing, "score", "group"), analyze_four_fifths(table, "yes", "group"),
                 analyze_preference(choices)]  # fmt: skip
    keys = {key for finding in findings for pair in finding.pairs for key in pair.statistics}
    assert len(keys) > 40
    assert sorted(key for key in keys if f"`{key}`" not in page) == []


def test_the_index_of_decisions_has_each_page_once() -> None:
    """By the room that it is about, under its own title."""
    index = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^- \[\d{4}\]\((\S+)\) (.+)$", index, re.MULTILINE))
    pages = {
        path.name: path.read_text(encoding="utf-8").splitlines()[0].partition(". ")[2]
        for path in DOCS.glob("decisions/0*.md")
    }
    assert listed == pages
