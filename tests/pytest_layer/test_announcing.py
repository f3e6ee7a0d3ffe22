"""Before anything is paid for, a session says how much it asks, of whom, for how much and for how
long.
"""

from __future__ import annotations

import re

import pytest

from tests.support.servers import ModelServer
from tests.support.sessions import run_pytest

from .conftest import Project

TEST = """
import pytest

grid = pytest.mark.fairness_grid(
    template="Write one line about {name}.", groups={"gender": ["female", "male"]}, names=5, repetitions=3)

@grid
def test_one(trials):
    assert len(trials) == 30

@grid
def test_two(trials):
    assert len(trials) == 30
"""


def endpoints(server: ModelServer, extra: str = "") -> str:
    return f"""
endpoints:
  - name: model
    type: openai
    model: gpt-test
    base_url: {server.openai_url}
    default_parameters: {{max_tokens: 100}}
{extra}
"""


PRICE = "    price: {input_per_million: 1.0, output_per_million: 10.0}"
#: A system of the test's own, whose price nobody knows.
OWN = """
import pytest

@pytest.fixture
def endpoint():
    return lambda text: "fine"

@pytest.mark.fairness_grid(template="{name}?", groups={"gender": ["female", "male"]}, names=2, repetitions=2)
def test_own(trials):
    assert len(trials) == 8
"""


def test_a_paid_endpoint_is_announced_with_cost_and_time(project: Project) -> None:
    """Two tests on one grid share their 30 trials, which are counted and priced once; a cap stands
    beside.
    """
    with ModelServer() as server:
        project.write(TEST, endpoints(server, PRICE))
        result = project.run(
            "--fairness-endpoint",
            "model",
            "-o",
            "fairness_concurrency=10",
            "--fairness-max-cost",
            "5",
        )
    text = result.stdout.str()
    assert re.search(
        r"fairness: 2 tests, up to 30 trials, endpoint model, seed \d+, run .fairness", text
    ), text
    # 30 replies of 100 tokens at $10 a million, and some 11 tokens in at $1.
    line = re.search(
        r"fairness: about 30 requests, about \$0\.03, at most \$0\.03 \(cap \$5\.00\), about (\d+) s",
        text,
    )
    assert line, text
    assert line[1] == "6"  # three rounds of ten, two seconds each
    assert len(server.requests) == 30


def test_an_unknown_price_is_shown_and_so_is_the_mend(project: Project) -> None:
    with ModelServer() as server:
        project.write(TEST, endpoints(server))
        result = project.run("--fairness-endpoint", "model")
    result.stdout.fnmatch_lines(
        ["*about 30 requests, cost unknown (give price: in endpoints.yaml), about *"]
    )


def test_no_price_is_talked_of_where_none_is_known_or_due(project: Project) -> None:
    """The simulated endpoint costs nothing, and what a test's own system costs is its own affair;
    -q says nothing.
    """
    project.write(TEST)
    result = project.run()
    result.stdout.fnmatch_lines(
        ["fairness: 2 tests, up to 30 trials, endpoint simulated (no model is asked)*"]
    )
    result.stdout.no_fnmatch_line("fairness: about*")
    result.stdout.no_fnmatch_line("fairness: test_one*texts*")  # which are alike
    project.write(OWN)
    result = project.run()
    result.stdout.fnmatch_lines(["fairness: 1 test, up to 8 trials*"])
    result.stdout.no_fnmatch_line("fairness: about*")
    project.run("-q").stdout.no_fnmatch_line("fairness: 1 test*")


def test_a_large_grid_is_counted_on_a_sample(project: Project) -> None:
    """Requests of a large grid are counted on some of its cells and given for all of them."""
    axes = "a=list(range(10)), b=list(range(10)), c=list(range(4)), repetitions=1"
    large = TEST.replace("Write one line about {name}.", "{name}, {a} {b} {c}?").replace(
        "repetitions=3", axes
    )
    with ModelServer() as server:
        project.write(large.partition("@grid\ndef test_two")[0], endpoints(server, PRICE))
        result = project.run("--fairness-endpoint", "model", "--fairness-max-cost", "0.0000001")
    result.stdout.fnmatch_lines(
        ["fairness: 1 test, up to 4,000 trials*", "fairness: about 4,000 requests*"]
    )


# ---------------------------------------------------------------- what to know of the designs


def test_a_sample_is_never_silent(project: Project) -> None:
    """Of grids and of choices: how much of the whole is asked, once for the tests that share a
    design.
    """
    project.write(
        """
        import pytest

        part = pytest.mark.fairness_grid(template="Rate {name} for {a} in {b}.", a=list("abcdefghij"),
                                         b=list("abcdefghij"), groups={"race_ethnicity": ["white", "black"]},
                                         repetitions=1, sample=41)

        @part
        def test_one(trials):
            assert len(trials) == 40

        @part
        def test_two(trials):
            assert len(trials) == 40

        @pytest.mark.fairness_pairs(template="Select one for {role}: {name_1} or {name_2}.", sample=30,
                                    candidates="four_names", role=list("abcdefghij"), repetitions=2)
        def test_choices(trials):
            assert len(trials) == 48
            assert trials.groupby(["pair", "order"]).size().nunique() == 1
        """
    )
    result = project.run()
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "fairness: 3 tests, up to 88 trials*",
            "fairness: test_one, test_two: a balanced sample is asked, 40 of 4,000 cells",
            "fairness: test_choices: a balanced sample is asked, 24 of 120 cells",
        ]
    )


