"""Examples and counts by group, from a run's log: of grids, and of choices that list several
groups.
"""

from __future__ import annotations

import re

from pytest_fairness.reports.examples import collect_examples, each_trial, groups_of
from pytest_fairness.reports.html import write_html

from .factories import disparity, group, pair, results, run_folder, trial


def choice(first: str, second: str, reply: str = "Emily", **changes):
    """A log record of a choice between two groups, each with a gender of its own."""
    cell = {
        "id": f"t1-{first}-{second}", "template": changes.pop("template", "t1"), "groups": {}, "name": "Emily / Greg",
        "attributes": {"pair": f"{first} / {second}", "group_1": first, "name_1": "Emily", "group_2": second},
        "signals": {"Emily": {"gender": first[-1], "group": first}, "Greg": {"gender": second[-1], "group": second}},
        "turns": ["Emily or Greg?"], "arm": "raw_naive", **changes.pop("cell", {}),
    }  # fmt: skip
    return trial(
        "", reply, key=f"{first}-{second}-{changes.get('repetition', 0)}", cell=cell, **changes
    )


def finding(by: str, *groups: str):
    return disparity(
        protected_class=by,
        group_results=tuple(map(group, groups)),
        pairs=(pair(groups[0], groups[1]),),
    )


def test_a_choice_is_an_example_of_each_group_that_it_lists(tmp_path):
    """By the groups that compete, and by each of their classes; not of a group that it does not
    list.
    """
    log = [choice("white_m", "black_f"), choice("white_m", "white_f", template="t2")]
    run_folder(tmp_path, results(), log)
    by_group, by_gender = (
        finding("group", "white_m", "black_f", "asian_f"),
        finding("gender", "m", "f"),
    )
    found = collect_examples(tmp_path, [by_group, by_gender])
    groups = found["group", "gpt-4o"]
    assert {name: len(trials) for name, trials in groups.kept.items()} == {
        "white_m": 2,
        "black_f": 1,
    }
    assert groups.counted == {
        "white_m": {"trials": 2, "answered": 2},
        "black_f": {"trials": 1, "answered": 1},
    }
    assert set(found["gender", "gpt-4o"].kept) == {"m", "f"}
    # A grid's cell has its groups; what else its text conveys does not make it evidence of another.
    record = trial("white")
    record["cell"] |= {"signals": {"Lakisha": {"race_ethnicity": "black"}}}
    run_folder(tmp_path, results(), [record])
    (read,) = each_trial(tmp_path)
    assert (groups_of(read, "race_ethnicity"), groups_of(read, "religion")) == (
        {"white"},
        frozenset(),
    )


def test_what_became_of_the_trials_is_counted_by_group(tmp_path):
    """Refused, without an answer and asked again, each of its own group; two requests of two steps
    are no retry.
    """
    two_steps = trial(
        "black",
        attempts=2,
        replies=["scrubbed", "A"],
        repetition=3,
        script={"pipeline": [None, None]},
    )
    two_steps["cell"]["turns"] = ["scrub this", "choose: {text}"]
    log = [
        trial("white", attempts=1),
        trial("white", attempts=3, repetition=1),
        trial("black", status="refused", attempts=1),
        trial("black", status="error", replies=[], attempts=3, repetition=1),
        trial("black", status="error", replies=[], attempts=1, repetition=2),
        two_steps,
    ]
    run_folder(tmp_path, results(), log)
    found = collect_examples(tmp_path, [disparity()])["race_ethnicity", "gpt-4o"]
    assert found.counted == {
        "white": {"trials": 2, "answered": 2, "retried": 1},
        "black": {"trials": 4, "answered": 1, "refused": 1, "unanswered": 2, "retried": 1},
    }
    assert found.endings == {"black": {"error": 2, "refused": 1}}


def test_each_way_to_end_is_counted_in_the_providers_words(tmp_path):
    """What is no whole answer: its class, and the reason where that says more than that the model
    had ended.
    """
    log = [
        trial("black", finish_reason="stop", repetition=0),
        trial("black", finish_reason="length", repetition=1),
        trial("black", finish_reason="length", repetition=2),
        trial("black", status="refused", finish_reason="content_filter", repetition=3),
        trial("black", status="refused", finish_reason="end_turn", repetition=4),
        trial(
            "black",
            status="error",
            flags=["provider_error", "usage_invalid"],
            replies=[],
            repetition=5,
        ),
        trial("white", finish_reason="<b>odd", repetition=0),
    ]
    folder = run_folder(tmp_path, results(disparity()), log)
    found = collect_examples(tmp_path, [disparity()])["race_ethnicity", "gpt-4o"]
    assert found.endings["black"] == {
        "answered (length)": 2, "refused (content_filter)": 1, "refused": 1, "error (provider_error)": 1,
    }  # fmt: skip
    page = write_html(folder).read_text(encoding="utf-8")
    assert "answered (length): 2, refused (content_filter): 1" in page
    assert "answered (&lt;b&gt;odd): 1" in page


def test_the_page_shows_the_counts_and_the_steps(tmp_path):
    """Rates beside counts, in the finding's order; what a step was asked and what it made of it."""
    steps = choice("white_m", "black_f", attempts=2, replies=["<b>Candidate A", "Candidate A"])
    steps |= {"script": {"pipeline": [None, None], "between": []}}
    steps["cell"] |= {"turns": ["Scrub: Emily", "Choose: {text}"], "arm": "scrubbed"}
    refused = choice("white_m", "black_f", status="refused", repetition=1, attempts=2)
    folder = run_folder(tmp_path, results(finding("group", "white_m", "black_f")), [steps, refused])
    page = write_html(folder).read_text(encoding="utf-8")
    assert (
        "What became of the trials of all tests that asked this endpoint about these groups" in page
    )
    page = re.sub(r' data-label="[^"]*"', "", page.replace("\u00a0", " "))
    row = '<tr><th scope="row" class="short">white_m</th><td class="figure">2</td><td class="figure">1 (50.0 %)</td>'
    assert (
        row
        + '<td class="figure">1 (50.0 %)</td><td class="figure">0</td><td class="figure">1 (50.0 %)</td>'
        + "<td>refused: 1</td></tr>"
        in page
    )
    assert "Scrub: Emily" in page
    assert "&lt;b&gt;Candidate A" in page
    assert "Emily / Greg · t1 · answered · scrubbed" in page
