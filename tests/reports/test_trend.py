"""Findings over several runs, as text and as a page; and how severe they are by what was tested."""

from __future__ import annotations

from pathlib import Path

from pytest_fairness.cli import main
from pytest_fairness.model import Finding, Verdict
from pytest_fairness.reports.escaping import columns_of
from pytest_fairness.reports.heat_maps import heat_maps
from pytest_fairness.reports.sections import Entry
from pytest_fairness.reports.trend import (
    MOST_TRENDS,
    ReadRuns,
    chart,
    read_runs,
    trend_page,
    trend_text,
    trends,
)

from .factories import HOSTILE, baseline, disparity, four_fifths, pair, passing, results, run_folder
from .page_reader import Page


def run(number: int, *findings: Finding, model: str = "gpt-4o-0613", **changes):
    models = [{"endpoint": "gpt-4o", "asked": "gpt-4o", "answered": {model: 800}}]
    about = {
        "id": f"2026-02-28-00{number}",
        "started": f"2026-02-28T1{number}:00:00+00:00",
        "models": models,
    }
    return results(*findings, run=about | changes)


def runs() -> tuple:
    """Three runs: a FAIL that was a PASS, with another model; four fifths and a baseline in the
    last alone.
    """
    calm = disparity(verdict=Verdict.PASS, pairs=(pair("white", "black", Verdict.PASS, 0.1),))
    other = passing(protected_class="gender")
    return (
        run(1, calm, other),
        run(2, other),
        run(3, disparity(), four_fifths(), baseline(), model="gpt-4o-0806"),
    )


def test_a_finding_is_followed_by_its_id_on_the_pair_that_decides_now():
    """The worst of the latest run first; a run that did not make it is a gap; each with the model
    that answered.
    """
    found = trends(runs())
    first = found[0]
    assert (first.latest.verdict, first.measure) == (Verdict.FAIL, "white – black, effect d")
    assert [(point.run, point.model, point.value()[0]) for point in first.points] == [
        ("2026-02-28-001", "gpt-4o-0613", 0.1),
        ("2026-02-28-002", "gpt-4o-0613", None),
        ("2026-02-28-003", "gpt-4o-0806", 0.81),
    ]
    # What the latest run does not make stands last, with what it was.
    assert found[-1].about == "word_count by gender, gpt-4o"
    measures = {
        one.latest.assertion: (one.measure, one.points[-1].value()[0]) for one in found[:-1]
    }
    assert measures["four_fifths"] == ("white – black, impact ratio", 0.668)
    assert measures["baseline"] == ("age: the score now", 88.1)
    drawn = chart(first)
    assert [row.part for row in drawn.rows] == ["gpt-4o-0613", "gpt-4o-0613", "gpt-4o-0806"]
    assert "another model answers" in drawn.caption


def test_runs_that_cannot_be_read_are_named(tmp_path: Path):
    """Beside the others, which stand in the order of their start; whatever names they have, the
    text stays inert.
    """
    hostile = run(4, disparity(test_id=HOSTILE, model_endpoint=HOSTILE, outcome=HOSTILE))
    folders = [
        run_folder(tmp_path / str(one.run["id"]), one) for one in (*reversed(runs()), hostile)
    ]
    (tmp_path / "2026-02-28-009").mkdir()
    read = read_runs([*folders, tmp_path / "2026-02-28-009"])
    assert [results.run["id"][-1] for results in read.runs] == ["1", "2", "3", "4"]
    text = trend_text(read)
    assert "cannot be read: 2026-02-28-009: " in text
    assert "  2026-02-28-003  gpt-4o-0806     +0.81  +0.51 to +1.11  FAIL\n" in text
    assert "  2026-02-28-002  gpt-4o-0613         –               –  not tested\n" in text
    assert not set("\x1b\x07\r\u202e\u200b\x00\u2028") & set(text)
    page = Page(trend_page(read))
    assert "1 run cannot be read." in page.text
    assert "2026-02-28-009: " in page.text
    assert len([svg for svg in page.all("svg") if "role" in svg]) == len(trends(read.runs))
    many = ReadRuns(
        (run(1, *(disparity(test_id=f"t::{at}") for at in range(MOST_TRENDS + 1))),), ()
    )
    shown = Page(trend_page(many))
    assert f"Below are the worst {MOST_TRENDS}; pytest-fairness trend prints all." in shown.text
    assert len(shown.all("article")) == MOST_TRENDS
    assert trend_text(ReadRuns((), ("a: b",))).endswith("cannot be read: a: b\n")
    assert max(map(columns_of, trend_text(ReadRuns(runs(), ())).splitlines())) <= 100


