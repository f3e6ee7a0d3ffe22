"""The ``trials`` and ``cell`` fixtures: they pull replies from the run, and ask for the others."""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import itertools
import os
import re
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from pytest_fairness.analysis import pilots
from pytest_fairness.context import EVERY_STAGE, RunContext
from pytest_fairness.design.series import PILOT
from pytest_fairness.design.stages import DRAW, Stages
from pytest_fairness.endpoints.batch_api import batches_of
from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.endpoints.registry import PROVIDERS
from pytest_fairness.engine.engine import (
    SETTLED,
    Engine,
    EventLoop,
    ParentWatch,
    ended_as_by_ctrl_c,
)
from pytest_fairness.engine.progress import Progress, looks_in_words, tests_that_look
from pytest_fairness.engine.queue import Deal
from pytest_fairness.engine.scripts import Escalation, Pipeline
from pytest_fairness.errors import BudgetError, EndpointError, NeverAskedError, UsageError
from pytest_fairness.model import JSON, Elicitation, OutcomeKind, Status, Trial
from pytest_fairness.pytest_layer import assertion_calls, collection, reporting
from pytest_fairness.pytest_layer.asked_ahead import Upcoming
from pytest_fairness.pytest_layer.item_marks import SkipReason
from pytest_fairness.pytest_layer.plans import (
    Planned,
    PlannedCell,
    Resolve,
    elicitation_of,
    needs_one_message,
    parameters_of,
    step_systems,
)
from pytest_fairness.pytest_layer.reading_turns import SELF
from pytest_fairness.pytest_layer.staged_trials import (
    STAGED,
    StagedTrials,
    names_handed_out,
    remake_in,
)
from pytest_fairness.running_test import reading_until
from pytest_fairness.runs import folder
from pytest_fairness.runs.designs import (
    PlannedTrial,
    RecordedDesign,
    changed_looks,
    closest_changes,
    design_of,
)
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.money import dollars
from pytest_fairness.runs.records import trial_of, unchained
from pytest_fairness.runs.replay import Replayer
from pytest_fairness.runs.store import Retry
from pytest_fairness.scorers import is_refusal
from pytest_fairness.scorers.disclaimer import has_disclaimer
from pytest_fairness.scorers.given_answers import read_form
from pytest_fairness.trials_frame import (
    DISCLAIMS,
    ELICITED_BY,
    ONE_MESSAGE,
    AnsweredCell,
    EndpointFacts,
    GridFacts,
    any_text,
    refuse_if_nothing_answered,
    trials_frame,
)
from pytest_fairness.words import count, enumerated

if TYPE_CHECKING:
    import pandas as pd

    from pytest_fairness.design.axes import Pair
    from pytest_fairness.runs.reader import RunReader

#: A request that the provider refuses for what stands in it.
_REJECTED = re.compile(r"\bHTTP 4(?:00|22)\b")
_ENDED = "the session that this worker belongs to has ended; nothing more is sent"


#: Fewer trials of a plan than this have no stage before it.
_FEWEST_OF_A_STAGE = 2
#: How many trials ahead of time are enough, in multiples of those in flight.
_AHEAD = 4
#: What a test was given as a table, in the stash of its item: the fields of ``Unjudged``, should it
#: conclude nothing.
ASKED = pytest.StashKey[dict[str, JSON]]()
#: What the pilot of an item chose, in its stash: the record of the log.
CHOSEN_BY_PILOT = pytest.StashKey[Mapping[str, Any]]()
#: The system that an item asks for trials, in its stash.
_SYSTEM = pytest.StashKey[Any]()


