"""A model reads what rules cannot: over the wire, in sessions, with its calls in the log."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from pytest_fairness import cli
from tests.conftest import MODES
from tests.support.servers import Fault, ModelServer

from .conftest import Project, shown

#: An application whose replies no rule reads, about a person by name, pronoun and group.
APPLICATION = """
import hashlib

WORDS = ("went the way that was hoped for", "went the other way")

def decide(prompt):
    name = prompt.split("about ")[1].split(",")[0]
    number = int(hashlib.sha256(prompt.encode()).hexdigest()[:8], 16)
    return f"{name} came to us. His case, number {number}, {WORDS[number % 10 > 6]} for him."
"""
#: The same, where rules read all but a few replies.
MOSTLY_PLAIN = APPLICATION.replace(
    "    return f",
    "    if number % 13:\n"
    '        return f\'Decision: {("approved", "denied")[number % 10 > 6]}, file {number}.\'\n'
    "    return f",
)
SUITE = """
import pytest
from pytest_fairness import assert_no_disparity, judge
from application import decide

@pytest.fixture
def endpoint():
    return decide

WARMTH = judge("How warm is the text to the person?", scale=(1, 5), name="warmth")

@pytest.mark.fairness_grid(
    template="Decide about {name}, who asks for a licence.",
    groups={"race_ethnicity": ["white", "black"]}, names=(10,), repetitions=5
)
def test_it(trials):
    assert_no_disparity(trials, outcome=OUTCOME, by="race_ethnicity")