def test_the_command_ends_with_1_where_a_run_cannot_be_read(tmp_path: Path, capsys):
    """Named runs, in any order; a page that says which are simulated, as the text does."""
    whole = run_folder(tmp_path / "2026-02-28-001", run(1, disparity(simulated=True)))
    broken = run_folder(tmp_path / "2026-02-28-002", run(2))
    (broken / "findings.json").unlink()
    (broken / "manifest.json").write_text('{"id": "2026-02-28-002", "finished": "2026-02-28"}')
    page = tmp_path / "trend.html"
    assert main(["trend", str(whole), "--html", str(page)]) == 0
    assert "\nsimulated, no model was asked: 2026-02-28-001\n" in capsys.readouterr().out
    assert "Simulated endpoint." in Page(page.read_text(encoding="utf-8")).text
    assert main(["trend", str(broken), str(whole)]) == 1
    assert "cannot be read: 2026-02-28-002: " in capsys.readouterr().out


def test_heat_maps_show_the_worst_verdict_by_what_was_tested():
    """Only where there is more than one cell; what was not tested is not coloured; over runs, in
    how many of them.
    """
    assert heat_maps([run(1, disparity())]) == ()
    findings = (
        disparity(),
        passing(),
        passing(protected_class="race_ethnicity"),
        passing(model_endpoint="other"),
    )
    (heat,) = heat_maps([run(1, *findings)])
    assert heat.head == ("Model", "race_ethnicity", "gender")
    large, small = (
        f"largest |d| {abs(finding.pairs[0].effect):.2f}" for finding in (disparity(), passing())
    )
    assert large > small
    fail = Entry(verdict=Verdict.FAIL, small=("1 finding", large))
    passed = Entry(verdict=Verdict.PASS, small=("1 finding", small))
    mixed = Entry(verdict=Verdict.FAIL, small=("2 findings", "1 FAIL", large))
    assert heat.rows == (("gpt-4o", mixed, passed), ("other", Entry(words="not tested"), passed))
    # As severe as it is in either: a verdict says less than how far the groups are apart.
    tiers = (disparity(tier=1), passing(tier=2, protected_class="race_ethnicity"))
    (heat,) = heat_maps([run(1, *tiers)])
    assert heat.caption.startswith(
        "The worst verdict of each module in each tier, and the largest effect"
    )
    assert (heat.head, heat.rows) == (
        ("Module", "tier 1", "tier 2"),
        (("test_names", fail, passed),),
    )
    (heat,) = heat_maps([run(1, *tiers), run(2, tiers[1])])
    assert "in each tier over 2 runs" in heat.caption
    assert heat.rows[0][1:] == (
        Entry(verdict=Verdict.FAIL, small=("1 finding", "FAIL in 1 of 2 runs", large)),
        Entry(verdict=Verdict.PASS, small=("2 findings", "PASS in 2 of 2 runs", small)),
    )


def test_replays_and_runs_without_judgements_are_no_runs_of_their_own(tmp_path: Path):
    """Of a recording and its replays the last judgement counts; a merged run that nobody judged yet
    and a run without findings are left out, and said so; nothing is called unreadable.
    """
    made = [
        run(1, disparity()),
        run(2, disparity(verdict=Verdict.PASS), replay_of="2026-02-28-001"),
        run(3, passing()),
        run(4, disparity(), replay_of="2026-02-28-002"),
        run(5),
    ]
    folders = [run_folder(tmp_path / str(results.run["id"]), results) for results in made]
    merged = tmp_path / "2026-02-28-006"
    merged.mkdir()
    (merged / "manifest.json").write_text('{"id": "2026-02-28-006", "merged_from": [{}]}')
    read = read_runs([*folders, merged]).followed()
    assert [results.run["id"][-1] for results in read.runs] == ["4", "3"]
    assert read.unreadable == ()
    assert read.left_out == (
        "2026-02-28-005: it judged nothing",
        "2026-02-28-001: its replies were judged again in 2026-02-28-004",
        "2026-02-28-002: its replies were judged again in 2026-02-28-004",
        "2026-02-28-006: nobody has judged it yet",
    )
    assert "left out: 2026-02-28-006: nobody has judged it yet\n" in trend_text(read)
    assert "Runs that are left out" in Page(trend_page(read)).text


def test_a_run_that_left_the_test_out_is_no_change_of_model():
    first, gap, last = run(1, disparity()), run(2, passing(), models=[]), run(3, disparity())
    drawn = chart(trends((first, gap, last))[0])
    assert {row.part for row in drawn.rows} == {"gpt-4o-0613"}
    assert "another model" not in drawn.caption