class TrialSource:
    """The engines of one process, one for each system under test, and the replies already handed
    out.

    *grids* are the designs of the collected tests, *selected* the cells that per-cell items want.
    *controller* is the process that this worker works for. *firsts*: where several endpoints are
    asked, an item of each. ``looks``: what is fixed of them; None in
    the replay of a run without. ``upcoming``: the tests that may be asked ahead of time, of an
    endpoint that *configured* gives by its name.
    """

    def __init__(
        self,
        context: RunContext,
        resolve: Resolve,
        grids: Mapping[collection.Key, Planned],
        selected: Mapping[collection.Selection, tuple[int, ...]],
        *,
        deal: Deal | None = None,
        progress: Callable[[], Progress | None] = lambda: None,
        controller: int | None = None,
        firsts: Sequence[pytest.Item] = (),
        looks: Mapping[str, Any] | None = None,
        upcoming: Upcoming | None = None,
        configured: Callable[[str | None], Endpoint] | None = None,
    ) -> None:
        self._context = context
        self._resolve = resolve
        self._grids = grids
        self._selected = selected
        self._deal = deal
        self._progress = progress
        self._shown: list[Progress] = []
        self._look = ""
        self._controller = controller
        self._firsts = firsts
        self._looks = looks
        self._upcoming = upcoming or Upcoming()
        self._configured = configured
        self._until_closed = contextlib.ExitStack()
        self._ends_in_order = False
        self._refused = ""
        # With the system itself, so that no other gets its id.
        self._endpoints: dict[int, tuple[Any, Endpoint]] = {}
        self._engines: dict[str, tuple[Endpoint, Engine | Replayer]] = {}
        self._parent: ParentWatch | None = None
        self._loop: EventLoop | None = None
        self._prefetched: dict[tuple[Any, ...], dict[int, AnsweredCell]] = {}
        # The stages of the design asked last, to which nobody writes: tests that share a design
        # follow one another, and those of all designs would fill the memory. Its key has the ids of
        # what the session holds: of the plan, and of the system in _endpoints.
        self._latest: dict[tuple[Any, ...], dict[Hashable, _Stage]] = {}
        # Whether a shard lacks answers of what it was last asked for: other shards ask them, too.
        self._absent = False
        # The same of the reading turns of the running test.
        self._turns_absent = False

    def trials_of(self, item: pytest.Item, system: Any) -> pd.DataFrame:
        """The whole design of *item* as a table, one row a trial."""
        item.stash[_SYSTEM] = system
        self._turns_absent = False
        self._end_in_order(item)
        planned = self._grids[collection.grid_key(item)]
        texts = self._chosen_texts(planned, item, system)
        stages = _stages_of(planned, texts)
        largest = 0

        def ask(names: int, fewer: Mapping[Pair, int]) -> pd.DataFrame:
            nonlocal largest
            table, asked = self._stage(planned, item, system, names, fewer, texts)
            if len(table) > largest:
                largest = len(table)
                item.stash[ASKED] = asked
            return table

        if self._deal is not None and (self._every_stage or self._context.merged is None):
            ask(self._stage_of_shard(stages), {})
            if self._context.merged is None:
                self._skip_on_a_shard()
        # A copy each: the test may add columns to its own, which others have not.
        if self._looks is None:
            return ask(stages.base, {}).copy()
        self._refuse_other_looks(self._looks, item, stages)
        staged = StagedTrials(
            stages,
            ask,
            context=planned.cell(0).context,
            handed_out=_names_handed_out(stages, item),
            remake=remake_in(item),
            unit=planned.unit,
        )
        item.stash[STAGED] = staged
        return staged.handed_out.copy()

    def _chosen_texts(
        self, planned: Planned, item: pytest.Item, system: Any
    ) -> frozenset[str] | None:
        """Return the texts that the pilot of *item* chose: by the answers of this run or, where one
        is resumed or replayed, as it was recorded. None where all texts are asked: without a pilot,
        and on a shard, which cannot know what the others were answered.
        """
        pilot = planned.pilot
        if pilot is None:
            return None
        self._absent = False
        tables = []
        for answers in self._answers(pilot.planned, item, system, stage=PILOT):
            replayed = self._context.recording is not None
            tables.append(answers.table(pilot.planned, replayed=replayed))
        if self._absent:
            return None
        context = self._context
        test = collection.nodeid_of(item)
        table = _in_one_table(tables)
        _refuse_unfinished(table)
        with reading_until(context.read_until):
            record = pilots.record_of(table, pilot.scorer, pilot.series, context.scorers)
        logged = pilots.earlier_record(record, test, context.store.of_type(PILOT))
        for run in filter(None, (context.merged, context.recording)):
            record = pilots.earlier_record(record, test, run.of_type(PILOT)) or record
        record = logged or {**record, "test": test}
        if logged is None:
            context.store.append(unchained(record))
        item.stash[CHOSEN_BY_PILOT] = record
        return planned.grid.chosen_texts(itertools.chain.from_iterable(record["chosen"].values()))

    def _refuse_other_looks(
        self, fixed: Mapping[str, Any], item: pytest.Item, stages: Stages
    ) -> None:
        """Raise UsageError where the run that is resumed or replayed planned other looks for *item*
        before its first call.
        """
        before = fixed.get("planned", {}).get("::".join(collection.grid_key(item)))
        now: dict[str, Any] = stages.to_dict()
        if before is None or before == now:
            return
        outcome = "rates"
        if before[outcome] == now[outcome]:  # what is listed holds for scores, too
            outcome = "scores"
        looks = [enumerated(list(map(str, plan[outcome])), 9) for plan in (before, now)]
        changes = [f"the looks were {looks[0]}, are {looks[1]}"]
        if self._context.recording is None:
            _refuse_changes(changes, self._context.store.directory.name)
        raise UsageError(
            f"the run cannot be replayed for this test: {changes[0]}. Looks are fixed before the "
            "first call: undo the change, or start a new run"
        )

    @property
    def _every_stage(self) -> bool:
        """Return whether a shard asks all stages at once."""
        return self._context.settings.looks == EVERY_STAGE

    def _stage_of_shard(self, stages: Stages) -> int:
        """Return the names of the stage that a shard asks where it judges nothing: the first, or
        all of them.
        """
        if self._every_stage:
            return stages.size
        return stages.first

    def cell_of(self, item: pytest.Item, system: Any, index: int) -> AnsweredCell:
        """One cell of *item*'s design. The first one asks for all that are selected: items run one
        after another.
        """
        selection = collection.selection_of(item)
        memory = self._prefetched.setdefault((*selection, id(system)), {})
        if index not in memory:
            planned = self._grids[selection.key]
            chosen = self._selected[selection]
            places = {planned.cell(at).id: at for at in chosen}
            for answers in self._answers(planned, item, system, chosen):
                for answered in answers.cells():
                    memory[places[answered.cell.id]] = answered
        self._skip_on_a_shard()
        return memory[index]

    def read(
        self, item: pytest.Item, reader: str, turns: Sequence[PlannedTrial]
    ) -> tuple[Endpoint, Sequence[Trial]]:
        """Return the endpoint *reader*, and its answers to reading *turns*, in order.

        Raises UsageError where *item* has no system to be its own reader, and on a shard that does
        not go on from a merged run; and what the engine raises.
        """
        system: Any = reader
        if reader == SELF:
            system = item.stash.get(_SYSTEM, None)
            if system is None:
                raise UsageError(
                    f"reader={SELF!r}: this test asks for no trials, so that there is no endpoint "
                    "to read them; name one"
                )
        if self._context.recording is not None:
            return self._replayed_turns(system, reader, self._context.recording, turns)
        endpoint, engine = self._engine(system)
        if self._deal is not None:
            return endpoint, self._dealt_turns(engine, turns, self._deal)
        if isinstance(engine, Engine):
            return endpoint, self._asked(engine, turns)
        return endpoint, engine.run(turns)

    def _replayed_turns(
        self, system: Any, reader: str, recording: RunReader, turns: Sequence[PlannedTrial]
    ) -> tuple[Endpoint, Sequence[Trial]]:
        """Return the endpoint *system*, named as *reader*, and its answers to reading *turns* in
        the *recording*.

        Raises NeverAskedError where it was not asked.
        """
        try:
            endpoint, engine = self._engine(system)
            return endpoint, engine.run(turns)
        except (NeverAskedError, UsageError) as error:
            run = recording.directory
            how = "resume it with --fairness-resume"
            if "merged_from" in read_manifest(run):
                how = f"read them on shards, --fairness-shard=K/N --fairness-resume={run.name}"
            raise NeverAskedError(
                f"replies of run {run.name} were not read by {reader!r}, and a replay asks "
                f"nothing: {how}, or name the reader that it had. {error}"
            ) from error

    def _dealt_turns(
        self, engine: Engine | Replayer, turns: Sequence[PlannedTrial], deal: Deal
    ) -> list[Trial]:
        """Return the answers to reading *turns* on a shard, in order: those of the merged run, and
        of its share by *deal* those that the run lacks; NOT_RUN those that another shard asks.

        Raises UsageError where the shard goes on from no merged run.
        """
        merged = self._context.merged
        if merged is None or not isinstance(engine, Engine):
            raise UsageError(
                "a shard reads what shards before it were answered: merge them, and go on with "
                "--fairness-resume=MERGED"
            )
        absent = self._not_merged(engine, turns)
        mine = list(filter(deal.mine, absent))
        self._turns_absent = self._turns_absent or len(mine) < len(absent)
        answers = _by_place(mine, self._asked(engine, mine))
        keys = map(engine.key_of, turns)
        for turn, record in zip(turns, merged.records(keys), strict=True):
            if record is not None:
                answers[id(turn)] = trial_of(record)
        return _in_order(engine, turns, answers)

    def end_reading(self) -> None:
        """Skip the running test on a shard where other shards read replies of it: it cannot be
        judged before they are merged.
        """
        absent, self._turns_absent = self._turns_absent, False
        if absent:
            self._skip_on_a_shard()

    def _stage(
        self,
        planned: Planned,
        item: pytest.Item,
        system: Any,
        names: int,
        fewer: Mapping[Pair, int],
        texts: frozenset[str] | None,
    ) -> _Stage:
        """Return a stage of *item*: the first *names* of each group, of *fewer* as many as that
        says, of the *texts* that a pilot chose. Where nothing of it can change any more, it is made
        once for all tests of the design.
        """
        stage = f"{names} {planned.unit}"
        if texts is None and planned.pilot is not None:
            stage = f"{stage}, all texts"
        self._name_look(item, stage)
        selection = collection.selection_of(item)
        design = (id(planned), *selection[1:], id(system))
        stages = self._latest.get(design, {})
        self._latest = {design: stages}
        place = names, frozenset(fewer.items()), texts
        if place in stages:
            self._ask_ahead(item)
            return stages[place]
        indices: Sequence[int] | None = None
        if planned.grid.stages is not None:
            indices = planned.grid.stage(names, fewer)
        if texts is not None:
            indices = planned.grid.of_texts(indices or range(len(planned.grid)), texts)
        tables = []
        self._absent = False
        for answers in self._answers(planned, item, system, indices, stage):
            table = answers.table(planned, replayed=self._context.recording is not None)
            if planned.temperatures:
                table["temperature"] = _heat(selection.temperature)
            tables.append(table)
        if self._absent:
            self._skip_on_a_shard()
        whole = _in_one_table(tables)
        with reading_until(self._context.read_until):
            made = planned.table(whole), _asked_of(whole)
        if whole["status"].isin(SETTLED).all():
            stages[place] = made
        return made

    def _name_look(self, item: pytest.Item, stage: str) -> None:
        """Have progress say which look of *item* the *stage* is asked for."""
        store = self._context.store
        looks = store.of_type("look")
        nodeid = collection.nodeid_of(item)
        words = looks_in_words(looks, tests_that_look(store), nodeid)
        if all(look["test"] != nodeid for look in looks):
            words = "; ".join(filter(None, [f"look 1: {stage}", words]))
        self._look = words
        for progress in self._shown:
            progress.name_look(words)

    def _skip_on_a_shard(self) -> None:
        """Skip the running test on a shard, which judges nothing."""
        if self._deal is not None:
            shard = self._context.settings.shard
            pytest.skip(
                f"shard {shard}: asked, to be merged (pytest-fairness merge) and judged then"
            )

    def _answers(
        self,
        planned: Planned,
        item: pytest.Item,
        system: Any,
        indices: Sequence[int] | None = None,
        stage: str = "",
    ) -> Iterator[_Answers]:
        """Yield the answers of each system that the cells of *planned* (those at *indices*, a *stage*
        by that name) ask: *system*, or one that an arm brings.
        """
        selection = collection.selection_of(item)
        tier = selection.tier
        for entries in _by_system(planned.entries(tier, indices)):
            asked = entries[0].system
            if asked is None:
                asked = system
            endpoint, engine = self._engine(asked)
            sent = _all_as_sent(planned, entries, endpoint, tier)
            self._note_steps(sent)
            elicitation = self._elicitation(planned, sent, endpoint, engine, selection)
            sent = [entry.asked_by(elicitation) for entry in sent]
            plan = planned_trials(planned, sent, selection.temperature)
            trials = self._pull(
                endpoint,
                engine,
                planned,
                plan,
                _part(selection, stage),
                whole=bool(stage),
                meanwhile=partial(self._ask_ahead, item),
            )
            yield _Answers(endpoint, sent, trials, repetitions=planned.grid.repetitions)

    def _end_in_order(self, item: pytest.Item) -> None:
        """From the first *item* on that others may be asked ahead of, have a signal that would kill
        the process end the session in order: trials are under way while tests run.
        """
        if not self._ends_in_order and self._upcoming.after(item) is not None:
            self._ends_in_order = True
            self._until_closed.enter_context(ended_as_by_ctrl_c())

    def _ask_ahead(self, item: pytest.Item) -> None:
        """Have the first stages of tests after *item* asked in the places that its own leave free:
        so many trials that those do not run out.
        """
        enough = _AHEAD * self._context.settings.concurrency
        while (following := self._upcoming.after(item)) is not None:
            if sum(engine.ahead for engine in self._asking_engines()) >= enough:
                return
            # What keeps a test from being asked, it says itself when it runs.
            with contextlib.suppress(UsageError, EndpointError, BudgetError, pytest.skip.Exception):
                if not self._ask_first_stage(following):
                    return
            self._upcoming.take()

    def _ask_first_stage(self, item: pytest.Item) -> bool:
        """Have the stage that *item* will be handed asked ahead of time, where it asks one provider
        over the network and nobody else; return False where it is too early for that.

        Raises what keeps it from being asked.
        """
        selection = collection.selection_of(item)
        planned = self._grids[selection.key]
        if self._configured is None or self._looks is None:
            return False
        if planned.pilot is not None:  # which of its texts are asked, the pilot has to show
            return True
        system = self._configured(selection.endpoint)
        if system.type not in PROVIDERS:
            return True
        endpoint, engine = self._engine(system)
        elicitation = self._known_elicitation(planned, endpoint, selection)
        if not isinstance(engine, Engine) or not engine.answers or elicitation is None:
            return False
        stages = planned.grid.stages
        indices = None
        stage = _one_stage(planned).base
        if stages is not None:
            self._refuse_other_looks(self._looks, item, stages)
            stage = _names_handed_out(stages, item)
            indices = planned.grid.stage(stage, {})
        entries = planned.entries(selection.tier, indices)
        if any(entry.asks_others for entry in entries):
            return True
        sent = _all_as_sent(planned, entries, endpoint, selection.tier)
        sent = [entry.asked_by(elicitation) for entry in sent]
        plan = planned_trials(planned, sent, selection.temperature)
        part = _part(selection, f"{stage} {planned.unit}")
        self._logged_design(endpoint, planned, plan, part, whole=True, trials=len(plan))
        engine.ask_ahead(plan)
        return True

    def _asking_engines(self) -> list[Engine]:
        """Return the engines that ask; those of a replay do not. Any thread may call it."""
        engines = []
        for _, engine in list(self._engines.values()):
            if isinstance(engine, Engine):
                engines.append(engine)
        return engines

    def _known_elicitation(
        self, planned: Planned, endpoint: Endpoint, selection: collection.Selection
    ) -> Elicitation | None:
        """Return the way by which *endpoint* is asked for the answers of *planned*; None where the
        first trial that is asked by a form has to show whether it takes one.
        """
        elicitation = elicitation_of(planned, selection.tier, endpoint)
        if elicitation is not Elicitation.FORM:
            return elicitation
        identity = identity_hash(endpoint.identity())
        context = self._context
        for run in (context.recording, context.merged, context.store):
            if run is None:
                continue
            found_out = reporting.elicitation_of(run, identity)
            if found_out is not None:
                return found_out
        return None

    def _elicitation(
        self,
        planned: Planned,
        entries: Sequence[PlannedCell],
        endpoint: Endpoint,
        engine: Engine | Replayer,
        selection: collection.Selection,
    ) -> Elicitation:
        """Return the way by which *endpoint* is asked for the answers of *planned*: of an endpoint
        that is said to take a form, what came of the first trial of the run that was asked by one.
        """
        elicitation = self._known_elicitation(planned, endpoint, selection)
        if elicitation is not None:
            return elicitation
        elicitation = Elicitation.FORM
        if not isinstance(engine, Engine) or batches_of(endpoint) is not None:
            return elicitation
        every = [entry.asked_by(elicitation) for entry in entries]
        by_form = [entry for entry in every if entry.elicitation is elicitation]
        trials = planned_trials(planned, by_form, selection.temperature)
        if self._deal is not None:
            trials = list(filter(self._deal.mine, trials))
        if not trials:
            return elicitation
        (answer,) = self._asked(engine, trials[:1])
        why = _why_no_form(answer, planned)
        identity = identity_hash(endpoint.identity())
        return reporting.note_elicitation(self._context.store, endpoint, identity, why)

    def _note_steps(self, entries: Sequence[PlannedCell]) -> None:
        """Record the systems that steps of *entries* ask, each once."""
        systems: dict[int, Endpoint] = {}
        for entry in entries:
            for system in entry.step_systems:
                systems[id(system)] = system
        for system in systems.values():
            reporting.note_endpoint(self._context.store, system)

    def _pull(
        self,
        endpoint: Endpoint,
        engine: Engine | Replayer,
        planned: Planned,
        plan: Sequence[PlannedTrial],
        part: str,
        *,
        whole: bool,
        meanwhile: Callable[[], None],
    ) -> list[Trial]:
        """The trials of *plan*, in its order; NOT_RUN those that another shard asks. *part* tells
        the items of one test apart, each of which asks a sample of its own. *meanwhile* is called
        while they are asked.

        What the test asks is logged once a session and process. Raises what the engine raises,
        UsageError where a resumed run asked otherwise before (nothing is asked then, and nothing
        mixed), and EndpointError where no trial has a usable answer.
        """
        mine = plan
        if self._deal is not None:
            absent = self._not_merged(engine, plan)
            if self._context.merged is not None and not absent:
                records = self._context.merged.records(map(engine.key_of, plan))
                return list(map(trial_of, filter(None, records)))
            self._absent = True
            mine = [trial for trial in absent if self._deal.mine(trial)]
        design = self._logged_design(endpoint, planned, plan, part, whole=whole, trials=len(mine))
        if isinstance(engine, Engine):
            self._try_endpoints()
            trials = self._asked(engine, mine, meanwhile)
        else:
            trials = engine.run(mine, design)
        refuse_if_nothing_answered(trials, endpoint.name)
        if len(mine) == len(plan):
            return trials
        return _in_order(engine, plan, _by_place(mine, trials))

    def _not_merged(
        self, engine: Engine | Replayer, plan: Sequence[PlannedTrial]
    ) -> Sequence[PlannedTrial]:
        """Return the trials of *plan* that the merged run lacks; all where no shard goes on."""
        merged = self._context.merged
        if merged is None:
            return plan
        keys = list(map(engine.key_of, plan))
        absent = set(merged.missing(keys))
        return list(itertools.compress(plan, map(absent.__contains__, keys)))

    def _logged_design(
        self,
        endpoint: Endpoint,
        planned: Planned,
        plan: Sequence[PlannedTrial],
        part: str,
        *,
        whole: bool,
        trials: int,
    ) -> RecordedDesign | None:
        """Return the design that the test asks of *endpoint*, logged once a session and process.

        Raises UsageError where a resumed run asked otherwise before.
        """
        test = next((key for key, grid in self._grids.items() if _is_part_of(planned, grid)), None)
        if test is None or not plan:
            return None
        context = self._context
        store = context.store
        looks = score_looks = list[int]()
        if whole:
            looks = list(_possible_looks(planned))
            score_looks = list(_possible_looks(planned, OutcomeKind.NUMERIC))
        design = design_of(
            plan,
            test="::".join(test),
            part=part,
            tier=plan[0].cell.tier,
            endpoint=endpoint.name,
            identity=endpoint.identity(),
            parameters=plan[0].sent_parameters(endpoint),
            templates={template.id: template.text for template in planned.grid.templates},
            seed=context.settings.seed,
            session=context.session,
            whole=whole,
            trials=trials,
            looks=looks,
            score_looks=score_looks,
        )
        if self._is_logged(design):
            return design
        recording = context.recording or context.merged
        if recording is not None:
            _refuse_other_looks(changed_looks(recording.designs(), design), recording)
        store.append(design.to_record())
        return design

    def _is_logged(self, design: RecordedDesign) -> bool:
        """Return whether this session has logged *design*. Raises UsageError where the sessions
        before, of the run that it resumes, asked otherwise.
        """
        store = self._context.store
        previous = []
        logged = False
        for other in store.designs():
            if other.session != design.session:
                previous.append(other)
            elif other.same(design):
                logged = True
        if self._context.settings.run_to_resume is not None:
            changed = [*closest_changes(previous, design), *changed_looks(previous, design)]
            _refuse_changes(changed, store.directory.name)
        return logged

    def _asked(
        self,
        engine: Engine,
        plan: Sequence[PlannedTrial],
        meanwhile: Callable[[], None] | None = None,
    ) -> list[Trial]:
        """The trials of *plan*; where not all of it can be asked, the manifest says why, for a
        session that resumes.
        """
        store = self._context.store
        try:
            self._refuse_beyond_cap(engine, plan)
            trials = engine.run(plan, meanwhile=meanwhile)
        except BudgetError:
            reporting.note_unasked(store, "cost")
            raise
        except EndpointError:
            reporting.note_unasked(store, "endpoint")
            raise
        if any(trial.status is Status.NOT_RUN for trial in trials):
            reporting.note_unasked(store, "time")
        return trials

    def _refuse_beyond_cap(self, engine: Engine, plan: Sequence[PlannedTrial]) -> None:
        """Raise BudgetError where a later stage, of which *plan* has the trials, would cost more
        than the cap leaves, by what those before have cost: nothing of it is asked then. A first
        stage is tried call by call.
        """
        cap = self._context.settings.max_cost
        if cap is None:
            return
        store = self._context.store
        spent = dollars(store.budget(None).account().settled)
        if not spent:
            return
        records = list(store.records(dict.fromkeys(map(engine.key_of, plan))))
        costs = [record["cost"] or 0.0 for record in records if record is not None]
        absent = len(records) - len(costs)
        # One alone is no stage: it has shown by which way the answers are asked for.
        if len(costs) < _FEWEST_OF_A_STAGE or not absent:
            return
        expected = absent * sum(costs) / len(costs)
        if spent + expected > cap:
            raise BudgetError(
                f"the cost cap of ${cap:.2f} leaves no room for the next stage: ${spent:.4f} is "
                f"spent, and its {absent:,} trials would cost about ${expected:.4f} by those "
                "before; nothing of it was asked. Raise --fairness-max-cost and resume the run"
            )

    def _try_endpoints(self) -> None:
        """Ask the first trial of each of several endpoints before anything else is asked of any:
        that the last one refuses us is found before the others are paid. Raises EndpointError, then
        and from then on.
        """
        items = self._firsts
        self._firsts = ()
        for item in items:
            selection = collection.selection_of(item)
            planned = self._grids[selection.key]
            index = self._selected.get(selection, (0,))[0]
            if planned.pilot is not None:  # of what follows nobody knows yet which texts are asked
                planned = planned.pilot.planned
            (entry,) = planned.entries(selection.tier, [index])
            endpoint, engine = self._engine(selection.endpoint)
            if endpoint.simulated or entry.asks_others or not isinstance(engine, Engine):
                continue
            entry = _as_sent(planned, entry, endpoint, selection.tier)
            prompted = _prompted(endpoint, [entry])
            takes_prompts = all(system.supports_system_prompt for system in prompted)
            if selection.tier == 1 and not takes_prompts:
                continue  # its tests are skipped
            try:
                elicitation = self._elicitation(planned, [entry], endpoint, engine, selection)
                first = planned_trials(
                    planned, [entry.asked_by(elicitation)], selection.temperature
                )
                self._asked(engine, first[:1])
            except EndpointError as error:
                mend = (
                    f"mend it, or leave {endpoint.name!r} out of --fairness-endpoint: no other is "
                    "asked before"
                )
                self._refused = f"{error}; {mend}"
                break
        if self._refused:
            raise EndpointError(self._refused)

    def _engine(self, system: Any) -> tuple[Endpoint, Engine | Replayer]:
        """Return *system* as an endpoint, with what asks it, made once for each identity: an
        engine, or in a replay the recording.
        """
        context = self._context
        settings = self._context.settings
        endpoint = self._endpoint(system)
        key = identity_hash(endpoint.identity())
        if key in self._engines:
            return self._engines[key]
        reporting.note_endpoint(context.store, endpoint)
        if context.recording is not None:
            self._engines[key] = endpoint, Replayer(endpoint, context.recording, context.store)
            return self._engines[key]
        # One loop for all engines: an endpoint that steps of several systems ask holds its
        # connections there.
        self._loop = self._loop or EventLoop()
        progress = self._progress()
        if progress is not None:
            progress.name_look(self._look)
            self._shown.append(progress)
        engine = Engine(
            endpoint,
            context.store,
            concurrency=settings.concurrency,
            seed=settings.seed,
            max_cost=settings.max_cost,
            attempt_timeout=settings.attempt_timeout,
            deadline=context.time_left,
            retry=Retry(unknown=settings.retry_unknown, errors=settings.retry_errors),
            is_refusal=is_refusal,
            progress=progress,
            shards=settings.shards,
            loop=self._loop,
        )
        # A worker stops asking when the controller's session, or its process, has ended, and nobody
        # judges.
        if self._controller is not None and self._controller == os.getppid():
            has_ended = partial(folder.has_ended, settings.run_dir, context.token)
            if has_ended():  # before this engine was there to be halted
                engine.halt(_ENDED)
            self._parent = self._parent or ParentWatch(
                self._controller, self._halt, ended=has_ended
            )
        self._engines[key] = endpoint, engine
        return self._engines[key]

    def _endpoint(self, system: Any) -> Endpoint:
        """Return *system* as an endpoint, made once: what a function holds on to may change while
        it is asked, and it would be another system at the next look.
        """
        if id(system) not in self._endpoints:
            self._endpoints[id(system)] = system, self._resolve(system)
        return self._endpoints[id(system)][1]

    def _halt(self) -> None:
        """Send nothing more: nobody is there to judge."""
        for engine in self._asking_engines():
            engine.halt(_ENDED)

    def close(self) -> None:
        """Close the engines and their loop, and stop to watch the controller."""
        if self._parent is not None:
            self._parent.stop()
        try:
            for _, engine in self._engines.values():
                engine.close()
        finally:
            self._until_closed.close()
            self._engines.clear()
            self._latest = {}
            if self._loop is not None:
                self._loop.close()
                self._loop = None