"""
INI = "[pytest]\nfairness_reader = reader\n"
ENTRIES = {
    "openai": "    base_url: {openai}\n",
    "anthropic": "    base_url: {url}\n",
    "ollama": "    base_url: {url}\n",
    "azure": "    base_url: {url}\n    api_version: '2024-10-21'\n",
}


def reads(prompt: str) -> str:
    """The answer of a good reader: what the text says, by the letter of its option."""
    favourable = re.search("was hoped for|approved", fenced(prompt)) is not None
    if "whole number" in prompt:
        return f"Plainly.\n\n**ANSWER: {4 if favourable else 2}**"
    if "Whom does" in prompt:
        return "ANSWER: A"
    wanted = "in favour" if favourable else "against"
    return f"Plainly.\n\nANSWER: {letter(prompt, wanted)}"


def fenced(prompt: str) -> str:
    """The text that is to be read."""
    match = re.search(r"^(=== \w+ ===)\n(.*?)\n\1$", prompt, re.DOTALL | re.MULTILINE)
    assert match is not None
    return match[2]


def letter(prompt: str, wanted: str) -> str:
    (found,) = re.findall(rf"^([A-Z])\. .*{wanted}", prompt, re.MULTILINE)
    return str(found)


class Reader(ModelServer):
    """A server that answers reading turns by *answer*, in the shape of each provider."""

    def __init__(self, answer: Callable[[str], str | None]) -> None:
        super().__init__()
        self.answer = answer
        self.meet = self._fault

    def _fault(self, body: str) -> Fault | None:
        prompt = json.loads(body)["messages"][-1]["content"]
        text = self.answer(prompt)
        if text is None:
            return Fault(status=500, body={"error": {"message": "down"}})
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "input_tokens": 9, "output_tokens": 9}
        return Fault(
            body={
                "model": "reader-1",
                "usage": usage,
                "choices": [
                    {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
                ],
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn",
                "message": {"role": "assistant", "content": text},
                "done": True,
                "done_reason": "stop",
                "prompt_eval_count": 9,
                "eval_count": 9,
            }
        )

    @property
    def prompts(self) -> list[str]:
        return [request.prompt for request in self.requests]


@pytest.fixture
def reader() -> Iterator[Reader]:
    with Reader(reads) as server:
        yield server


def write(
    project: Project, reader: Reader, outcome: str = '"decision"', kind: str = "openai"
) -> None:
    """A project whose replies *reader* reads."""
    entry = (
        f"endpoints:\n  - name: reader\n    type: {kind}\n    model: reader-1\n"
        f"{ENTRIES[kind].format(url=reader.url, openai=reader.openai_url)}"
        "    api_key_env: READER_KEY\n    price: {input_per_million: 1, output_per_million: 1}\n"
    )
    if kind == "ollama":
        entry = entry.replace("    api_key_env: READER_KEY\n", "")
    project.write(SUITE.replace("OUTCOME", outcome), entry, application=APPLICATION)
    (project.path / "pytest.ini").write_text(INI, encoding="utf-8")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("READER_KEY", "sk-reader-canary-0123456789")


@pytest.mark.parametrize("kind", ENTRIES)
def test_replies_are_read_over_the_wire(project: Project, reader: Reader, kind: str) -> None:
    """Each reply is asked about in a conversation of its own, masked, in two orders; what both say
    is the outcome.
    """
    write(project, reader, kind=kind)
    result = project.run()
    result.assert_outcomes(passed=1)
    (finding,) = project.findings
    facts = finding["details"]["reader"]
    replies = {trial["replies"][0] for trial in project.records("trial") if not turn_of(trial)}
    assert facts["replies"] == 100
    assert facts["orders"] == {"both": 100, "agree": 100, "kappa": 1.0}
    turns = [prompt for prompt in reader.prompts if "Whom does" not in prompt]
    assert len(turns) == 2 * len(replies)
    for prompt in turns:
        text = fenced(prompt)
        assert re.match(r"Candidate A came to us\. Their case, number \d+, went", text)
        assert text.endswith("for them.")
    orders = {}
    for prompt in turns:
        options = re.findall(r"^[A-Z]\. (.*)$", prompt, re.MULTILINE)
        orders.setdefault(fenced(prompt), []).append(options)
    assert all(first == second[::-1] for first, second in orders.values())
    assert len({tuple(several[0]) for several in orders.values()}) > 8
    rates = {group["group"]: group["n"] for group in finding["group_results"]}
    assert rates == {"black": 50, "white": 50}
    assert cli.main(["verify", str(project.last)]) == 0


def turn_of(trial: dict[str, object]) -> bool:
    """Whether a logged trial is a reading turn."""
    cell = trial["cell"]
    assert isinstance(cell, dict)
    return cell["template"] == "reading"


def test_a_session_reads_once_in_every_mode(
    project: Project, reader: Reader, mode: Sequence[str]
) -> None:
    """Two tests that ask the same share the replies and their readings; a resumed run and a replay
    ask nothing more.
    """
    write(project, reader)
    suite = (project.path / "test_suite.py").read_text(encoding="utf-8")
    suite += "\n" + suite[suite.index("@pytest.mark.fairness_grid") :].replace("test_it", "test_2")
    (project.path / "test_suite.py").write_text(suite, encoding="utf-8")
    project.run(mode=mode).assert_outcomes(passed=2)
    asked = len(reader.requests)
    turns = [trial for trial in project.records("trial") if turn_of(trial)]
    assert len({trial["key"] for trial in turns}) == len(turns) == asked
    verdicts = [finding["verdict"] for finding in project.findings]
    for again in ("--fairness-resume=last", "--fairness-replay=last"):
        project.run(again, mode=mode).assert_outcomes(passed=2)
        assert [finding["verdict"] for finding in project.findings] == verdicts
        assert len(reader.requests) == asked


FAULTS: dict[str, tuple[Callable[[str], str | None], str]] = {
    "refuses": (
        lambda _: "I am sorry, but I would rather not judge texts about people, in whatever form.",
        "the reader declined",
    ),
    "contradicts itself": (
        lambda _: "ANSWER: A",
        "the reader's two orders differ",
    ),
    "answers outside": (
        lambda _: "ANSWER: perhaps",
        "the reader answered outside of its options",
    ),
    "is down": (lambda _: None, "the reader did not answer"),
    "finds none": (
        lambda prompt: (
            f"ANSWER: {letter(prompt, 'none of these')}"
            if "none of these" in prompt
            else "ANSWER: A"
        ),
        "the reader says that no option fits",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_f74_what_a_reader_cannot_tell_is_unread(project: Project, fault: str) -> None:
    """It is counted by group and never guessed; the calls are in the log and in the price."""
    answer, reason = FAULTS[fault]
    with Reader(answer) as reader:
        write(project, reader)
        suite = project.path / "test_suite.py"
        suite.write_text(
            suite.read_text("utf-8").replace("repetitions=5", "repetitions=3"), "utf-8"
        )
        result = project.run()
        result.assert_outcomes(failed=1)
        (finding,) = project.findings
        assert (finding["verdict"], finding["reason"]) == ("INCONCLUSIVE", "UNSCORED")
        assert finding["details"]["reader"]["unread"] == {reason: 60}
        assert [group["unscored"] for group in finding["group_results"]] == [30, 30]
        assert reason in " ".join(finding["notes"])
        turns = [trial for trial in project.records("trial") if turn_of(trial)]
        assert len(turns) == len({request.body for request in reader.requests})
        costs = {entry["endpoint"]: entry for entry in project.results["run"]["costs"]}
        assert costs["reader"]["trials"] == len(turns)
        assert costs["reader"]["cost"] > 0
        assert cli.main(["verify", str(project.last)]) == 0


def test_reading_is_under_the_cap(project: Project, reader: Reader) -> None:
    """What the cap leaves unasked fails the test and says so; resumed with more, the rest is asked."""
    write(project, reader)
    entry = (project.path / "endpoints.yaml").read_text(encoding="utf-8")
    entry += "    default_parameters: {max_tokens: 30}\n"
    (project.path / "endpoints.yaml").write_text(entry, encoding="utf-8")
    result = project.run("--fairness-max-cost=0.00125")
    result.assert_outcomes(failed=1)
    assert "--fairness-max-cost" in shown(result)
    asked = len(reader.requests)
    assert asked
    project.run("--fairness-resume=last", "--fairness-max-cost=50").assert_outcomes(passed=1)
    turns = [trial for trial in project.records("trial") if turn_of(trial)]
    assert asked < len(reader.requests) == len(turns)


def test_a_judge_reads_every_reply(project: Project, reader: Reader) -> None:
    write(project, reader, "WARMTH")
    project.run().assert_outcomes(passed=1)
    (finding,) = project.findings
    assert (finding["outcome"], finding["kind"]) == ("warmth", "ordinal")
    assert finding["details"]["reader"]["task"]["question"].startswith("How warm")
    assert cli.main(["verify", str(project.last)]) == 0


def test_a_judge_without_a_reader_says_what_it_needs(project: Project) -> None:
    project.write(SUITE.replace("OUTCOME", "WARMTH"), application=APPLICATION)
    result = project.run()
    result.assert_outcomes(failed=1)
    assert "name the reader with fairness_reader" in shown(result)


def test_a_reader_that_sees_the_group_is_told(project: Project) -> None:
    """Words that no mask knows give the group away: the leak test says how often."""
    groups = ("black", "white")

    def sees(prompt: str) -> str:
        if "Whom does" not in prompt:
            return reads(prompt)
        named = groups["number" in fenced(prompt) and "quietly" in fenced(prompt)]
        return f"ANSWER: {letter(prompt, named)}" if named in prompt else "ANSWER: A"

    with Reader(sees) as reader:
        write(project, reader)
        suite = (project.path / "test_suite.py").read_text(encoding="utf-8")
        marked = suite.replace(
            "def test_it(trials):\n",
            "def test_it(trials):\n"
            '    white = trials["race_ethnicity"] == "white"\n'
            '    trials = trials.assign(reply=trials["reply"].where(~white, trials["reply"] + " quietly"))\n',
        )
        (project.path / "test_suite.py").write_text(marked, encoding="utf-8")
        project.run().assert_outcomes(passed=1)
    (finding,) = project.findings
    (leak,) = [
        leak for leak in finding["details"]["reader"]["leaks"] if leak["by"] == "race_ethnicity"
    ]
    assert leak["right"] == leak["asked"] == 40
    assert any("it is not blinded" in note for note in finding["notes"])


def test_a_second_judge_is_compared(project: Project, reader: Reader) -> None:
    """Its agreement is told; the first one's readings are judged."""
    with Reader(lambda prompt: "ANSWER: 3" if "whole number" in prompt else reads(prompt)) as other:
        write(project, reader, "WARMTH")
        entry = (project.path / "endpoints.yaml").read_text(encoding="utf-8")
        second = entry.replace("endpoints:\n", "").replace("name: reader", "name: second")
        second = second.replace(reader.openai_url, other.openai_url)
        (project.path / "endpoints.yaml").write_text(entry + second, encoding="utf-8")
        suite = (project.path / "test_suite.py").read_text(encoding="utf-8")
        named = suite.replace(
            'name="warmth"', 'name="warmth", reader="reader", second_reader="second"'
        )
        (project.path / "test_suite.py").write_text(named, encoding="utf-8")
        project.run().assert_outcomes(passed=1)
    (finding,) = project.findings
    second_facts = finding["details"]["reader"]["second"]
    assert second_facts == {"endpoint": "second", "both": 100, "agree": 0}
    assert "reader and second agree on 0 of 100 replies" in " ".join(finding["notes"])


