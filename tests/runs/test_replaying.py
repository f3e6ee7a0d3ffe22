"""A recorded run handed out again: every trial as it was, marked as replayed, and none that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_fairness.endpoints.protocol import AttemptError, Evidence, Request
from pytest_fairness.endpoints.registry import RecordedEndpoint
from pytest_fairness.engine.engine import Engine
from pytest_fairness.errors import EndpointError, UsageError
from pytest_fairness.model import Message, Status
from pytest_fairness.runs.designs import PlannedTrial
from pytest_fairness.runs.reader import RunReader
from pytest_fairness.runs.replay import Recording, Replayer
from pytest_fairness.runs.store import Retry, RunStore, open_run
from tests.support.doubles import Scripted, cell, failing, plan
from tests.support.runs import records


@pytest.fixture
def recorded(root: Path) -> Path:
    """A run of 6 trials, one of which failed, and a cell that shares its text with another."""
    with open_run(root, "recorded") as store:
        with Engine(Scripted(temperature=0.5), store) as engine:
            engine.run([*plan(5), PlannedTrial(cell=cell(0, id="twin"))])
        broken = Scripted(failing(Evidence.REJECTED), name="broken")
        with Engine(broken, store) as engine:
            engine.run(plan(1))
    return store.directory


@pytest.fixture
def replayer(recorded: Path, root: Path) -> Iterator[Replayer]:
    recording = Recording(recorded)
    with open_run(root, "replaying") as store:
        yield Replayer(RecordedEndpoint(recording.systems()["scripted"][0]), recording, store)


def test_trials_come_back_as_they_were(replayer: Replayer, recorded: Path) -> None:
    """In the order asked for, with replies, times and costs, and with where they come from."""
    planned = [PlannedTrial(cell=cell(0, id="twin")), *reversed(plan(5))]
    trials = replayer.run(planned)
    assert [trial.reply for trial in trials] == [f"Answer to: {one.cell.prompt}" for one in planned]
    assert {trial.source for trial in trials} == {"replay"}
    assert {trial.seconds for trial in trials} <= {trial.seconds for trial in RunReader.open(recorded).finished()}


def test_a_replay_is_a_run_of_its_own(replayer: Replayer, recorded: Path) -> None:
    """Its log says of each trial where it comes from, holds it once however often it is pulled, and can be replayed."""
    replayer.run(plan(5))
    replayer.run([*plan(5), PlannedTrial(cell=cell(0, id="twin"))])
    replayer.store.flush()
    logged = records(replayer.store.directory, "trial")
    assert len(logged) == 5
    assert {record["replay_of"] for record in logged} == {recorded.name}
    again = Recording(replayer.store.directory)
    assert set(again.systems()) == {"scripted"}
    assert len(again.reader) == 5
    assert "twin" in {record["cell"]["id"] for record in again.reader.all_records()}


def test_a_simulated_reply_stays_simulated(root: Path) -> None:
    """A replay never makes invented replies look like a model's."""
    with open_run(root, "recorded") as store, Engine(Scripted(simulated=True), store) as engine:
        engine.run(plan(2))
    recording = Recording(store.directory)
    system = RecordedEndpoint(recording.systems()["scripted"][0])
    with open_run(root, "replaying") as replaying:
        assert {trial.source for trial in Replayer(system, recording, replaying).run(plan(2))} == {"simulated"}
    assert system.simulated


def test_a_missing_trial_is_named(replayer: Replayer, recorded: Path) -> None:
    """With its cell and number; nothing is handed out and nothing logged."""
    with pytest.raises(
        EndpointError, match=rf"run {recorded.name} holds no trial for cell 't-5', repetition 0 \(2 of 7"
    ):
        replayer.run(plan(7))
    assert not records(replayer.store.directory, "trial")


def test_a_recorded_system_cannot_be_asked(recorded: Path) -> None:
    """Whatever calls it gets an error, and never an answer."""
    system = RecordedEndpoint(Recording(recorded).systems()["scripted"][0])
    request = Request(messages=(Message("user", "Hello"),))
    with pytest.raises(AttemptError, match="recorded run"):
        system.ask(request).send(None)
    with pytest.raises(UsageError, match="cannot be read"):
        RecordedEndpoint({"name": "x"})


def _statuses(store: RunStore, endpoint: Scripted, **options: Any) -> list[Status]:
    with Engine(endpoint, store, **options) as engine:
        return [trial.status for trial in engine.run(plan(3))]


def test_failed_trials_are_asked_again_in_a_later_session_alone(root: Path) -> None:
    """A free failure stands until a later session asks for another try; what cost something stands for good."""
    rejected = Scripted(failing(Evidence.REJECTED))
    with open_run(root, "run") as store:
        assert _statuses(store, rejected) == [Status.ERROR] * 3
        assert _statuses(store, Scripted(), retry=Retry(errors=True)) == [Status.ERROR] * 3
    with RunStore.open(store.directory, writer="gw0") as later:
        assert _statuses(later, Scripted()) == [Status.ERROR] * 3
        asked = Scripted()
        assert _statuses(later, asked, retry=Retry(errors=True)) == [Status.ANSWERED] * 3
        assert len(asked.asked) == 3
    reader = RunReader.open(store.directory)
    assert {trial.status for trial in reader.finished()} == {Status.ANSWERED}
    assert [record["flags"] for record in reader.all_records()] == [["asked_again_after_error", "unpriced"]] * 3


def test_a_failure_that_may_have_cost_something_stands(root: Path) -> None:
    """A server's fault without a known price was perhaps billed: it is never asked again on its own."""
    with open_run(root, "run") as store:
        assert _statuses(store, Scripted(failing(Evidence.SERVER))) == [Status.ERROR] * 3
    with RunStore.open(store.directory, writer="gw0") as later:
        assert _statuses(later, Scripted(), retry=Retry(errors=True, unknown=True)) == [Status.ERROR] * 3