def _refuse_changes(changes: Sequence[str], run: str) -> None:
    """Raise UsageError where a test asks otherwise than it did in the *run* that is resumed."""
    if changes:
        raise UsageError(
            f"run {run} cannot be resumed for this test: {'; '.join(changes)}. The trials asked "
            "before are kept and not reused. Undo the change, or start a new run without "
            "--fairness-resume"
        )


def _refuse_other_looks(changes: Sequence[str], recording: RunReader) -> None:
    """Raise UsageError where a test would look at a *recording* otherwise than it was to."""
    if changes:
        raise UsageError(
            f"run {recording.directory.name} cannot be judged by this test: {'; '.join(changes)}, "
            "and looks are fixed before the first call. Undo the change, or ask anew"
        )


# ---------------------------------------------------------------- what is asked


def _why_no_form(answer: Trial, planned: Planned) -> str:
    """Return why the system of *answer*, which was asked by a form, is asked the next way; empty
    where it took the form, or nobody knows.
    """
    if answer.status is Status.ERROR and _REJECTED.search(str(answer.error)):
        return f"it refuses the schema ({answer.error})"
    form = planned.grid.answer
    if answer.status is Status.ANSWERED and form is not None:
        reply = str(answer.reply)
        if read_form(reply, form.key) is None:
            return "it takes the schema and answers in prose"
    return ""


