"""One process's part in a pytest session with fairness tests: from what was collected to what is
written at the end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.baselines import justifications, mitigations
from pytest_fairness.context import AUTO, RunContext
from pytest_fairness.errors import FairnessError, StoreError, UsageError
from pytest_fairness.model import JSON, Finding, Verdict
from pytest_fairness.pytest_layer import (
    assertion_calls,
    collection,
    item_marks,
    preflight,
    report_texts,
    reporting,
    unfinished,
    xdist,
)
from pytest_fairness.pytest_layer.asked_ahead import upcoming
from pytest_fairness.pytest_layer.command_line import recorded_command
from pytest_fairness.pytest_layer.estimate import brings_its_own
from pytest_fairness.pytest_layer.item_context import ItemContexts
from pytest_fairness.pytest_layer.ledger import Ledger
from pytest_fairness.pytest_layer.options import settings_of
from pytest_fairness.pytest_layer.reading_turns import SELF
from pytest_fairness.pytest_layer.session_end import SessionEnd, fold
from pytest_fairness.pytest_layer.session_scorers import SessionScorers
from pytest_fairness.pytest_layer.staged_trials import STAGED, unheard, unjudged_on
from pytest_fairness.pytest_layer.systems import Systems
from pytest_fairness.pytest_layer.to_controller import attach
from pytest_fairness.pytest_layer.trials import ASKED, TrialSource, deal_of
from pytest_fairness.reports.escaping import line as one_line
from pytest_fairness.running_test import reading_until, running_test
from pytest_fairness.runs.files import removed
from pytest_fairness.runs.store import RunStore, open_store

if TYPE_CHECKING:
    from pytest_fairness.endpoints.protocol import Endpoint
    from pytest_fairness.pytest_layer.plans import Planned

_FINDINGS: pytest.StashKey[list[Finding]] = pytest.StashKey()
_ANALYSED: pytest.StashKey[set[str]] = pytest.StashKey()
_LET_IT_JUDGE = (
    "Assert on the trials with assert_no_disparity and its like; a test that judges by asserts of "
    "its own says so: "
    "@pytest.mark.fairness(finding=False)"
)


class FairnessSession:
    """Lives as long as the pytest session in one process: plain, xdist's controller, or one of its
    workers.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = settings_of(config)
        self._given: dict[str, Any] = getattr(config, "workerinput", {})
        self._controller: xdist.Controller | None = config.pluginmanager.getplugin(
            item_marks.CONTROLLER
        )
        self.worker: str | None = self._given.get("workerid")
        self._started = time.monotonic()
        self.grids: dict[collection.Key, Planned] = {}
        self._undrawn: dict[collection.Key, collection.Undrawn] = {}
        self.ledger = Ledger()
        self._items: Sequence[pytest.Item] = ()
        self.asking = 0
        self._announced: list[str] = []
        self._end = SessionEnd()

    # ------------------------------------------------------------ collecting

    def expand(self, metafunc: pytest.Metafunc) -> None:
        """Make the items of a test: of each endpoint, and of each part of its design."""
        collection.ask_each(metafunc, self.settings.endpoints)
        if not item_marks.has_design(metafunc.definition):
            return
        # The systems are made when they are needed: hooks may still change the settings.
        resolve: Any = lambda system: self.systems.resolve(system)  # noqa: E731, PLW0108
        designs = collection.expand(
            metafunc,
            self.settings.tier,
            lambda: self.scorers.by_name,
            resolve,
            self.settings.declared_looks,
            self.settings.test,
        )
        for key, design in designs.items():
            if isinstance(design, collection.Undrawn):
                self._undrawn[key] = design
            else:
                self.grids[key] = design

    def count_asking(self, items: Sequence[pytest.Item]) -> None:
        """Count the tests that judge trials, before any is deselected."""
        self.asking = sum(map(_judges_trials, items))

    def select(self, items: list[pytest.Item]) -> None:
        """Keep the tests that ``--fairness-test`` and ``--fairness-protected-class`` name."""
        if not self.settings.test and not self.settings.protected_class:
            return
        try:
            kept = collection.selected(items, self.settings.test, self.settings.protected_class)
            self._draw(kept)
        except UsageError as error:
            if self.worker is None:
                raise pytest.UsageError(str(error)) from None
            kept = []  # a worker can end its controller's session by no exit status; without tests it is 5
        chosen = set(kept)
        left = list(itertools.filterfalse(chosen.__contains__, items))
        if left:
            self.config.hook.pytest_deselected(items=left)
            items[:] = kept

    def _draw(self, items: Sequence[pytest.Item]) -> None:
        """Draw the designs of *items* that nothing in their markers told to be kept. Raises
        UsageError.
        """
        for key in map(collection.grid_key, items):
            undrawn = self._undrawn.pop(key, None)
            if undrawn is not None:
                self.grids[key] = undrawn.draw()

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Note which fairness tests this session is going to run, and open the run, and the one
        that is replayed.

        Where the one cannot be written, or the other is damaged, the session ends before anything
        is asked, with exit status 4.
        """
        planned = [item.nodeid for item in items if item_marks.is_fairness_item(item)]
        if not planned or self.config.option.collectonly:
            return
        self._cap_by_hooks()
        self._items = items
        if self.worker is None and self._mitigations() is None:
            raise pytest.UsageError(self.trouble)
        try:
            self._refuse_what_cannot_be(items)
        except UsageError as error:
            self._refuse(error)
        try:
            if self.context.refusal is None:  # else each test says why, when it asks for the run
                self._open_run(planned, items)
        except FairnessError as error:
            # Where a run could not be chosen there is none to open; of another, each test says why.
            self._refuse(error, no_run=self.context.settings.resume == AUTO)
        self.ledger.collected.update(planned)

    def _refuse(self, error: FairnessError, *, no_run: bool = True) -> None:
        """End the session by *error*. A worker can end its controller's session by no exit status:
        its tests say why, and ask nothing.
        """
        if self.worker is None:
            raise pytest.UsageError(str(error)) from None
        if no_run:
            self.context = dataclasses.replace(self.context, refusal=str(error))

    def _cap_by_hooks(self) -> None:
        """Let the lowest cap of suites and plugins hold where the session has none."""
        declared = self.config.hook.pytest_fairness_max_cost(config=self.config)
        if self.settings.max_cost is None and declared:
            self.settings = dataclasses.replace(self.settings, max_cost=min(declared))

    def _open_run(self, planned: Sequence[str], items: Sequence[pytest.Item]) -> None:
        """Open the run and the one that is replayed, and record what is *planned* and announced.
        Raises FairnessError.
        """
        _ = self.context.recording
        choice = []
        if self.context.settings.resume == AUTO:
            choice = self._choose_run(planned)
        context = self.context
        size, *more = preflight.announcement(
            context,
            items,
            self.grids,
            self.systems.configured,
            tests=len(planned),
            asking=self.asking,
            reader=self._reader,
        )
        expired = [one_line(f"fairness: {justification}") for justification in self.scorers.expired]
        self._announced = [size, *filter(None, choice), *expired, *more]
        facts = {
            "planned": sorted(planned),
            "asked": unfinished.asked(planned, self.grids),
            "looking": sum(map(_judges_trials, items)),
        }
        if all(choice):  # else who has chosen the run says so
            facts["announced"] = self._announced
        context.store.update_manifest(**facts)
        planned_looks = {
            "::".join(key): design.grid.stages.to_dict()
            for key, design in self.grids.items()
            if design.grid.stages is not None
        }
        reporting.start_looks(context, max(1, self.asking), planned_looks)
        if not preflight.asks_the_settings_endpoint(items, self.grids):
            reporting.note_replaced_endpoint(context)

    def _reader(self) -> Endpoint | None:
        """Return the model that the project has read replies; None without one, or where each
        endpoint reads its own. Raises UsageError.
        """
        if self.settings.reader in ("", SELF):
            return None
        return self.systems.resolve(self.settings.reader)

    def _refuse_what_cannot_be(self, items: Sequence[pytest.Item]) -> None:
        """Raise UsageError for what no test could be judged with: documents and markers that cannot
        be read, and calls of assertions on what the trials will not have.
        """
        _ = self._justifications
        problems: list[str] = []
        for item in filter(item_marks.is_fairness_item, items):
            collection.labels_of(item)
            selection = collection.selection_of(item)
            planned = self.grids.get(selection.key)
            problems += assertion_calls.problems(
                item, planned, selection.tier, lambda: self.scorers.by_name
            )
        if problems:
            raise UsageError("\n".join(dict.fromkeys(problems)))

    def _choose_run(self, planned: Sequence[str]) -> list[str]:
        """Choose the run that ``--fairness-resume=auto`` resumes; return the line that says why."""
        self.context, why = unfinished.chosen(self.context, planned, self.grids)
        return [why]

    def headline(self) -> list[str]:
        """The lines that a session with fairness tests starts with; none in any other."""
        quiet = self.worker is not None or self.config.option.verbose < 0
        if quiet or not self.ledger.collected:
            return []
        return reporting.first_announced(self._announced, self.config)

    # ------------------------------------------------------------ the run

    @cached_property
    def scorers(self) -> SessionScorers:
        return SessionScorers.of(self.config)

    @cached_property
    def context(self) -> RunContext:
        """Return the facts of the run that all parts of this process share."""
        given = self._given
        controller = self._controller
        # Controller and workers share the token, and through it the run's folder.
        token = given.get(xdist.TOKEN)
        started = given.get(xdist.STARTED)
        if controller is not None:
            token = controller.token
            started = controller.started
        return RunContext(
            settings=self.settings,
            root=self.config.rootpath,
            token=token or uuid.uuid4().hex,
            started=started or self._started,
            scorers=self.scorers.by_name,
            open_store=self._open_store,
            command=recorded_command(self.config),
            worker=self.worker,
            refusal=given.get(xdist.REFUSAL),
        )

    def _open_store(self) -> RunStore:
        """The run's folder, written by this process."""
        context = self.context
        store = open_store(
            context.settings.run_dir,
            context.token,
            writer=self.worker,
            adopt=context.settings.run_to_resume,
        )
        reporting.start_manifest(store, context)
        return store

    @cached_property
    def systems(self) -> Systems:
        return Systems(self.context, self.config)

    @cached_property
    def trial_source(self) -> TrialSource:
        """The source of the trials of this process; a shard deals them out, and tries no endpoint
        beforehand.
        """
        deal = None
        firsts = self._firsts()
        if self.settings.shard:
            deal = deal_of(self.settings.shard, self._items, self.grids)
            firsts = []
        return TrialSource(
            self.context,
            self.systems.resolve,
            self.grids,
            collection.selected_cells(self._items),
            deal=deal,
            progress=lambda: reporting.progress(self.config, self.settings.progress),
            controller=self._given.get(xdist.PROCESS),
            firsts=firsts,
            looks=self._looks,
            upcoming=upcoming(self._items, self.settings, self.config, alone=self.worker is None),
            configured=self.systems.configured,
        )

    @cached_property
    def _looks(self) -> Mapping[str, Any] | None:
        """Return what the run says of the looks, before the first call; None where it replays
        a run without looks.
        """
        manifest = self.context.store.manifest()
        looks: Mapping[str, Any] | None = manifest.get("looks")
        return looks

    def _red(self, place: int, alpha: float) -> float:
        """Return what the assertion in *place* of a test may spend on red about a fair system."""
        from pytest_fairness.analysis.looks import budget_in_run

        return budget_in_run(self._looks or {}, place, alpha)

    def _firsts(self) -> list[pytest.Item]:
        """Return where several endpoints are asked, the first item of each that asks just it."""
        firsts: dict[str, pytest.Item] = {}
        for selection, items in collection.active_items(self._items, self.grids).items():
            if selection.endpoint is not None and not brings_its_own(items[0]):
                firsts.setdefault(selection.endpoint, items[0])
        if len(firsts) > 1:
            return list(firsts.values())
        return []

    # ------------------------------------------------------------ the running test

    @contextlib.contextmanager
    def running(self, item: pytest.Item) -> Iterator[None]:
        """Be the session that assertions in *item* report to; under smoke, skip a test whose sample
        was too small.
        """
        from pytest_fairness.asserts import unusable

        findings = item.stash.setdefault(_FINDINGS, [])
        findings.clear()  # a rerun starts afresh
        context = self._item_contexts.of(item, findings)
        item.stash[_ANALYSED] = context.analysed
        judging: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if self.settings.merged is not None and STAGED in item.stash:
            context = unheard(context)
            judging = unjudged_on(self.settings.shard)
        with running_test(context), reading_until(self.context.read_until), judging:
            yield
        for finding in findings:
            if finding.verdict is Verdict.INCONCLUSIVE and unusable(finding):
                pytest.skip(f"smoke: {finding.sentence}")
        unjudged = self._unjudged(item, findings)
        if unjudged is not None and self.settings.require_conclusive:
            from pytest_fairness.reports.findings_json import Unjudged
            from pytest_fairness.reports.unjudged import unjudged_words

            pytest.fail(
                f"It {unjudged_words(Unjudged(**unjudged))}. {_LET_IT_JUDGE}", pytrace=False
            )

    @cached_property
    def _item_contexts(self) -> ItemContexts:
        """Return what makes the context of each running test."""
        return ItemContexts(
            run=self.context,
            in_file=self._justifications,
            session_number=lambda: self._number,
            red=self._red,
            ask=lambda item: lambda *given: self.trial_source.read(item, *given),
            end_reading=self._end_reading,
        )

    def _end_reading(self) -> None:
        """Skip the running test on a shard where other shards read replies of it."""
        self.trial_source.end_reading()

    @cached_property
    def _justifications(self) -> tuple[justifications.Justification, ...]:
        return justifications.read_file(self.config.rootpath / justifications.NAME)

    @cached_property
    def _number(self) -> int:
        """The place of this session among those of the run."""
        return reporting.number_of_session(self.context.store, self.context)

    def _mitigations(self) -> tuple[mitigations.Mitigation, ...] | None:
        """Return what is done about findings; None where the file cannot be read, which fails the
        session and costs no other report.
        """
        try:
            return mitigations.read_file(self.config.rootpath / mitigations.NAME)
        except UsageError as error:
            self._end.trouble = str(error)
            return None

    def attach_findings(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        """Let *report* carry the item's findings to the controller, and its verdicts to JUnit; an
        error of ours in
        *call* is shown without our inside.
        """
        findings = item.stash.get(_FINDINGS, [])
        is_fairness = item_marks.is_fairness_item(item)
        called = report.when == "call"
        is_replay = self.settings.replay is not None
        asked = called and not is_replay and collection.grid_key(item) in self.grids
        report_texts.show_error(item, call, report, asked=asked)
        if not findings and not is_fairness:
            return
        if called or (is_fairness and not report.passed):
            attach(report, findings, self._facts(item, call, report, findings))
        if called:
            report_texts.note_properties(item, findings)
        report_texts.lead_with_sentence(report, call, findings)
        report_texts.make_safe(report)

    def _facts(
        self,
        item: pytest.Item,
        call: pytest.CallInfo[None],
        report: pytest.TestReport,
        findings: Sequence[Finding],
    ) -> dict[str, JSON]:
        """Return what the ledger is told of *item* beside its *findings*."""
        reason = None
        if call.excinfo is not None:
            reason = getattr(call.excinfo.value, "msg", None)
        facts: dict[str, JSON] = {"skipped_here": isinstance(reason, item_marks.SkipReason)}
        if report.passed:
            facts["unjudged"] = self._unjudged(item, findings)
        return facts

    def _unjudged(self, item: pytest.Item, findings: Sequence[Finding]) -> dict[str, Any] | None:
        """Return what *item*, which drew these *findings*, asked for and concluded nothing from;
        None where it judged, or does so by asserts of its own.
        """
        asked = item.stash.get(ASKED, None)
        if asked is None or findings or not collection.labels_of(item).finding:
            return None
        return {**asked, "dropped": sorted(item.stash.get(_ANALYSED, ()))}

    # ------------------------------------------------------------ the end

    @property
    def has_run(self) -> bool:
        """Return whether this pytest session has anything to do with fairness, as far as this
        process can see.
        """
        opened = "context" in self.__dict__ and "store" in self.context.__dict__
        return (
            bool(self.ledger) or opened or (self._controller is not None and self._controller.begun)
        )

    def failures(self) -> int:
        """Count what fails the session though no test did: collected fairness tests that never
        reported, and tests that failed before and are left out or edited now.
        """
        if self.worker is not None:
            return 0
        return self._unanswered()

    def _unanswered(self) -> int:
        """Count the collected tests that never reported, and those that an earlier session failed
        and this one leaves out.
        """
        if not self.has_run or self.config.option.collectonly:
            return 0
        try:
            self._take_stock()
            left = reporting.left_standing(self.context.store, self.ledger, self.context)
        except StoreError:  # the end of the session says so, and is not green
            return 0
        failing = {standing.judgement.test for standing in left if standing.fails}
        return len(self.ledger.missing) + len(failing)

    def exit_status(self, status: int) -> int:
        """*status*, with which pytest ends, unless it says too little: 1 for what :meth:`failures`
        counts, and 5 where the plugin or a suite skipped every test that was selected.

        An exception that ends the session, as ``pytest.exit`` raises one, passes by whoever counts
        when the tests are over.
        """
        green = status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if green and self.failures():
            return pytest.ExitCode.TESTS_FAILED
        # A shard skips its tests because another session judges them.
        if status == pytest.ExitCode.OK and not self.settings.shard and self.ledger.skipped_here:
            return pytest.ExitCode.NO_TESTS_COLLECTED
        return status

    def _take_stock(self) -> None:
        """Let the ledger know what was collected, by workers too, and which of it has finished."""
        self.ledger.collected.update(self.context.store.manifest().get("planned", ()))
        recorder: Any = self.config.pluginmanager.getplugin(item_marks.RECORDER)
        self.ledger.finished = recorder.finished

    def finish(self, exitstatus: int) -> None:
        """Close what is open; in the controller, write findings.json and the HTML report."""
        self._end.interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        try:
            self._close()
            if not self.has_run:
                return
            store = self.context.store
            if self.worker is None:
                self._write_reports(exitstatus)
                self._fold()
            store.close()
            self._notify()
        except (FairnessError, OSError) as error:
            # The tests have been judged and their replies are on disk; say what is missing, and do
            # not end green.
            self._end.trouble = str(error)
            if self.worker is not None:
                config: Any = self.config
                config.workeroutput[xdist.TROUBLE] = str(error)

    def _close(self) -> None:
        """Close what is open. Raises StoreError where the folder of the run has gone, which must not
        be made anew, empty; and where a worker could not write all that it had asked.
        """
        if "trial_source" in self.__dict__:
            self.trial_source.close()
        controller = self._controller
        if controller is None:
            return
        controller.close()
        if controller.folder is not None and not controller.folder.exists():
            raise removed(controller.folder)
        if controller.trouble is not None:
            raise StoreError(controller.trouble)

    def _fold(self) -> None:
        """Let a session whose verdicts stand by class and test repeat none of them before."""
        terminal: Any = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None and reporting.stands_by_class(self.context.store.directory):
            fold(terminal, self.config.option)

    def _write_reports(self, exitstatus: int) -> None:
        """Write the reports of the run, and those for the job that it runs in."""
        self._take_stock()
        store = self.context.store
        self._end.outputs = reporting.write_reports(
            store,
            self.ledger,
            self.context,
            self._mitigations() or (),
            whole=self._controller is None or not self._controller.ended,
            facts={"exit_status": int(exitstatus)},
        )
        self._end.annotations = reporting.report_to_github(
            store.directory, self.context, os.environ
        )

    def _notify(self) -> None:
        """Send the results on, where they are written and nobody has interrupted the session."""
        if self._end.outputs is None or self._end.interrupted:
            return
        from pytest_fairness.pytest_layer.notifiers import notify

        self._end.not_notified = notify(self.config, self._end.outputs, self.settings.against)

    @property
    def trouble(self) -> str | None:
        """Return why the reports could not be written; None where they could."""
        return self._end.trouble

    def write_summary(self, terminal: Any) -> None:
        """Write the last lines in the terminal: counts, each finding's sentence, where the report
        lies.
        """
        if not self._end.says_something:
            return
        orphans = []
        if self._saw_everything(terminal):
            orphans = reporting.orphans(
                self.settings.baseline_dir, self.config.rootpath, self.ledger
            )
        resume = None
        if self.settings.replay is None and self._end.interrupted and self.trouble is None:
            resume = self.context.store.directory.name
        self._end.write(terminal, self.summary(), orphans, resume)

    def _saw_everything(self, terminal: Any) -> bool:
        """Return whether no path stood on the command line, and one process saw all tests: only then
        is a baseline that nobody claims an orphan.
        """
        named = self.config.args_source is self.config.ArgsSource.ARGS
        if named or not self._items or self.worker is not None:
            return False
        return not terminal.stats.get("deselected") and not terminal.stats.get("error")

    def summary(self) -> list[str]:
        """Return the counts, each finding's sentence, and where the reports lie."""
        if self._end.outputs is None:
            return []
        verbose = self.config.option.verbose > 0
        lines = reporting.summary(self._end.outputs, self.context, verbose=verbose)
        if self.settings.against is None and self.config.getoption("--fairness-against"):
            lines.append("since last: there is no earlier run with findings to compare with")
        return lines


def _judges_trials(item: pytest.Item) -> bool:
    """Return whether *item* asks for the trials of a design and may come to a finding about them."""
    if not item_marks.asks_for_trials(item):
        return False
    no_finding = [
        mark for mark in item.iter_markers("fairness") if mark.kwargs.get("finding") is False
    ]
    return not no_finding or not assertion_calls.only_analyzes(item)
