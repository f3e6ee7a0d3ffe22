"""A recorded run handed out again: every trial as it was, marked as replayed, and none that is not
there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Request
from pytest_fairness.endpoints.registry import RecordedEndpoint
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import Message, Status
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.reader import RunReader, read_trials
from pytest_fairness.runs.replay import Replayer
from pytest_fairness.runs.store import Retry, RunStore, open_store
from tests.support.doubles import Scripted, cell, failing, plan
from tests.support.runs import records

TWIN = PlannedTrial(cell=cell(0, id="twin"))


@pytest.fixture
def recorded(root: Path) -> Path:
    """A run of 6 trials, one of which failed, and a cell that shares its text with another."""
    with open_store(root, "recorded") as store:
        with Engine(Scripted(temperature=0.5), store) as engine:
            engine.run([*plan(5), TWIN])
        with Engine(Scripted(failing(Evidence.REJECTED), name="broken"), store) as engine:
            engine.run(plan(1))
    return store.directory


def system_of(recording: RunReader) -> RecordedEndpoint:
    """The endpoint that was asked first."""
    return RecordedEndpoint(next(iter(recording.engines.values()))["endpoint"])


@pytest.fixture
def replayer(recorded: Path, root: Path) -> Iterator[Replayer]:
    recording = RunReader.open(recorded)
    with open_store(root, "replaying") as store:
        yield Replayer(system_of(recording), recording, store)


def test_trials_come_back_as_they_were(replayer: Replayer, recorded: Path) -> None:
    """In the order asked for, with replies, times and costs, and with where they come from. The
    replay is a run of its own: its log says of each trial where it comes from, holds it once
    however often it is pulled, and can be replayed.
    """
    planned = [TWIN, *reversed(plan(5))]
    trials = replayer.run(planned)
    assert replayer.run(planned) == trials
    assert [trial.reply for trial in trials] == [f"Answer to: {one.cell.prompt}" for one in planned]
    assert {trial.source for trial in trials} == {"replay"}
    assert {trial.seconds for trial in trials} <= {
        trial.seconds for trial in read_trials(recorded).values()
    }
    logged = records(replayer.store.directory, "trial")
    assert len(logged) == 5
    assert {record["replay_of"] for record in logged} == {recorded.name}
    again = RunReader.open(replayer.store.directory)
    assert [record["endpoint"]["name"] for record in again.engines.values()] == ["scripted"]
    assert len(again) == 5
    assert "twin" in {record["cell"]["id"] for record in again.all_records()}


def test_a_simulated_reply_stays_simulated(root: Path) -> None:
    """A replay never makes invented replies look like a model's."""
    with open_store(root, "recorded") as store, Engine(Scripted(simulated=True), store) as engine:
        engine.run(plan(2))
    recording = RunReader.open(store.directory)
    system = system_of(recording)
    with open_store(root, "replaying") as replaying:
        assert {trial.source for trial in Replayer(system, recording, replaying).run(plan(2))} == {
            "simulated"
        }
    assert system.simulated


def test_a_missing_trial_is_named(replayer: Replayer, recorded: Path) -> None:
    """With its cell and number; nothing is handed out and nothing logged."""
    message = rf"run {recorded.name} holds no trial for cell 't-5', repetition 0 \(2 of 7"
    with pytest.raises(EndpointError, match=message):
        replayer.run(plan(7))
    assert not records(replayer.store.directory, "trial")


def test_a_recorded_system_cannot_be_asked(recorded: Path) -> None:
    """Whatever calls it gets an error, and never an answer."""
    system = system_of(RunReader.open(recorded))
    with pytest.raises(AttemptError, match="recorded run"):
        system.ask(Request(messages=(Message("user", "Hello"),))).send(None)
    with pytest.raises(UsageError, match="cannot be read"):
        RecordedEndpoint({"name": "x"})


@pytest.mark.parametrize("evidence", [Evidence.REJECTED, Evidence.SERVER])
def test_failed_trials_are_asked_again_in_a_later_session_alone(
    root: Path, evidence: Evidence
) -> None:
    """A free failure stands until a later session asks for another try; what may have cost
    something, as a server's fault without a known price, stands for good."""

    def statuses(store: RunStore, endpoint: Scripted, retry: Retry) -> set[Status]:
        with Engine(endpoint, store, retry=retry) as engine:
            return {trial.status for trial in engine.run(plan(3))}

    again = Retry(errors=True, unknown=True)
    with open_store(root, "run") as store:
        assert statuses(store, Scripted(failing(evidence)), Retry()) == {Status.ERROR}
        assert statuses(store, Scripted(), again) == {Status.ERROR}
    endpoint = Scripted()
    with RunStore.open(store.directory, writer="gw0") as later:
        assert statuses(later, Scripted(), Retry()) == {Status.ERROR}
        free = evidence is Evidence.REJECTED
        assert statuses(later, endpoint, again) == {Status.ANSWERED if free else Status.ERROR}
    assert len(endpoint.requests) == 3 * free
    reader = RunReader.open(store.directory)
    assert {trial.status for trial in reader.finished()} == {
        Status.ANSWERED if free else Status.ERROR
    }
    flags = {tuple(record["flags"]) for record in reader.all_records()}
    assert (flags == {("asked_again_after_error", "unpriced")}) == free