def _possible_looks(planned: Planned, kind: OutcomeKind = OutcomeKind.BINARY) -> tuple[int, ...]:
    """Return the looks that an assertion on *planned* can have, of an outcome of that *kind*: of a
    yes/no outcome all stages.
    """
    if planned.grid.stages is None:
        return ()
    return planned.grid.stages.looks(kind, 1)


def _names_handed_out(stages: Stages, item: pytest.Item) -> int:
    """Return the names of the stage that *item* is handed."""
    only_analyzes = assertion_calls.only_analyzes(item)
    return names_handed_out(stages, remake_in(item), only_analyzes=only_analyzes)


def _part(selection: collection.Selection, stage: str) -> str:
    """Return what tells the *stage* of one item of a test from those of its others."""
    parts = (*selection[2:], stage or None)
    return " ".join(str(part) for part in parts if part is not None)


def _refuse_unfinished(pilot: pd.DataFrame) -> None:
    """Raise EndpointError where trials of a *pilot* were not run: it would choose by the others."""
    unfinished = int((pilot["status"] == Status.NOT_RUN.value).sum())
    if unfinished:
        raise EndpointError(
            f"{count(unfinished, 'trial')} of the pilot were not run, so that nobody knows which "
            "texts leave room; give the session more time and resume the run"
        )