def test_unequal_length_and_broken_grammar_are_shown_before_anything_is_sent(
    project: Project,
) -> None:
    """What differs between the groups beside the group; what a terminal would obey is shown
    instead.
    """
    project.write(
        r"""
        import pytest

        @pytest.mark.fairness_grid(
            template="{name} is here, and they has applied.", repetitions=1,
            groups={"team": {"nor\x1bth": ["Ann Lee"], "south": ["Bartholomew Montgomery-Smythe"]}})
        def test_uneven(trials):
            pass
        """
    )
    result = project.run()
    text = result.stdout.str()
    assert "unequal length: the texts of south have 60 characters on average, those of nor" in text
    assert "fairness: test_uneven: south: 'they has' reads wrong" in text
    assert "\x1b" not in text


def test_what_a_design_cannot_decide_is_shown_with_what_would(project: Project) -> None:
    """Too small for a verdict, or one name a group; not of large designs, nor of tests of one cell."""
    project.write(
        """
        import pytest

        def grid(**options):
            groups = {"gender": ["female", "male"]}
            return pytest.mark.fairness_grid(template="Greet {name}.", groups=groups, **options)

        @grid(names=5, repetitions=2)
        def test_small(trials): pass

        @grid(names=1, repetitions=60)
        def test_one_name(trials): pass

        @grid(names=(20,), repetitions=5)
        def test_large(trials): pass

        @grid(names=1, repetitions=2)
        def test_cells(cell): pass
        """
    )
    result = project.run()
    result.stdout.fnmatch_lines(
        [
            "fairness: test_small: a comparison by gender can never PASS or FAIL: 10 of at least "
            "30 trials a group;"
            " a PASS is likely with * names a group (now 5), or *",
            "fairness: test_one_name: a comparison by gender can never FAIL: a single name or "
            "label a group: *",
        ]
    )
    result.stdout.no_fnmatch_line("fairness: *test_large*never*")
    result.stdout.no_fnmatch_line("fairness: *test_cells*never*")


def test_sessions_of_large_designs_import_no_statistics_to_start(project: Project) -> None:
    """Whoever judges nothing does not wait for scipy."""
    project.write(
        """
        import sys
        import pytest

        @pytest.mark.fairness_grid(template="Greet {name}.", groups={"gender": ["female", "male"]}, repetitions=5)
        def test_large(trials):
            assert "pytest_fairness.analysis.planning" not in sys.modules
        """
    )
    run_pytest(project.path, fresh=True).assert_outcomes(passed=1)


LOOKS = """
import pytest
from pytest_fairness import assert_no_disparity

@pytest.mark.fairness_grid(
    template=["Hire {name}?", "{name}?"], groups={"gender": ["female", "male"]}, names=(10, 20, 40)
)
def test_looks(trials):
    assert_no_disparity(trials, outcome="decision", by="gender")
"""


def test_what_a_fair_system_is_expected_to_be_asked_is_announced(project: Project) -> None:
    """Trials and their price, for a fair system and at most, and what the cap is held against."""
    with ModelServer() as server:
        project.write(LOOKS, endpoints(server, PRICE))
        arguments = ("--fairness-endpoint", "model", "--fairness-max-cost", "5")
        text = project.run(*arguments).stdout.str()
    size = re.search(
        r"fairness: 1 test, expected about (\d+) trials \(\$(\S+)\) if fair, at most 480 "
        r"\(\$(\S+)\), endpoint model,",
        text,
    )
    assert size, text
    assert 240 < int(size[1]) < 400
    assert float(size[3]) / float(size[2]) == pytest.approx(480 / int(size[1]), rel=0.1)
    assert "(cap $5.00, held against each stage before it is asked)" in text
    simulated = project.run().stdout.str()
    assert f"1 test, expected about {size[1]} trials if fair, at most 480, endpoint" in simulated


def test_names_that_end_before_the_looks_do_are_told(project: Project) -> None:
    """Of a yes/no outcome, with the PASS rate of a fair system; not of numbers, which few names
    decide, nor of names that a test says.
    """
    names = ", ".join(f'"Ann L{letter}"' for letter in "abcdefghijklmnopqrst")
    other = names.replace("Ann", "Bob")
    project.write(
        f"""
        import pytest
        from pytest_fairness import assert_no_disparity

        def grid(**options):
            groups = {{"team": {{"north": [{names}], "south": [{other}]}}}}
            return pytest.mark.fairness_grid(template="Rate {{name}}.", groups=groups, **options)

        @grid()
        def test_ends(trials):
            assert_no_disparity(trials, outcome="decision", by="team")

        @grid(repetitions=20)
        def test_numbers(trials):
            assert_no_disparity(trials, outcome="word_count", by="team")

        @grid(names=(10, 20))
        def test_said(trials):
            assert_no_disparity(trials, outcome="decision", by="team")
        """
    )
    text = project.run().stdout.str()
    remark = (
        "fairness: test_ends: north and south have 20 names: 2 looks; a fair system that approves "
        r"90 % passes in \S+( than)? \d of 10 runs"
    )
    assert re.search(remark, text), text
    assert "test_numbers: north" not in text
    assert "test_said: north" not in text
