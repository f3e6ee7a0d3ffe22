"""Published audits, judged again: each page does what it says, from the figures that stand beside
it.
"""

from __future__ import annotations

import csv
import json
import os
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.support.markdown import ROOT, Page, anchors, blocks, links

GALLERY = ROOT / "docs" / "gallery"
INDEX = GALLERY / "README.md"
PAGES = sorted(set(GALLERY.glob("*.md")) - {INDEX})
PICTURES = runpy.run_path(str(ROOT / "tools" / "gallery_pictures.py"))
REDUCE = runpy.run_path(str(GALLERY / "bbq_reduce.py"))


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_what_a_page_says_happens(path: Path, tmp_path: Path) -> None:
    for table in (*GALLERY.glob("*.csv"), *GALLERY.glob("*.csv.gz")):
        shutil.copy(table, tmp_path)
    Page(path, tmp_path).work_through()


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_a_page_has_a_source_a_licence_a_picture_and_a_command(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for wanted in ("| data |", "| publication |", "| licence |", "## Made again"):
        assert wanted in text
    assert f"]({path.stem}.svg)" in text
    for block in blocks(text):
        if block.language in ("python", "sh"):
            assert block.action in ("exec", "run") or (block.action, bool(block.argument)) == (
                "not run",
                True,
            ), f"{path.name}:{block.line}"
    for link in links(text):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert "://" in link or target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def test_the_index_has_a_line_for_each_page() -> None:
    """Its licence and each of its figures stand on that page, in the order of the first page's list."""
    lines = [
        line for line in INDEX.read_text(encoding="utf-8").splitlines() if line.startswith("| [")
    ]
    listed = [line.partition("](")[2].partition(")")[0] for line in lines]
    assert sorted(listed) == [path.name for path in PAGES]
    first = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\(gallery/(\w+\.md)\)", first) == [INDEX.name, *listed]
    for name, line in zip(listed, lines, strict=True):
        page = (GALLERY / name).read_text(encoding="utf-8")
        _, title, data, licence, *judged = (cell.strip() for cell in line.split("|")[:-1])
        assert title.partition("]")[0].strip("[") in page
        assert licence.partition(":")[0] in page
        assert len(judged) == 3
        assert all(judged)
        for figure in re.findall(
            r"(?<![\w-])[+−]?\d(?:[\d,]*\d)?(?:\.\d+)?", " ".join((data, *judged))
        ):
            assert figure in page, f"{name}: {figure}"


def test_the_pictures_are_what_the_code_draws() -> None:
    """Byte for byte; ``UPDATE_DOCS=1`` draws them anew."""
    for name, text in PICTURES["drawn"]().items():
        if os.environ.get("UPDATE_DOCS"):
            (GALLERY / name).write_text(text, encoding="utf-8")
        assert (GALLERY / name).read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("bbq", "preds_Age.jsonl"),
        ("scores", "3.5_turbo_evaluation_results.csv"),
        ("actions", ""),
        ("compas", ""),
        ("mortgages", ""),
        ("new_york", ""),
        ("librarians", "gpt_4o_2024_08_06_seed_93187.json"),
    ],
)
def test_files_of_another_commit_are_refused(
    name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder is given where the page reads several files of it, else the file."""
    given = tmp_path / "given"
    if file:
        given.mkdir()
    (given / file).write_text("{}", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["reduce", str(given)])
    with pytest.raises(SystemExit, match="fetch that one"):
        runpy.run_path(str(GALLERY / f"{name}_reduce.py"), run_name="__main__")


def test_published_audits_are_counted_by_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is unknown, printed as none, or without applicants does not count; a table of one
    category is left out.
    """
    program = runpy.run_path(str(GALLERY / "new_york_reduce.py"))
    rows = [
        ("a", "sex", "Female", "Total", 90_000, 0.401, 0.94),
        ("a", "sex", "Male", "Total", 90_000, 0.425, 1),
        ("a", "sex", "Missing/Unknown", "Total", 70, 0.5, ""),
        ("a", "race/ethnicity", "Total", "Black", 4_000, 0.1, 0.9),
        ("a", "race/ethnicity", "Total", "White", 4_000, 0.2, 1),
        ("a", "race/ethnicity", "Total", "Asian", 0, "", ""),
        ("a", "race/ethnicity", "Female", "Asian", 4_000, 0.4, ""),
        ("b", "sex", "Female", "Total", 12, 0.25, 0.5),
        ("b", "sex", "Male", "Total", 12, 0.5, 1),
        ("c", "sex", "Female", "Total", 400, 0.5, 1),
    ]
    names = ["audit_id", "protected_char_group", "sex", "race_ethnicity", "number_of_applications"]
    audits = pd.DataFrame(rows, columns=[*names, "result", "impact_ratio"])
    audits = audits.assign(
        selection_or_scoring_rate="Selection",
        auditor=program["POOLING"],
        deploying_entity="somebody",
        tool_vendor="somebody",
        result_calc="",
        impact_calc="",
        any_group_ir_is_one=True,
        comparator_group=audits["impact_ratio"].eq(1),
    )
    file = tmp_path / "audits_full.csv"
    audits.to_csv(file, index=False)
    hashed = program["hashlib"].sha256(file.read_bytes()).hexdigest()
    monkeypatch.setitem(program["audits_of"].__globals__, "SHA256", hashed)
    published = program["audits_of"](file)
    counted = program["verdicts_of"](program["tables_of"](published))
    assert counted.to_numpy().tolist() == [
        ["race/ethnicity", "yes", ".9 and more", "under .8", "FAIL", "FAIL", 1],
        ["sex", "yes", ".9 and more", ".9 and more", "FLAG", "PASS", 1],
        ["sex", "yes", "under .8", "under .8", "INCONCLUSIVE", "INCONCLUSIVE", 1],
    ]
    assert program["published"](published) == (
        "a ratio under four fifths: 1 of 3 audits (33%), 1 of 4 tables (25%); "
        "a ratio above one: 0 of 3 audits (0%)\n"
    )


# ------------------------------------------------------------------ how counts were made


def item(**changes: Any) -> dict[str, Any]:
    """A question of BBQ's form, made for this test."""
    return {
        "question_index": "3", "question_polarity": "neg", "context_condition": "ambig",
        "answer_info": {"ans0": ["aunt", "old"], "ans1": ["niece", "nonOld"], "ans2": ["Unknown", "unknown"]},
        "additional_metadata": {"stereotyped_groups": ["old"]},
        "ans0": "The aunt", "ans1": "The niece", "ans2": "Cannot be told.",
        "unifiedqa-t5-11b_pred_race": "the aunt", **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("the aunt", 0),
        ("The niece.", 1),
        ("cannot be told", 2),
        ("the niece, of course", 1),
        ("somebody", None),
    ],
)
def test_an_answer_is_one_of_three(given: str, place: int | None) -> None:
    assert REDUCE["answered"](item(**{"unifiedqa-t5-11b_pred_race": given})) == place