def _is_part_of(planned: Planned, whole: Planned) -> bool:
    """Return whether *planned* is *whole*, or its pilot."""
    return planned is whole or (whole.pilot is not None and planned is whole.pilot.planned)


def _stages_of(planned: Planned, texts: Collection[str] | None) -> Stages:
    """Return the stages of *planned*, of which a pilot chose *texts*; None: all are asked."""
    stages = planned.grid.stages or _one_stage(planned)
    if texts is None:
        return stages
    return stages.of_texts(len(texts), len(planned.grid.templates))


def _one_stage(planned: Planned) -> Stages:
    """Return the one stage of a design that is asked as a whole."""
    names = max(1, planned.grid.fewest_names)
    per_name = planned.grid.calls / names
    return Stages(size=names, base=names, per_name=per_name, declared=(names,))


def _by_system(entries: Iterable[PlannedCell]) -> list[list[PlannedCell]]:
    """Return *entries* by the system that they bring; those that bring none together."""
    by_system: dict[int, list[PlannedCell]] = {}
    for entry in entries:
        by_system.setdefault(id(entry.system), []).append(entry)
    return list(by_system.values())


def planned_trials(
    planned: Planned, entries: Sequence[PlannedCell], temperature: float | None
) -> list[PlannedTrial]:
    """Every trial of *entries*, repetition by repetition."""
    parameters = parameters_of(planned, temperature)
    return [
        PlannedTrial(
            cell=entry.cell,
            repetition=entry.first + number,
            parameters=parameters,
            script=entry.script,
            structured=entry.structured,
            dealt_by=entry.unasked,
        )
        for entry in entries
        for number in range(planned.grid.repetitions)
    ]


