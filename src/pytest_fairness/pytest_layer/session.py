"""One process's hold on the run: its settings, its grids, its store, and the test that is running."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.model import Verdict
from pytest_fairness.pytest_layer import collection, guest, ledger, past_runs, remote_workers, report_safety, reporting
from pytest_fairness.pytest_layer.options import SETTINGS, resolve
from pytest_fairness.pytest_layer.trials import Asking

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_fairness.baselines.justifications import Justification
    from pytest_fairness.context import Settings
    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.engine.progress import Watching
    from pytest_fairness.engine.shards import Deal
    from pytest_fairness.model import Finding
    from pytest_fairness.pytest_layer.plans import Planned, Usable
    from pytest_fairness.pytest_layer.systems import Systems
    from pytest_fairness.runs.remote.line import Line
    from pytest_fairness.runs.replay import Recording
    from pytest_fairness.runs.store import RunStore
    from pytest_fairness.scorers import Scorer

_FINDINGS: pytest.StashKey[list[Finding]] = pytest.StashKey()
#: Seconds beyond the deadline in which replies that were asked by then are still read and judged.
_READING_GRACE = 5.0
#: Exit statuses of sessions that came to their end.
_WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class FairnessSession:
    """Lives as long as the pytest session in one process: plain, xdist's controller, or one of its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings: Settings = resolve(config)
        workerinput: dict[str, Any] = getattr(config, "workerinput", {})
        #: Controller and workers share the token, and through it the run's folder.
        self.token: str = workerinput.get("fairness_token", uuid.uuid4().hex)
        self.worker: str | None = workerinput.get("workerid")
        #: When the session began, by the monotonic clock, which the processes of one machine share: whoever sets the
        #: wall clock meanwhile makes no deadline nearer or farther.
        self.started: float = workerinput.get("fairness_started") or time.monotonic()
        if self.worker is None and self.settings.resume is not None:
            past_runs.refuse_changes(self.settings, config.rootpath)
        self.grids: dict[tuple[str, str], Planned] = {}
        self.selected: dict[collection.Selection, tuple[int, ...]] = {}
        self.pulled: set[tuple[str, str]] = set()
        self._watching: Watching | None = None
        self._reception: remote_workers.Reception | None = None
        #: In xdist's controller, the folder of the run that workers have begun.
        self._begun: Path | None = None
        #: The lines that the session starts with.
        self._announced: list[str] = []
        #: Whether the session was cut short.
        self.interrupted = False
        #: Which trials this session asks, where it asks a shard.
        self.deal: Deal | None = None
        #: Whether every test of the project was asked for, so that what nobody claims can be told.
        self.complete = False
        self.ledger = ledger.Ledger()
        self.asking = Asking(self)
        #: The folder of the run, once its reports are written.
        self.told: Path | None = None
        #: Why they could not be.
        self.trouble: str | None = None

    # ------------------------------------------------------------ collecting

    def expand(self, metafunc: pytest.Metafunc) -> None:
        grid = collection.expand(metafunc, self.settings.tier)
        if grid is not None:
            grid = grid.asking(self.systems.resolve)
            self.grids[collection.key_of(metafunc.definition, metafunc.definition.name)] = grid

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Note which fairness tests this session is going to run."""
        planned = [item.nodeid for item in items if guest.is_fairness_item(item)]
        if planned and not self.config.option.collectonly:
            self.selected = collection.selected_cells(items)
            self.complete = reporting.is_whole(self.config)
            self.pulled = {collection.grid_key(item) for item in items}
            if self.settings.shard:
                from pytest_fairness.pytest_layer.pull import deal_of

                self.deal = deal_of(self, items)
            if self._reached[1] is None:  # else each test says why, when it asks for the run
                self._begin(items, planned)
            self.ledger.collected.update(planned)

    def _begin(self, items: Sequence[pytest.Item], planned: Sequence[str]) -> None:
        """Open the run, and the one that is replayed. Where the one cannot be written, or the other is damaged, the
        session ends before anything is asked, with exit status 4.
        """
        from pytest_fairness.pytest_layer.preflight import announcement
        from pytest_fairness.pytest_layer.replacements import asks_the_settings_endpoint

        try:
            _ = self.recording
            self._announced = announcement(self, items, len(planned))
            self.store.write_planned(planned, announced=self._announced)
            if not asks_the_settings_endpoint(self, items):
                reporting.note_replaced_endpoint(self.store, session=self.name)
        except StoreError as error:
            if self.worker is None:
                raise pytest.UsageError(str(error)) from None
            # A worker can end its controller's session by no exit status: each of its tests says why, and asks nothing.

    def introduce(self, node: Any) -> None:
        """Tell an xdist worker what was resolved here, and which run it belongs to."""
        node.workerinput[SETTINGS] = self.settings.to_dict()
        node.workerinput["fairness_token"] = self.token
        node.workerinput[guest.ARGUMENTS] = guest.arguments_of(self.config)
        node.workerinput["fairness_controller"] = os.getpid()
        spec = node.gateway.spec
        node.workerinput["fairness_started"] = self.started if spec.popen else None  # elsewhere it is another clock
        if remote_workers.perhaps(spec):
            self._reception = self._reception or remote_workers.Reception(self)
            self._reception.offer(node)

    # ------------------------------------------------------------ the run

    @cached_property
    def command(self) -> list[str]:
        """The command line as it is written down. Its secrets are cut out of everything from then on."""
        from pytest_fairness.pytest_layer.command_line import recorded_command

        return recorded_command(self.config)

    @cached_property
    def store(self) -> RunStore:
        _ = self.command
        line = self.reach()
        return self.open_store(self.worker) if line is None else remote_workers.remote_store(line)

    def open_store(self, writer: str | None) -> RunStore:
        """The run's folder, written as *writer*: this process, or a worker that does not see the disk it is on."""
        from pytest_fairness.runs.store import open_run

        settings = self.settings
        store = open_run(settings.run_dir, self.token, writer=writer, adopt=settings.resume)
        reporting.start_manifest(store, settings, self.config.rootpath, session=self.name, command=self.command)
        return store

    @cached_property
    def _reached(self) -> tuple[Line | None, str | None]:
        channel = getattr(self.config, "workerinput", {}).get(remote_workers.CHANNEL)
        return (None, None) if channel is None else remote_workers.reach(self, channel)

    def reach(self) -> Line | None:
        """The way to the run, in a worker that does not see the controller's disk. Raises StoreError where none will
        do.
        """
        line, barred = self._reached
        if barred is not None:
            raise StoreError(barred)
        return line

    @cached_property
    def recording(self) -> Recording | None:
        """The run that is replayed, every record of it checked; None where trials are asked."""
        from pytest_fairness.runs.replay import Recording

        return None if self.settings.replay is None else Recording(self.settings.replay)

    @property
    def time_left(self) -> float | None:
        """Seconds until the session's deadline, a moment at least; None without one."""
        deadline = self.settings.deadline
        return None if deadline is None else max(1e-3, self.started + deadline - time.monotonic())

    @property
    def read_until(self) -> float | None:
        """When the reading of replies ends, by the monotonic clock; None without a deadline."""
        deadline = self.settings.deadline
        return None if deadline is None else self.started + deadline + _READING_GRACE

    @property
    def name(self) -> str:
        """What tells this session from others that wrote into the same run."""
        return hashlib.sha256(self.token.encode()).hexdigest()[:12]

    @cached_property
    def scorers(self) -> dict[str, Scorer]:
        """Every scorer that a test can name: the built-ins and those of the project, which win."""
        found = self.config.hook.pytest_fairness_scorers()
        return {scorer.name: scorer for scorers in reversed(found) for scorer in scorers}

    def usable(self, scorer: Any) -> Usable:
        """What tells a reply that can be used: it does not decline, and *scorer*, if there is one, reads it."""
        from pytest_fairness.errors import UsageError
        from pytest_fairness.scorers import Scorer, is_refusal

        if scorer is None:
            return (lambda text: bool(text.strip()) and not is_refusal(text)), "not refused"
        if isinstance(scorer, str) and scorer not in self.scorers:
            raise UsageError(f"scorer={scorer!r}: there is no such scorer (there are: {', '.join(self.scorers)})")
        known = self.scorers[scorer] if isinstance(scorer, str) else scorer
        known = known if isinstance(known, Scorer) else Scorer(name="own", score=known)
        return (lambda text: not is_refusal(text) and known.score(text) is not None), known.fingerprint

    def configured_endpoint(self) -> Endpoint:
        """The endpoint that the settings name."""
        return self.endpoint_called(self.settings.endpoint)

    @cached_property
    def systems(self) -> Systems:
        """Whatever else tests name as a system."""
        from pytest_fairness.pytest_layer.systems import Systems

        return Systems(self)

    @cached_property
    def endpoint_types(self) -> dict[str, Any]:
        """Type → factory: the built-in ones and those of the project, which win."""
        found = self.config.hook.pytest_fairness_endpoint_types()
        return {kind: factory for mapping in reversed(found) for kind, factory in mapping.items()}

    def endpoint_called(self, name: str) -> Endpoint:
        """The endpoint *name* of endpoints.yaml; on replay, as the recording knows it. Raises UsageError."""
        self.reach()  # a worker elsewhere has endpoints.yaml in another place
        if self.recording is not None:
            return past_runs.recorded_endpoint(self.recording, name)
        from pytest_fairness.endpoints import named_endpoint

        path, types = self.settings.endpoints_file, self.endpoint_types
        return named_endpoint(name, path=path, types=types, concurrency=self.settings.concurrency)

    # ------------------------------------------------------------ the running test

    @contextlib.contextmanager
    def running(self, item: pytest.Item) -> Iterator[None]:
        """Be the session that assertions in *item* report to; under smoke, skip a test whose sample was too small."""
        from pytest_fairness.context import reading_until, running_test
        from pytest_fairness.pytest_layer.test_context import context_of

        findings = item.stash.setdefault(_FINDINGS, [])
        findings.clear()  # a rerun starts afresh
        with running_test(context_of(self, item, findings)), reading_until(self.read_until):
            yield
        unusable = [
            f for f in findings if f.verdict is Verdict.INCONCLUSIVE and (f.reason is None or f.reason.unusable)
        ]
        if unusable:
            pytest.skip(f"smoke: {unusable[0].sentence}")

    @cached_property
    def justifications(self) -> tuple[Justification, ...]:
        """Those of the project's ``justifications.yaml``."""
        from pytest_fairness.baselines.justifications import read_file

        return read_file(self.config.rootpath / "justifications.yaml")

    def attach_findings(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Let *report* carry the item's findings to the controller, and its verdicts to JUnit."""
        findings = item.stash.get(_FINDINGS, [])
        if report.when == "call" and (findings or guest.is_fairness_item(item)):
            ledger.attach(report, findings)
            # On the item: JUnit reads them off the report of the teardown, which is still to come.
            item.user_properties[:] = [p for p in item.user_properties if not ledger.is_ours(p)]
            item.user_properties.extend(ledger.properties(findings))
        elif guest.is_fairness_item(item) and not report.passed:
            ledger.attach(report, findings)
        if findings or guest.is_fairness_item(item):
            report_safety.make_safe(report)

    # ------------------------------------------------------------ telling

    @property
    def has_run(self) -> bool:
        """Whether this pytest session has anything to do with fairness, as far as this process can tell."""
        return bool(self.ledger) or "store" in self.__dict__ or (self.worker is None and self._workers_have_one)

    @property
    def _workers_have_one(self) -> bool:
        """Whether a worker has begun the run, though not one report of a fairness test has reached the controller."""
        from pytest_fairness.runs.folder import find_run

        with contextlib.suppress(StoreError):  # the folder has gone, which is no reason to forget it
            self._begun = self._begun or find_run(self.settings.run_dir, self.token)
        return self._begun is not None

    def headline(self) -> list[str]:
        """The lines that a session with fairness tests starts with; none in any other."""
        quiet = self.worker is not None or self.config.option.verbose < 0
        return [] if quiet or not self.ledger.collected else self._announced

    def unfinished(self) -> int:
        """How many collected fairness tests never reported, although nothing has stopped the session early."""
        if self.worker is not None or not self.has_run or self.config.option.collectonly:
            return 0
        try:
            self._take_stock()
        except StoreError:
            return 0  # the end of the session says so, and is not green
        return len(self.ledger.missing)

    def alarms(self) -> int:
        """How many findings ``fairness_session_alpha`` fails the session for although their tests did not."""
        alpha = self.settings.session_alpha
        if alpha is None or self.worker is not None:
            return 0
        from pytest_fairness.analysis import false_alarms

        return len(false_alarms.alarms(self.ledger.findings, self.ledger.outcomes, alpha))

    def _take_stock(self) -> None:
        """Let the ledger know what was collected, by workers too, and which of it has finished."""
        self.ledger.collected.update(self.store.manifest().get("planned", ()))
        recorder: guest.Recorder = self.config.pluginmanager.getplugin("fairness-recorder")
        self.ledger.finished = recorder.finished

    def show_workers(self) -> None:
        """In xdist's controller, once workers have begun a run: show how far they all are, in one line."""
        if self._watching is None and self._workers_have_one:
            from pytest_fairness.engine.progress import Progress, Watching

            progress = reporting.progress(self.config, self.settings.progress)
            if isinstance(progress, Progress) and self._begun is not None:
                self._watching = Watching(self._begun / "state", progress)
                reporting.announce(self.config, self.store.manifest().get("announced", ()))

    def end_workers(self) -> None:
        """In xdist's controller, when its session ends early: have no worker send anything more."""
        from pytest_fairness.runs.folder import end_session

        with contextlib.suppress(StoreError):  # they see the controller's own end too, if later
            end_session(self.settings.run_dir, self.token)
        if self._reception is not None:
            self._reception.halt()

    def has_ended(self) -> bool:
        """In a worker: whether its controller's session has ended."""
        from pytest_fairness.runs.folder import has_ended

        return has_ended(self.settings.run_dir, self.token)

    def finish(self, exitstatus: int) -> None:
        """Close what is open; in the controller, write findings.json and the HTML report."""
        from pytest_fairness.runs.files import removed

        if self._watching is not None:
            self._watching.stop()
        self.interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        whole = exitstatus in _WHOLE or not self.config.pluginmanager.hasplugin("dsession")
        if not whole:
            self.end_workers()
        try:
            self.asking.close()
            if self._reception is not None:
                self.trouble = self._reception.close()
            if not self.has_run:
                return
            if self._begun is not None and not self._begun.exists():
                raise removed(self._begun)  # it must not be made anew, empty
            if self.worker is None:
                self._take_stock()
                self.told = reporting.write_reports(self.store, self.ledger, self.config.rootpath, whole=whole)
            self.store.close()
        except (FairnessError, OSError) as error:
            # The tests have been judged and their replies are on disk; say what is missing, and do not end green.
            self.trouble = str(error)

    def write_summary(self, terminal: Any) -> None:
        """The last word in the terminal: counts, each finding's sentence, where the report lies."""
        if self.told is None and self.trouble is None:
            return
        terminal.section("fairness", sep="=")
        for line in self.summary():
            terminal.write_line(line)
        if self.complete and not terminal.stats.get("deselected") and not terminal.stats.get("error"):
            for line in reporting.orphans(self.settings.baseline_dir, self.config.rootpath, self.ledger):
                terminal.write_line(line, yellow=True)
        if self.interrupted and self.settings.replay is None and self.trouble is None:
            terminal.write_line(f"  to go on: the same command with --fairness-resume {self.store.directory.name}")
        if self.trouble is not None:
            terminal.write_line(f"fairness: the reports are not whole: {self.trouble}", red=True)

    def summary(self) -> list[str]:
        return [] if self.told is None else reporting.summary(self.told, self.config.rootpath)