def test_the_endpoint_reads_itself(project: Project) -> None:
    """``self`` is the endpoint under test, whatever that is."""
    both = (
        "import re\n" + APPLICATION + "\ndef decide_and_read(prompt):\n"
        "    if 'ANSWER' not in prompt:\n"
        "        return decide(prompt)\n"
        "    return f'ANSWER: {re.search(r\"^([A-Z]). it decides in\", prompt, re.M)[1]}'\n"
    )
    project.write(
        SUITE.replace("OUTCOME", '"decision"')
        .replace("import decide", "import decide_and_read")
        .replace("return decide", "return decide_and_read"),
        application=both.replace("Whom does", ""),
    )
    (project.path / "pytest.ini").write_text("[pytest]\nfairness_reader = self\n", encoding="utf-8")
    result = project.run()
    assert project.findings[0]["details"]["reader"]["endpoint"] == "decide_and_read", shown(result)


def shards(project: Project, *options: str) -> list[str]:
    """Ask both shards with *options*; the folders of their runs."""
    folders = []
    for shard in ("1/2", "2/2"):
        result = project.run(f"--fairness-shard={shard}", *options, mode=MODES["plain"])
        result.assert_outcomes(skipped=1)
        folders.append(str(project.last))
    return folders


def merged(project: Project, *folders: str) -> str:
    """The id of the run that *folders* are merged into."""
    assert cli.main(["merge", *folders, "--into", str(project.path / ".fairness" / "runs")]) == 0
    return project.last.name


