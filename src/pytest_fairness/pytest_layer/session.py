"""One process's part in a pytest session with fairness tests: from what was collected to what is written at the end."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.context import RunContext, Settings
from pytest_fairness.errors import FairnessError, StoreError
from pytest_fairness.model import Verdict
from pytest_fairness.pytest_layer import collection, ledger, marks, past_runs, reporting, second_sample
from pytest_fairness.pytest_layer.options import SETTINGS, resolve
from pytest_fairness.pytest_layer.trials import TrialSource, deal_of
from pytest_fairness.running_test import TestContext, reading_until, running_test

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_fairness.baselines.justifications import Justification
    from pytest_fairness.baselines.syrupy_extension import BaselineStore
    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.engine.progress import Watching
    from pytest_fairness.model import Finding
    from pytest_fairness.pytest_layer.plans import Planned
    from pytest_fairness.pytest_layer.xdist import Reception
    from pytest_fairness.runs.store import RunStore

_FINDINGS: pytest.StashKey[list[Finding]] = pytest.StashKey()
#: Exit statuses of sessions that came to their end.
_WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class FairnessSession:
    """Lives as long as the pytest session in one process: plain, xdist's controller, or one of its workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings: Settings = resolve(config)
        self._given: dict[str, Any] = getattr(config, "workerinput", {})
        #: Controller and workers share the token, and through it the run's folder.
        self.token: str = self._given.get("fairness_token", uuid.uuid4().hex)
        self.worker: str | None = self._given.get("workerid")
        self._started: float = self._given.get("fairness_started") or time.monotonic()
        if self.worker is None and self.settings.resume is not None:
            past_runs.refuse_changes(self.settings, config.rootpath)
        self.grids: dict[collection.Key, Planned] = {}
        self.ledger = ledger.Ledger()
        #: Why the reports could not be written.
        self.trouble: str | None = None
        self._items: Sequence[pytest.Item] = ()
        self._announced: list[str] = []
        self._interrupted = False
        self._watching: Watching | None = None
        self._reception: Reception | None = None
        #: In xdist's controller, the folder of the run that workers have begun.
        self._begun: Path | None = None
        #: The folder of the run, once its reports are written.
        self._reported: Path | None = None

    # ------------------------------------------------------------ collecting

    def expand(self, metafunc: pytest.Metafunc) -> None:
        # The systems are made when they are needed: hooks may still change the settings.
        resolve: Any = lambda system: self.systems.resolve(system)  # noqa: E731, PLW0108
        planned = collection.expand(metafunc, self.settings.tier, lambda: self.scorers, resolve)
        self.grids[collection.grid_key(metafunc.definition)] = planned

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Note which fairness tests this session is going to run, and open the run, and the one that is replayed.

        Where the one cannot be written, or the other is damaged, the session ends before anything is asked, with exit
        status 4.
        """
        planned = [item.nodeid for item in items if marks.is_fairness_item(item)]
        if not planned or self.config.option.collectonly:
            return
        caps = [cap for cap in self.config.hook.pytest_fairness_max_cost(config=self.config) if cap is not None]
        if self.settings.max_cost is None and caps:
            self.settings = dataclasses.replace(self.settings, max_cost=min(caps))
        self._items = items
        try:
            if self.context.barred is None:  # else each test says why, when it asks for the run
                self._begin(planned)
        except StoreError as error:
            if self.worker is None:
                raise pytest.UsageError(str(error)) from None
            # A worker can end its controller's session by no exit status: each of its tests says why, and asks nothing.
        self.ledger.collected.update(planned)

    def _begin(self, planned: Sequence[str]) -> None:
        from pytest_fairness.pytest_layer import preflight

        context = self.context
        _ = context.recording
        self._announced = preflight.announcement(
            context, self._items, self.grids, self.systems.configured, tests=len(planned)
        )
        context.store.update_manifest(planned=sorted(planned), announced=list(self._announced))
        if not preflight.asks_the_settings_endpoint(self._items, self.grids):
            reporting.note_replaced_endpoint(context)

    # ------------------------------------------------------------ the run

    @cached_property
    def scorers(self) -> dict[str, Any]:
        """By name; those of the project win over the built-in ones."""
        found = self.config.hook.pytest_fairness_scorers()
        return {scorer.name: scorer for several in reversed(found) for scorer in several}

    @cached_property
    def context(self) -> RunContext:
        from pytest_fairness.pytest_layer.command_line import recorded_command
        from pytest_fairness.pytest_layer.xdist import CHANNEL, Bearings, bearings

        root, channel = self.config.rootpath, self._given.get(CHANNEL)
        found = Bearings(self.settings, self._started)
        if channel is not None:
            found = bearings(channel, self.settings, self._started, root)
        return RunContext(
            settings=found.settings,
            root=root,
            token=self.token,
            started=found.started,
            scorers=self.scorers,
            open_store=lambda: self._open_store(self.worker),
            command=recorded_command(self.config),
            worker=self.worker,
            line=found.line,
            barred=found.barred,
        )

    def _open_store(self, writer: str | None) -> RunStore:
        """The run's folder, written as *writer*: this process, or a worker that does not see the disk it is on."""
        from pytest_fairness.runs.remote import open_remote
        from pytest_fairness.runs.store import open_run

        context = self.context
        if context.line is not None:
            return open_remote(context.line)
        store = open_run(context.settings.run_dir, self.token, writer=writer, adopt=context.settings.resume)
        reporting.start_manifest(store, context)
        return store

    @cached_property
    def systems(self) -> Systems:
        return Systems(self.context, self.config)

    @cached_property
    def trial_source(self) -> TrialSource:
        shard = self.settings.shard
        return TrialSource(
            self.context,
            self.systems.resolve,
            self.grids,
            collection.selected_cells(self._items),
            deal=deal_of(shard, self._items, self.grids) if shard else None,
            progress=lambda: reporting.progress(self.config, self.settings.progress),
            controller=self._given.get("fairness_controller"),
        )

    # ------------------------------------------------------------ workers

    def introduce(self, node: Any) -> None:
        """Give an xdist worker what was resolved here, and which run it belongs to."""
        from pytest_fairness.pytest_layer.command_line import ARGUMENTS, arguments_of
        from pytest_fairness.pytest_layer.xdist import Reception

        node.workerinput |= {
            SETTINGS: self.settings.to_dict(),
            ARGUMENTS: arguments_of(self.config),
            "fairness_token": self.token,
            "fairness_controller": os.getpid(),
            # On another machine it is another clock.
            "fairness_started": self._started if node.gateway.spec.popen else None,
        }
        self._reception = self._reception or Reception(lambda: self.context, self._open_store)
        self._reception.offer(node)

    def show_workers(self) -> None:
        """In xdist's controller, once workers have begun a run: show how far they all are, in one line."""
        if self._watching is None and self._workers_have_one:
            from pytest_fairness.engine.progress import Watching

            progress = reporting.progress(self.config, self.settings.progress)
            if progress is not None and self._begun is not None:
                with contextlib.suppress(StoreError):  # of a damaged run each worker's tests say why
                    self._watching = Watching(self.context.store, progress)
                    reporting.announce(self.config, self.context.store.manifest().get("announced", ()))

    def end_workers(self) -> None:
        """In xdist's controller, when its session ends early: have no worker send anything more."""
        from pytest_fairness.runs.folder import end_session

        with contextlib.suppress(StoreError):  # they see the controller's own end too, if later
            end_session(self.settings.run_dir, self.token)
        if self._reception is not None:
            self._reception.halt()

    @property
    def _workers_have_one(self) -> bool:
        """Whether a worker has begun the run, though not one report of a fairness test has reached the controller."""
        from pytest_fairness.runs.folder import find_run

        with contextlib.suppress(StoreError):  # the folder has gone, which is no reason to forget it
            self._begun = self._begun or find_run(self.settings.run_dir, self.token)
        return self._begun is not None

    # ------------------------------------------------------------ the running test

    @contextlib.contextmanager
    def running(self, item: pytest.Item) -> Iterator[None]:
        """Be the session that assertions in *item* report to; under smoke, skip a test whose sample was too small."""
        from pytest_fairness.asserts import unusable

        findings = item.stash.setdefault(_FINDINGS, [])
        findings.clear()  # a rerun starts afresh
        with running_test(self._context_of(item, findings)), reading_until(self.context.read_until):
            yield
        few = [finding for finding in findings if finding.verdict is Verdict.INCONCLUSIVE and unusable(finding)]
        if few:
            pytest.skip(f"smoke: {few[0].sentence}")

    def _context_of(self, item: pytest.Item, findings: list[Finding]) -> TestContext:
        """The context of *item*, whose assertions add to *findings*."""
        from pytest_fairness.baselines.justifications import find
        from pytest_fairness.pytest_layer.preflight import notes_on

        (test_id, description, own), context = collection.labels_of(item), self.context
        documented = (*own, *self._justifications)
        scored_by: set[str] = set()
        offered = second_sample.of(item)
        return TestContext(
            test_id=test_id,
            test_module=getattr(getattr(item, "module", None), "__name__", ""),
            description=description,
            emit=findings.append,
            policy=context.settings,
            justification=lambda finding: find(documented, finding, collection.nodeid_of(item)),
            baseline=lambda: _baselines(context, item),
            fresh_sample=None if offered is None else offered.like,
            confirmable=lambda: offered is not None and offered.possible(),
            scorers=context.scorers,
            scored_by=scored_by,
            notes=lambda finding: notes_on(context, item, finding, scored_by),
            seed=context.settings.seed,
        )

    @cached_property
    def _justifications(self) -> tuple[Justification, ...]:
        from pytest_fairness.baselines.justifications import read_file

        return read_file(self.config.rootpath / "justifications.yaml")

    def attach_findings(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Let *report* carry the item's findings to the controller, and its verdicts to JUnit."""
        findings, ours = item.stash.get(_FINDINGS, []), marks.is_fairness_item(item)
        if findings or ours:
            if report.when == "call" or (ours and not report.passed):
                ledger.attach(report, findings)
            if report.when == "call":
                ledger.note_properties(item, findings)
            ledger.make_safe(report)

    # ------------------------------------------------------------ the end

    @property
    def has_run(self) -> bool:
        """Whether this pytest session has anything to do with fairness, as far as this process can see."""
        opened = "context" in self.__dict__ and "store" in self.context.__dict__
        return bool(self.ledger) or opened or (self.worker is None and self._workers_have_one)

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
        self.ledger.collected.update(self.context.store.manifest().get("planned", ()))
        recorder: Any = self.config.pluginmanager.getplugin("fairness-recorder")
        self.ledger.finished = recorder.finished

    def finish(self, exitstatus: int) -> None:
        """Close what is open; in the controller, write findings.json and the HTML report."""
        from pytest_fairness.runs.files import removed

        if self._watching is not None:
            self._watching.stop()
        self._interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        whole = exitstatus in _WHOLE or not self.config.pluginmanager.hasplugin("dsession")
        if not whole:
            self.end_workers()
        try:
            if "trial_source" in self.__dict__:
                self.trial_source.close()
            if self._reception is not None:
                self.trouble = self._reception.close()
            if not self.has_run:
                return
            if self._begun is not None and not self._begun.exists():
                raise removed(self._begun)  # it must not be made anew, empty
            store = self.context.store
            if self.worker is None:
                self._take_stock()
                self._reported = reporting.write_reports(store, self.ledger, self.config.rootpath, whole=whole)
            store.close()
        except (FairnessError, OSError) as error:
            # The tests have been judged and their replies are on disk; say what is missing, and do not end green.
            self.trouble = str(error)

    def write_summary(self, terminal: Any) -> None:
        """The last lines in the terminal: counts, each finding's sentence, where the report lies."""
        if self._reported is None and self.trouble is None:
            return
        terminal.section("fairness", sep="=")
        for line in self.summary():
            terminal.write_line(line)
        whole = self._items and reporting.is_whole(self.config)
        if whole and not terminal.stats.get("deselected") and not terminal.stats.get("error"):
            for line in reporting.orphans(self.settings.baseline_dir, self.config.rootpath, self.ledger):
                terminal.write_line(line, yellow=True)
        if self._interrupted and self.settings.replay is None and self.trouble is None:
            run = self.context.store.directory.name
            terminal.write_line(f"  to go on: the same command with --fairness-resume {run}")
        if self.trouble is not None:
            terminal.write_line(f"fairness: the reports are not whole: {self.trouble}", red=True)

    def summary(self) -> list[str]:
        return [] if self._reported is None else reporting.summary(self._reported, self.config.rootpath)


def _baselines(context: RunContext, item: pytest.Item) -> BaselineStore:
    from pytest_fairness.baselines.syrupy_extension import BaselineStore

    # The one way to a fixture from inside a test's call; pytest offers no public one.
    snapshot = item._request.getfixturevalue("snapshot")  # type: ignore[attr-defined]
    return BaselineStore(
        snapshot=snapshot,
        test_id=collection.nodeid_of(item),
        rootdir=context.root,
        root=context.settings.baseline_dir,
        policy=context.settings,
        run_id=context.store.directory.name,
    )


class Systems:
    """From what a project names to an endpoint: a name of ``endpoints.yaml``, an import path, a function, a pipeline.

    On replay those that have a name are what the recording knows by it.
    """

    def __init__(self, context: RunContext, config: pytest.Config) -> None:
        self._context, self._config = context, config
        self._named: dict[str, Endpoint] = {}

    def resolve(self, system: Any) -> Endpoint:
        """*system* as an endpoint; the names in a pipeline are resolved too. Raises UsageError for what is none."""
        from pytest_fairness.endpoints import as_endpoint
        from pytest_fairness.endpoints.pipeline import PipelineEndpoint

        if isinstance(system, str):
            return self._by_name(system)
        if isinstance(system, PipelineEndpoint):
            return system.resolved(self.resolve)
        return as_endpoint(system)

    def configured(self) -> Endpoint:
        """The endpoint that the settings name."""
        return self._listed(self._context.settings.endpoint)

    def _by_name(self, name: str) -> Endpoint:
        """The endpoint called *name*, made once; an import path, where no endpoint is called so: only Python says
        import paths, the option ``--fairness-endpoint`` does not.
        """
        from pytest_fairness.endpoints import callable_endpoint, load_endpoints
        from pytest_fairness.endpoints.function import is_import_path

        if name not in self._named:
            path = self._context.settings.endpoints_file
            listed = not is_import_path(name) or (path.exists() and name in load_endpoints(path, types=self._types))
            self._named[name] = self._listed(name) if listed else callable_endpoint(name)
        return self._named[name]

    def _listed(self, name: str) -> Endpoint:
        """The endpoint *name* of endpoints.yaml; on replay, as the recording knows it. Raises UsageError."""
        from pytest_fairness.endpoints import named_endpoint

        self._context.refuse_if_barred()
        if self._context.recording is not None:
            return past_runs.recorded_endpoint(self._context.recording, name)
        settings = self._context.settings
        return named_endpoint(name, path=settings.endpoints_file, types=self._types, concurrency=settings.concurrency)

    @cached_property
    def _types(self) -> dict[str, Any]:
        """Type → factory: the built-in ones and those of the project, which win."""
        found = self._config.hook.pytest_fairness_endpoint_types()
        return {kind: factory for mapping in reversed(found) for kind, factory in mapping.items()}
