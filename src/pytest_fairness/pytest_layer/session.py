"""One process's part in a pytest session with fairness tests: from what was collected to what is
written at the end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.baselines import justifications, mitigations
from pytest_fairness.context import AUTO, RunContext
from pytest_fairness.documents import project_folder
from pytest_fairness.errors import FairnessError, StoreError, UsageError
from pytest_fairness.model import JSON, Finding, Verdict
from pytest_fairness.pytest_layer import (
    assertion_calls,
    collection,
    ledger,
    marks,
    preflight,
    reporting,
    second_sample,
    unfinished,
    xdist,
)
from pytest_fairness.pytest_layer.command_line import recorded_command
from pytest_fairness.pytest_layer.estimate import brings_its_own
from pytest_fairness.pytest_layer.options import settings_of
from pytest_fairness.pytest_layer.plain_errors import show_plainly
from pytest_fairness.pytest_layer.systems import Systems
from pytest_fairness.pytest_layer.trials import ASKED, TrialSource, deal_of
from pytest_fairness.reports.escaping import line as one_line
from pytest_fairness.running_test import TestContext, reading_until, running_test
from pytest_fairness.runs.files import removed
from pytest_fairness.runs.judgements import Judgement
from pytest_fairness.runs.records import utc_now
from pytest_fairness.runs.store import RunStore, open_store
from pytest_fairness.scorers import BUILT_IN, Scorer
from pytest_fairness.scorers.letter import letter_scorers
from pytest_fairness.scorers.lexicon import Lexicon

if TYPE_CHECKING:
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
        self._controller: xdist.Controller | None = config.pluginmanager.getplugin(marks.CONTROLLER)
        self.worker: str | None = self._given.get("workerid")
        self._started = time.monotonic()
        self.grids: dict[collection.Key, Planned] = {}
        self.ledger = ledger.Ledger()
        #: Why the reports could not be written.
        self.trouble: str | None = None
        self._items: Sequence[pytest.Item] = ()
        self._announced: list[str] = []
        self._interrupted = False
        #: Acceptances of warnings that hold no longer.
        self._expired: list[str] = []
        #: A line for each notifier that failed.
        self._not_notified: list[str] = []
        #: Where each output of the run is, once they are written.
        self._reported: dict[str, Path] | None = None
        self._annotations: list[str] = []

    # ------------------------------------------------------------ collecting

    def expand(self, metafunc: pytest.Metafunc) -> None:
        collection.ask_each(metafunc, self.settings.endpoints)
        if not marks.has_design(metafunc.definition):
            return
        # The systems are made when they are needed: hooks may still change the settings.
        resolve: Any = lambda system: self.systems.resolve(system)  # noqa: E731, PLW0108
        self.grids |= collection.expand(metafunc, self.settings.tier, lambda: self.scorers, resolve)

    def select(self, items: list[pytest.Item]) -> None:
        """Keep the tests that ``--fairness-test`` and ``--fairness-protected-class`` name."""
        if not self.settings.test and not self.settings.protected_class:
            return
        try:
            kept = collection.selected(items, self.settings.test, self.settings.protected_class)
        except UsageError as error:
            if self.worker is None:
                raise pytest.UsageError(str(error)) from None
            kept = []  # a worker can end its controller's session by no exit status; without tests it is 5
        if left := [item for item in items if item not in set(kept)]:
            self.config.hook.pytest_deselected(items=left)
            items[:] = kept

    def plan(self, items: Sequence[pytest.Item]) -> None:
        """Note which fairness tests this session is going to run, and open the run, and the one
        that is replayed.

        Where the one cannot be written, or the other is damaged, the session ends before anything
        is asked, with exit status 4.
        """
        planned = [item.nodeid for item in items if marks.is_fairness_item(item)]
        if not planned or self.config.option.collectonly:
            return
        caps = [
            cap
            for cap in self.config.hook.pytest_fairness_max_cost(config=self.config)
            if cap is not None
        ]
        if self.settings.max_cost is None and caps:
            self.settings = dataclasses.replace(self.settings, max_cost=min(caps))
        self._items = items
        if self.worker is None and self._mitigations() is None:
            raise pytest.UsageError(self.trouble)
        try:
            self._refuse_what_cannot_be(items)
        except UsageError as error:
            if self.worker is None:
                raise pytest.UsageError(str(error)) from None
            # A worker can end its controller's session by no exit status: its tests say why, and
            # ask nothing.
            self.context = dataclasses.replace(self.context, barred=str(error))
        try:
            if self.context.barred is None:  # else each test says why, when it asks for the run
                self._open_run(planned, items)
        except FairnessError as error:
            if self.worker is None:
                raise pytest.UsageError(str(error)) from None
            if self.context.settings.resume == AUTO:  # there is no run to open
                self.context = dataclasses.replace(self.context, barred=str(error))
            # A worker can end its controller's session by no exit status: each of its tests says
            # why, and asks nothing.
        self.ledger.collected.update(planned)

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
            context, items, self.grids, self.systems.configured, tests=len(planned)
        )
        expired = [one_line(f"fairness: {justification}") for justification in self._expired]
        self._announced = [size, *filter(None, choice), *more, *expired]
        facts = {"planned": sorted(planned), "asked": unfinished.asked(planned, self.grids)}
        if all(choice):  # else who has chosen the run says so
            facts["announced"] = self._announced
        context.store.update_manifest(**facts)
        if not preflight.asks_the_settings_endpoint(items, self.grids):
            reporting.note_replaced_endpoint(context)

    def _refuse_what_cannot_be(self, items: Sequence[pytest.Item]) -> None:
        """Raise UsageError for what no test could be judged with: documents and markers that cannot
        be read, and calls of assertions on what the trials will not have.
        """
        _ = self._justifications
        problems: list[str] = []
        for item in filter(marks.is_fairness_item, items):
            collection.labels_of(item)
            selection = collection.selection_of(item)
            planned = self.grids.get(selection.key)
            problems += assertion_calls.problems(
                item, planned, selection.tier, lambda: self.scorers
            )
        if problems:
            raise UsageError("\n".join(dict.fromkeys(problems)))

    def _choose_run(self, planned: Sequence[str]) -> list[str]:
        self.context, why = unfinished.chosen(self.context, planned, self.grids)
        return [why]

    def headline(self) -> list[str]:
        """The lines that a session with fairness tests starts with; none in any other."""
        quiet = self.worker is not None or self.config.option.verbose < 0
        if quiet or not self.ledger.collected:
            return []
        return self._announced

    # ------------------------------------------------------------ the run

    @cached_property
    def scorers(self) -> dict[str, Any]:
        """By name; those of the project win over the built-in ones, and so does its lexicon over
        ours.
        """
        scorers_ = self.config.hook.pytest_fairness_scorers()
        scorers = {scorer.name: scorer for several in reversed(scorers_) for scorer in several}
        by_own = self._letter_scorers()
        return scorers | {
            scorer.name: scorer
            for scorer in by_own
            if scorers[scorer.name] is BUILT_IN[scorer.name]
        }

    def _letter_scorers(self) -> Sequence[Scorer]:
        """Scorers by the lexicon of the project and by what it has accepted, where it has any."""
        folder = project_folder(self.config.rootpath)
        accepted = self.config.rootpath / "accepted.yaml"
        has_terms = folder is not None and (folder / "lexicon").is_dir()
        if not has_terms and not accepted.exists():
            return ()
        try:
            lexicon = Lexicon.load(folder if has_terms else None)
            if accepted.exists():
                lexicon, self._expired = lexicon.accepting(
                    accepted, datetime.datetime.now(datetime.UTC).date()
                )
            return letter_scorers(lexicon)
        except FairnessError as error:
            raise pytest.UsageError(str(error)) from None

    @cached_property
    def context(self) -> RunContext:
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
            scorers=self.scorers,
            open_store=self._open_store,
            command=recorded_command(self.config),
            worker=self.worker,
            barred=given.get(xdist.REFUSAL),
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
        shard = self.settings.shard
        return TrialSource(
            self.context,
            self.systems.resolve,
            self.grids,
            collection.selected_cells(self._items),
            deal=deal_of(shard, self._items, self.grids) if shard else None,
            progress=lambda: reporting.progress(self.config, self.settings.progress),
            controller=self._given.get(xdist.PROCESS),
            firsts=() if shard else self._firsts(),
        )

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
        context = self._context_of(item, findings)
        item.stash[_ANALYSED] = context.analysed
        with running_test(context), reading_until(self.context.read_until):
            yield
        few = [
            finding
            for finding in findings
            if finding.verdict is Verdict.INCONCLUSIVE and unusable(finding)
        ]
        if few:
            pytest.skip(f"smoke: {few[0].sentence}")
        unjudged = self._unjudged(item, findings)
        if unjudged is not None and self.settings.require_conclusive:
            from pytest_fairness.reports.findings_json import Unjudged
            from pytest_fairness.reports.unjudged import unjudged_words

            pytest.fail(
                f"It {unjudged_words(Unjudged(**unjudged))}. {_LET_IT_JUDGE}", pytrace=False
            )

    def _context_of(self, item: pytest.Item, findings: list[Finding]) -> TestContext:
        """The context of *item*, whose assertions add to *findings*."""
        labels = collection.labels_of(item)
        context = self.context
        documented = (*labels.justifications, *self._justifications)
        nodeid = collection.nodeid_of(item)
        scored_by: set[str] = set()
        offered = item.stash.get(second_sample.OFFERED, None)

        basis: list[Judgement] = []

        def emit(finding: Finding) -> None:
            if basis:
                judged = basis[-1]
            else:
                judged = Judgement()
            basis.clear()
            record = judged.to_record(
                nodeid,
                len(findings),
                session=self._number,
                time=utc_now(),
                controls=labels.controls,
                finding=finding.to_dict(),
                justified_by=self._justified_by(finding, labels.justifications, nodeid),
            )
            context.store.append(record)
            findings.append(finding)

        def baselines() -> Any:
            from pytest_fairness.analysis import approvals
            from pytest_fairness.baselines.syrupy_extension import BaselineStore

            return BaselineStore(
                # The one way to a fixture from inside a test's call; pytest offers no public one.
                snapshot=item._request.getfixturevalue("snapshot"),  # type: ignore[attr-defined]
                test_id=nodeid,
                rootdir=context.root,
                root=context.settings.baseline_dir,
                rules=approvals,
                policy=context.settings,
                run_id=context.store.directory.name,
            )

        return TestContext(
            test_id=labels.id,
            test_module=labels.module,
            description=labels.description,
            controls=labels.controls,
            room=labels.room,
            emit=emit,
            keep=basis.append,
            policy=context.settings,
            justification=lambda finding: justifications.find(documented, finding, nodeid),
            baseline=baselines,
            fresh_sample=None if offered is None else offered.like,
            changed=(lambda _table: ()) if offered is None else offered.changed,
            confirmable=lambda: offered is not None and offered.possible(),
            scorers=context.scorers,
            scored_by=scored_by,
            notes=lambda finding: [
                *preflight.notes_on(context, item, finding, scored_by),
                *justifications.expired_notes(documented, finding, nodeid),
            ],
            seed=context.settings.seed,
        )

    @cached_property
    def _justifications(self) -> tuple[justifications.Justification, ...]:
        return justifications.read_file(self.config.rootpath / justifications.NAME)

    @cached_property
    def _number(self) -> int:
        """The place of this session among those of the run."""
        return reporting.number_of_session(self.context.store, self.context)

    def _justified_by(
        self, finding: Finding, of_marker: Sequence[justifications.Justification], nodeid: str
    ) -> dict[str, str]:
        """The place of the reason for a FLAG: the test whose marker gives it, the file with its
        SHA-256, or the option by which it was approved.
        """
        if finding.justification is None:
            return {}
        if justifications.find(of_marker, finding, nodeid) is not None:
            return {"marker": nodeid}
        if justifications.find(self._justifications, finding, nodeid) is None:
            return {"option": "--fairness-justification"}
        path = self.config.rootpath / justifications.NAME
        return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}

    def _mitigations(self) -> tuple[mitigations.Mitigation, ...] | None:
        """Return what is done about findings; None where the file cannot be read, which fails the
        session and costs no other report.
        """
        try:
            return mitigations.read_file(self.config.rootpath / mitigations.NAME)
        except UsageError as error:
            self.trouble = str(error)
            return None

    def attach_findings(
        self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
    ) -> None:
        """Let *report* carry the item's findings to the controller, and its verdicts to JUnit; an
        error of ours in
        *call* is shown without our inside.
        """
        findings = item.stash.get(_FINDINGS, [])
        ours = marks.is_fairness_item(item)
        asked = (
            report.when == "call"
            and collection.grid_key(item) in self.grids
            and self.settings.replay is None
        )
        show_plainly(item, call, report, asked=asked)
        raised = None
        if call.excinfo is not None:
            raised = call.excinfo.value
        if findings or ours:
            if report.when == "call" or (ours and not report.passed):
                facts: dict[str, JSON] = {
                    "skipped_here": isinstance(getattr(raised, "msg", None), marks.SkipReason)
                }
                if report.passed:
                    facts["unjudged"] = self._unjudged(item, findings)
                ledger.attach(report, findings, facts)
            if report.when == "call":
                ledger.note_properties(item, findings)
            ledger.lead_with_sentence(report, findings)
            ledger.make_safe(report)

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
        reported, tests that failed before and are left out or edited now, and findings below
        ``fairness_session_alpha``.
        """
        if self.worker is not None:
            return 0
        count = 0
        alpha = self.settings.session_alpha
        if self.has_run and not self.config.option.collectonly:
            with contextlib.suppress(
                StoreError
            ):  # the end of the session says so, and is not green
                self._take_stock()
                left = reporting.left_standing(self.context.store, self.ledger, self.context)
                count = len(self.ledger.missing) + len(
                    {standing.judgement.test for standing in left if standing.fails}
                )
        if alpha is not None:
            from pytest_fairness.analysis.false_alarms import alarms

            count += len(alarms(self.ledger.findings, self.ledger.outcomes, alpha))
        return count

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
        recorder: Any = self.config.pluginmanager.getplugin(marks.RECORDER)
        self.ledger.finished = recorder.finished

    def finish(self, exitstatus: int) -> None:
        """Close what is open; in the controller, write findings.json and the HTML report."""
        self._interrupted = exitstatus == pytest.ExitCode.INTERRUPTED
        controller = self._controller
        try:
            if "trial_source" in self.__dict__:
                self.trial_source.close()
            if controller is not None:
                controller.close()
            if not self.has_run:
                return
            if (
                controller is not None
                and controller.folder is not None
                and not controller.folder.exists()
            ):
                raise removed(controller.folder)  # it must not be made anew, empty
            store = self.context.store
            if self.worker is None:
                self._take_stock()
                whole = controller is None or not controller.ended
                status = {"exit_status": int(exitstatus)}
                self._reported = reporting.write_reports(
                    store,
                    self.ledger,
                    self.context,
                    self._mitigations() or (),
                    whole=whole,
                    facts=status,
                )
                self._annotations = reporting.report_to_github(
                    store.directory, self.context, os.environ
                )
            store.close()
            if self._reported is not None and not self._interrupted:
                self._notify(self._reported)
        except (FairnessError, OSError) as error:
            # The tests have been judged and their replies are on disk; say what is missing, and do
            # not end green.
            self.trouble = str(error)

    def _notify(self, outputs: Mapping[str, Path]) -> None:
        from pytest_fairness.pytest_layer.notifiers import notify
        from pytest_fairness.reports.findings_json import read_results
        from pytest_fairness.reports.outputs import compared_runs

        run = outputs["report"].parent
        against = self.settings.against
        changes = None
        if against is not None:
            changes = compared_runs(run, against)
        facts = {"results": read_results(run), "changes": changes, "report": outputs["report"]}
        self._not_notified = notify(self.config, facts)

    def write_summary(self, terminal: Any) -> None:
        """The last lines in the terminal: counts, each finding's sentence, where the report lies."""
        if self._reported is None and self.trouble is None:
            return
        terminal.section("fairness", sep="=")
        for line in self.summary():
            terminal.write_line(line)
        # No path on the command line, and one process sees it all: only then is what nobody claims
        # an orphan.
        whole = (
            self._items
            and self.config.args_source is not self.config.ArgsSource.ARGS
            and self.worker is None
        )
        if whole and not terminal.stats.get("deselected") and not terminal.stats.get("error"):
            for line in reporting.orphans(
                self.settings.baseline_dir, self.config.rootpath, self.ledger
            ):
                terminal.write_line(line, yellow=True)
        if self._interrupted and self.settings.replay is None and self.trouble is None:
            run = self.context.store.directory.name
            terminal.write_line(f"  to go on: the same command with --fairness-resume {run}")
        if self.trouble is not None:
            terminal.write_line(f"fairness: the reports are not whole: {self.trouble}", red=True)

        for line in self._not_notified:
            terminal.write_line(line, yellow=True)
        for line in self._annotations:
            terminal.write_line(line)

    def summary(self) -> list[str]:
        if self._reported is None:
            return []
        lines = reporting.summary(self._reported, self.context)
        if self.settings.against is None and self.config.getoption("--fairness-against"):
            lines.append("since last: there is no earlier run with findings to compare with")
        return lines