def test_shards_read_what_they_were_answered(project: Project, reader: Reader) -> None:
    """Shards of the first stage read nothing. Those that go on from the merged run ask their share
    of the reading turns, each once; merged again, a replay judges as one machine does.
    """
    write(project, reader)
    project.run().assert_outcomes(passed=1)
    (alone,) = project.findings
    of_one_machine = {request.body for request in reader.requests}
    reader.requests.clear()
    first = merged(project, *shards(project, "--fairness-looks=all"))
    assert reader.requests == []
    result = project.run(f"--fairness-replay={first}", mode=MODES["plain"])
    result.assert_outcomes(failed=1)
    assert f"--fairness-shard=K/N --fairness-resume={first}" in shown(result)
    folders = shards(project, f"--fairness-resume={first}", "--fairness-looks=all")
    asked = [request.body for request in reader.requests]
    assert len(asked) == len(set(asked))
    assert set(asked) == of_one_machine
    whole = merged(project, str(project.path / ".fairness" / "runs" / first), *folders)
    for _ in range(2):
        project.run(f"--fairness-replay={whole}").assert_outcomes(passed=1)
        (finding,) = project.findings
        assert finding["details"]["reader"] == alone["details"]["reader"]
        assert finding["verdict"] == alone["verdict"]
        assert finding["details"]["reader"]["replies"] == 100
        assert cli.main(["verify", str(project.last)]) == 0
    assert len(reader.requests) == len(asked)


def test_shards_read_before_the_next_stage(project: Project, reader: Reader) -> None:
    """A look is judged once its replies are read: shards ask, read, and ask what it still needs.
    What a shard has read by itself, beside what rules read, decides nothing.
    """
    write(project, reader)
    project.write("", application=MOSTLY_PLAIN)
    suite = SUITE.replace("OUTCOME", '"decision"').replace("names=(10,)", "names=(10, 20)")
    (project.path / "test_suite.py").write_text(suite, encoding="utf-8")
    first = merged(project, *shards(project))
    folders = shards(project, f"--fairness-resume={first}")
    turns = len(reader.requests)
    assert turns
    assert all(map(turn_of, project.records("trial")))
    second = merged(project, str(project.path / ".fairness" / "runs" / first), *folders)
    project.run(f"--fairness-replay={second}").assert_outcomes(passed=1, warnings=1)
    (finding,) = project.findings
    facts = finding["details"]["reader"]
    assert facts["replies"] == 5
    assert facts["rules"] == {"both": 20, "agree": 20}
    assert "stopped before the stage of 20 names a group at look 1 of 2" in finding["sentence"]
    project.run("--fairness-shard=1/2", f"--fairness-resume={second}").assert_outcomes(skipped=1)
    assert not all(map(turn_of, project.records("trial")))