def deal_of(
    shard: str, items: Iterable[pytest.Item], grids: Mapping[collection.Key, Planned]
) -> Deal:
    """All trials that *items* want, dealt out stage by stage to the shards, of which *shard*
    (``2/5``) is one.
    """
    part, whole = map(int, shard.split("/"))
    # Whatever the endpoint: a shard asks the same of each of several.
    selections = dict.fromkeys(collection.selection_of(item)[:3] for item in items)
    stages: dict[int, list[PlannedTrial]] = {}
    for key, tier, temperature in selections:
        if key not in grids:
            continue
        planned = grids[key]
        if planned.pilot is not None:
            pilot = planned.pilot.planned
            stages.setdefault(0, []).extend(planned_trials(pilot, pilot.entries(tier), temperature))
        looks = _possible_looks(planned)
        for trial in planned_trials(planned, planned.entries(tier), temperature):
            draw: Any = trial.cell.attributes.get(DRAW, 0)
            stages.setdefault(bisect.bisect_left(looks, draw), []).append(trial)
    return Deal([stages[number] for number in sorted(stages)], part, whole)


# ---------------------------------------------------------------- whether a system can be asked it


def _as_sent(planned: Planned, entry: PlannedCell, endpoint: Endpoint, tier: int) -> PlannedCell:
    """*entry* as *endpoint* can be asked it: role and request in one message where it is sent one
    text a request.
    """
    if not needs_one_message(entry, endpoint):
        return entry
    made = planned.in_one_message(entry, endpoint)
    return replace(made, cell=replace(made.cell, tier=tier))


