"""Before anything is paid for, a session says how much it asks, of whom, for how much and for how long."""

from __future__ import annotations

import re

import pytest

from tests.pytest_layer.conftest import Run
from tests.support.servers import ModelServer
from tests.support.sessions import run_pytest

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


class TestTheLines:
    def test_a_paid_endpoint_is_announced_with_cost_and_time(self, pytester: pytest.Pytester, run_in_mode: Run) -> None:
        """Two tests on one grid share their 30 trials, which are counted and priced once."""
        with ModelServer() as server:
            pytester.makefile(".yaml", endpoints=endpoints(server, PRICE))
            pytester.makepyfile(TEST)
            result = run_in_mode("--fairness-endpoint", "model", "-o", "fairness_concurrency=10")
        text = result.stdout.str()
        assert re.search(r"fairness: 2 tests, up to 30 trials, endpoint model, seed \d+, run .fairness", text), text
        # 30 replies of 100 tokens at $10 a million, and some 11 tokens in at $1.
        line = re.search(r"fairness: about 32 requests, about \$0\.03, at most \$0\.06, about (\d+) s", text)
        assert line, text
        assert line[1] == "6"  # three rounds of ten, two seconds each
        assert len(server.requests) == 30

    def test_an_unknown_price_is_said_and_so_is_the_mend(self, pytester: pytest.Pytester, run: Run) -> None:
        with ModelServer() as server:
            pytester.makefile(".yaml", endpoints=endpoints(server))
            pytester.makepyfile(TEST)
            result = run("--fairness-endpoint", "model")
        result.stdout.fnmatch_lines(["*about 32 requests, cost unknown (give price: in endpoints.yaml), about *"])

    def test_the_simulated_endpoint_costs_nothing_and_no_price_is_talked_of(
        self, pytester: pytest.Pytester, run: Run
    ) -> None:
        pytester.makepyfile(TEST)
        result = run()
        result.stdout.fnmatch_lines(["fairness: 2 tests, up to 30 trials, endpoint simulated (no model is asked)*"])
        result.stdout.no_fnmatch_line("fairness: about*")
        result.stdout.no_fnmatch_line("fairness: test_one*texts*")  # which are alike

    def test_under_q_nothing_is_announced(self, pytester: pytest.Pytester, run: Run) -> None:
        pytester.makepyfile(TEST)
        result = run("-q")
        result.stdout.no_fnmatch_line("fairness: 2 tests*")

    def test_a_cap_stands_beside_the_estimate(self, pytester: pytest.Pytester, run: Run) -> None:
        with ModelServer() as server:
            pytester.makefile(".yaml", endpoints=endpoints(server, PRICE))
            pytester.makepyfile(TEST)
            result = run("--fairness-endpoint", "model", "--fairness-max-cost", "5")
        result.stdout.fnmatch_lines(["*at most $0.06 (cap $5.00), about *"])


class TestWhatIsCounted:
    def test_a_system_of_a_tests_own_has_no_price_that_we_know(self, pytester: pytest.Pytester, run: Run) -> None:
        pytester.makepyfile(
            """
            import pytest

            @pytest.fixture
            def endpoint():
                return lambda text: "fine"

            @pytest.mark.fairness_grid(template="{name}?", groups={"gender": ["female", "male"]},
                                       names=2, repetitions=2)
            def test_own(trials):
                assert len(trials) == 8
            """
        )
        result = run()
        result.stdout.fnmatch_lines(["fairness: 1 test, up to 8 trials*"])
        result.stdout.no_fnmatch_line("fairness: about*")

    def test_a_large_grid_is_counted_on_a_sample(self, pytester: pytest.Pytester) -> None:
        """Requests of a large grid are counted on some of its cells and told for all of them."""
        with ModelServer() as server:
            pytester.makefile(".yaml", endpoints=endpoints(server, PRICE))
            pytester.makepyfile(
                """
                import pytest

                @pytest.mark.fairness_grid(template="{name}, {a} {b} {c}?", groups={"gender": ["female", "male"]},
                                           names=5, a=list(range(10)), b=list(range(10)), c=list(range(4)),
                                           repetitions=1)
                def test_large(trials):
                    pass
                """
            )
            result = pytester.runpytest("--fairness-endpoint", "model", "--fairness-max-cost", "0.0000001")
        result.stdout.fnmatch_lines(["fairness: 1 test, up to 4,000 trials*", "fairness: about 4,240 requests*"])


class TestWhatToKnowOfTheDesigns:
    def test_a_sample_is_never_silent(self, pytester: pytest.Pytester, run: Run) -> None:
        """Of grids and of choices: how much of the whole is asked, once for the tests that share a design."""
        pytester.makepyfile(
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
        result = run()
        result.assert_outcomes(passed=3)
        result.stdout.fnmatch_lines(
            [
                "fairness: 3 tests, up to 88 trials*",
                "fairness: test_one, test_two: a balanced sample is asked, 40 of 4,000 cells",
                "fairness: test_choices: a balanced sample is asked, 24 of 120 cells",
            ]
        )

    def test_unequal_length_and_broken_grammar_are_told_before_anything_is_asked(
        self, pytester: pytest.Pytester, run: Run
    ) -> None:
        """What differs between the groups beside the group; what a terminal would obey is shown instead."""
        pytester.makepyfile(
            r"""
            import pytest

            @pytest.mark.fairness_grid(
                template="{name} is here, and they has applied.", repetitions=1,
                groups={"team": {"nor\x1bth": ["Ann Lee"], "south": ["Bartholomew Montgomery-Smythe"]}})
            def test_uneven(trials):
                pass
            """
        )
        result = run()
        text = result.stdout.str()
        assert "unequal length: the texts of south have 60 characters on average, those of nor" in text
        assert "fairness: test_uneven: south: 'they has' reads wrong" in text
        assert "\x1b" not in text

    def test_what_a_design_cannot_decide_is_told_with_what_would(self, pytester: pytest.Pytester, run: Run) -> None:
        """Too small for a verdict, or one name a group; not of large designs, nor of tests of one cell."""
        pytester.makepyfile(
            """
            import pytest

            def grid(**options):
                groups = {"gender": ["female", "male"]}
                return pytest.mark.fairness_grid(template="Greet {name}.", groups=groups, **options)

            @grid(names=5, repetitions=2)
            def test_small(trials): pass

            @grid(names=1, repetitions=60)
            def test_one_name(trials): pass

            @grid(names=20, repetitions=5)
            def test_large(trials): pass

            @grid(names=1, repetitions=2)
            def test_cells(cell): pass
            """
        )
        result = run()
        result.stdout.fnmatch_lines(
            [
                "fairness: test_small: a comparison by gender can never PASS or FAIL: 10 of at least 30 trials a group;"
                " a PASS is likely with * names a group (now 5), or *",
                "fairness: test_one_name: a comparison by gender can never FAIL: a single name or label a group: *",
            ]
        )
        result.stdout.no_fnmatch_line("fairness: *test_large*never*")
        result.stdout.no_fnmatch_line("fairness: *test_cells*never*")

    def test_sessions_of_large_designs_import_no_statistics_to_start(self, pytester: pytest.Pytester) -> None:
        """Whoever judges nothing does not wait for scipy."""
        pytester.makepyfile(
            """
            import sys
            import pytest

            @pytest.mark.fairness_grid(template="Greet {name}.", groups={"gender": ["female", "male"]}, repetitions=5)
            def test_large(trials):
                assert "pytest_fairness.analysis.planning" not in sys.modules
            """
        )
        run_pytest(pytester.path, fresh=True).assert_outcomes(passed=1)