def test_counts_are_of_whom_an_answer_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both people of an answer are counted, named or not; what the context tells, and pairs of one
    group, are left out.
    """
    both = {"ans0": ["aunt", "old"], "ans1": ["uncle", "old"], "ans2": ["Unknown", "unknown"]}
    made = [
        item(),
        item(**{"unifiedqa-t5-11b_pred_race": "Cannot be told"}),
        item(context_condition="disambig"),
        item(answer_info=both),
        item(**{"unifiedqa-t5-11b_pred_race": "nobody"}),
    ]
    file = tmp_path / "preds_Age.jsonl"
    file.write_text("\n".join(map(json.dumps, made)), encoding="utf-8")
    hashed = REDUCE["hashlib"].sha256(file.read_bytes()).hexdigest()
    of_reduction = REDUCE["counts_of"].__globals__
    monkeypatch.setitem(of_reduction, "SHA256", {"Age": hashed})
    assert dict(REDUCE["counts_of"](tmp_path)) == {
        ("Age", "03", "neg", "stereotyped", "1"): 1,
        ("Age", "03", "neg", "stereotyped", "0"): 1,
        ("Age", "03", "neg", "other", "0"): 2,
    }
    monkeypatch.setitem(of_reduction, "SHA256", {"Age": "0" * 64})
    with pytest.raises(SystemExit, match="fetch that one"):
        REDUCE["counts_of"](tmp_path)


def test_the_counts_are_whole() -> None:
    """Each answer stands once for either person."""
    with (GALLERY / "bbq.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == set(REDUCE["COLUMNS"])
    answers: dict[tuple[str, ...], dict[str, int]] = {}
    for row in rows:
        where = (row["category"], row["question"], row["polarity"])
        sides = answers.setdefault(where, dict.fromkeys(REDUCE["SIDES"], 0))
        sides[row["group"]] += int(row["number_of_rows"])
    assert all(len(set(sides.values())) == 1 for sides in answers.values())
    assert len(answers) == 6 * 25 * 2