def _all_as_sent(
    planned: Planned, entries: Iterable[PlannedCell], endpoint: Endpoint, tier: int
) -> list[PlannedCell]:
    """*entries* as *endpoint* can be asked them. Skips the test where it can be asked none."""
    sent = [_as_sent(planned, entry, endpoint, tier) for entry in entries]
    _skip_where_it_cannot_be_asked(planned, tier, _prompted(endpoint, sent))
    return sent


def _skip_where_it_cannot_be_asked(
    planned: Planned, tier: int, prompted: Sequence[Endpoint]
) -> None:
    """Skip a test of tier 1 where one of the *prompted* takes no system prompt, and of tier 2 where
    its arms send one.
    """
    if tier == 2:
        if planned.tiers_by_arm and prompted:
            pytest.skip(collection.TIER_OF_ARMS)
        return
    for endpoint in prompted:
        if not endpoint.supports_system_prompt:
            lacks = f"endpoint {endpoint.name!r} takes no system prompt"
            pytest.skip(SkipReason(f"{lacks}, so there is no tier 1 to test"))


def _prompted(endpoint: Endpoint, entries: Sequence[PlannedCell]) -> list[Endpoint]:
    """The systems that *entries*, asked of *endpoint*, send a system prompt; of a grid's first
    tier, *endpoint*.
    """
    endpoints: dict[int, Endpoint] = {}
    for entry in entries:
        if isinstance(entry.script, Pipeline):
            for prompt, system in step_systems(entry.script, endpoint):
                if prompt is not None:
                    endpoints[id(system)] = system
            continue
        first_tier = entry.cell.tier == 1 and not entry.one_message
        if entry.cell.system is not None or first_tier:
            endpoints[id(endpoint)] = endpoint
    return list(endpoints.values())


def _by_place(plan: Sequence[PlannedTrial], trials: Sequence[Trial]) -> dict[int, Trial]:
    """Return the *trials* that *plan* came to, each by the id of its plan."""
    return dict(zip(map(id, plan), trials, strict=True))


def _in_order(
    engine: Engine | Replayer, plan: Sequence[PlannedTrial], answers: Mapping[int, Trial]
) -> list[Trial]:
    """Return the *answers* to *plan*, in its order; NOT_RUN those that another shard asks."""
    trials = []
    for planned in plan:
        answer = answers.get(id(planned))
        if answer is None:
            answer = Trial(
                key=engine.key_of(planned),
                repetition=planned.repetition,
                status=Status.NOT_RUN,
                error="asked by another shard",
            )
        trials.append(answer)
    return trials


def _asked_of(table: pd.DataFrame) -> dict[str, JSON]:
    """Return how many trials *table* holds, and what they cost; a choice has a row for each
    candidate.
    """
    costs = table.drop_duplicates("key")["cost"].astype(float)
    return {"trials": len(costs), "cost": float(costs.sum()), "unpriced": int(costs.isna().sum())}


# ---------------------------------------------------------------- what came of it

#: The trials of a stage as a test gets them, and how many were asked for what cost.
_Stage: TypeAlias = "tuple[pd.DataFrame, dict[str, JSON]]"


@dataclass(frozen=True, slots=True)
class _Answers:
    """The *trials* that *endpoint* was asked for, one after the other for each of *entries*."""

    endpoint: Endpoint
    entries: Sequence[PlannedCell]
    trials: Sequence[Trial]
    _: KW_ONLY
    repetitions: int

    def rows(self) -> list[tuple[PlannedCell, Trial]]:
        """Return each trial with the entry that it is of."""
        repeated = itertools.chain.from_iterable(
            itertools.repeat(entry, self.repetitions) for entry in self.entries
        )
        return list(zip(repeated, self.trials, strict=True))

    def cells(self) -> Iterator[AnsweredCell]:
        """Yield each cell with its trials."""
        for _, several in itertools.groupby(self.rows(), key=lambda row: row[0].cell.id):
            entries, trials = zip(*several, strict=True)
            yield AnsweredCell(entries[0].cell, trials)

    def table(self, planned: Planned, *, replayed: bool) -> pd.DataFrame:
        """Return one row a trial, with what the design and the scripts say of it."""
        rows = self.rows()
        endpoint = EndpointFacts(
            name=self.endpoint.name, simulated=self.endpoint.simulated, replayed=replayed
        )
        pairs = [(entry.cell, trial) for entry, trial in rows]
        table = trials_frame(pairs, endpoint, self._facts(planned))
        _add_columns(table, rows, planned.script_columns)
        if any(entry.one_message for entry in self.entries):
            table[ONE_MESSAGE] = [entry.one_message for entry, _ in rows]
        if any(entry.elicitation is not Elicitation.PLAIN for entry in self.entries):
            table[ELICITED_BY] = [entry.elicitation.value for entry, _ in rows]
        return table

    def _facts(self, planned: Planned) -> GridFacts:
        """Return what the table carries of its design, for analyses and reports."""
        grid = planned.grid
        classes: dict[str, None] = {}
        for entry in self.entries:
            classes |= dict.fromkeys(entry.cell.groups)
        cells = [entry.cell.id for entry in self.entries]
        design = (cells, grid.repetitions, sorted(grid.parameters.items()))
        answer = None
        if planned.grid.answer is not None:
            answer = planned.grid.answer.to_dict()
        return GridFacts(
            answer=answer,
            locale=planned.grid.locale,
            endpoint=self.endpoint.name,
            identity=self.endpoint.identity(),
            protected_classes=tuple(classes),
            templates=self._texts(planned),
            digest=hashlib.sha256(repr(design).encode()).hexdigest()[:16],
        )

    def _texts(self, planned: Planned) -> dict[str, str]:
        """Return the templates by their ids; where a pilot chooses among them, those it chose."""
        texts = {template.id: template.text for template in planned.grid.templates}
        if planned.pilot is None:
            return texts
        asked = {entry.cell.template for entry in self.entries}
        return {name: text for name, text in texts.items() if name in asked}


def _heat(temperature: float | None) -> str:
    """Return what the table says of a *temperature*."""
    if temperature is None:
        return "default"
    return f"{temperature:g}"


def _in_one_table(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all *tables*, with the design of the first."""
    import pandas as pd

    if len(tables) == 1:
        return tables[0]
    parts = [table.astype(object) for table in tables]
    with any_text():
        whole = pd.concat(parts, ignore_index=True).infer_objects()
    whole.attrs = dict(tables[0].attrs)
    return whole


# ---------------------------------------------------------------- what scripts say of their trials

#: How a trial ends whose last request was sent and has no reply among those of the trial.
_SENT_WITHOUT_REPLY = (Status.ERROR, Status.UNKNOWN, Status.MALFORMED)


def _add_columns(
    frame: pd.DataFrame, rows: Sequence[tuple[PlannedCell, Trial]], always: Sequence[str]
) -> None:
    """Columns of the scripts; missing where a trial has no script.

    Those in *always* are there whether a script fills them or not: they depend on the test, not on
    its tier.
    """
    of_scripts = [_of_script(entry, trial) for entry, trial in rows]
    if DISCLAIMS in always:
        for values, (_, trial) in zip(of_scripts, rows, strict=True):
            answered = trial.status is Status.ANSWERED
            values[DISCLAIMS] = answered and has_disclaimer(trial.reply or "")
    columns = dict.fromkeys(always)
    for values in of_scripts:
        columns |= dict.fromkeys(values)
    for column in columns:
        before: list[Any] = [None] * len(frame)
        if column in frame:
            before = frame[column].tolist()
        with any_text():
            frame[column] = [
                values.get(column, old) for values, old in zip(of_scripts, before, strict=True)
            ]


def _of_script(entry: PlannedCell, trial: Trial) -> dict[str, JSON]:
    """Return what the script of *entry* says of *trial*, and how many requests it took."""
    values: dict[str, JSON] = {
        "requests": len(trial.replies) or int(trial.status is not Status.NOT_RUN)
    }
    if entry.script is not None:
        values |= entry.script.columns(entry.cell, trial)
    prompt = _last_prompt(entry, trial)
    if prompt is not None:
        values["prompt"] = prompt
    return values


def _last_prompt(entry: PlannedCell, trial: Trial) -> str | None:
    """Return the prompt that *trial* ended with, where its script says more than the cell does."""
    sent = len(trial.replies)
    if trial.status in _SENT_WITHOUT_REPLY:
        sent += 1
    script = entry.script
    if isinstance(script, Escalation):
        turns: list[str] = []
        for strategy in script.strategies:
            turns += strategy.turns
        return turns[max(1, min(sent, len(turns))) - 1]
    if not isinstance(script, Pipeline) or sent >= len(entry.cell.turns):
        return None
    # It ended before its last step, whose prompt would hold the place of a text that was never
    # made.
    messages = script.next(entry.cell, trial.replies[: max(0, sent - 1)], Status.ANSWERED)
    if messages:
        return messages[-1].content
    return entry.cell.turns[0]
