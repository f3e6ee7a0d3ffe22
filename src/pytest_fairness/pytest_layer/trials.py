"""What the ``trials`` and ``cell`` fixtures do: pull the replies of a grid from the run, asking for
those missing.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_fairness.context import RunContext
from pytest_fairness.endpoints.protocol import Endpoint
from pytest_fairness.engine.engine import Engine, EventLoop, ParentWatch
from pytest_fairness.engine.progress import Progress
from pytest_fairness.engine.queue import Deal
from pytest_fairness.engine.scripts import Escalation, Pipeline
from pytest_fairness.errors import BudgetError, EndpointError, UsageError
from pytest_fairness.model import JSON, Status, Trial
from pytest_fairness.pytest_layer import collection, reporting, second_sample
from pytest_fairness.pytest_layer.marks import SkipReason
from pytest_fairness.pytest_layer.plans import (
    Planned,
    PlannedCell,
    Resolve,
    needs_one_message,
    parameters_of,
    step_systems,
)
from pytest_fairness.running_test import reading_until
from pytest_fairness.runs import folder
from pytest_fairness.runs.designs import PlannedTrial, RecordedDesign, closest_changes, design_of
from pytest_fairness.runs.keys import identity_hash
from pytest_fairness.runs.replay import Replayer
from pytest_fairness.runs.store import Retry
from pytest_fairness.scorers import is_refusal
from pytest_fairness.scorers.disclaimer import has_disclaimer
from pytest_fairness.trials_frame import (
    DISCLAIMS,
    ONE_MESSAGE,
    AnsweredCell,
    EndpointFacts,
    GridFacts,
    any_text,
    refuse_if_nothing_answered,
    trials_frame,
)

if TYPE_CHECKING:
    import pandas as pd

_ENDED = "the session that this worker belongs to has ended; nothing more is sent"


#: What a test was given as a table, in the stash of its item: the fields of ``Unjudged``, should it
#: conclude nothing.
ASKED = pytest.StashKey[dict[str, JSON]]()


class TrialSource:
    """The engines of one process, one for each system under test, and the replies already handed
    out.

    *grids* are the designs of the collected tests, *selected* the cells that per-cell items want.
    *controller* is the process that this worker works for. *firsts*: where several endpoints are
    asked, an item of each.
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
    ) -> None:
        self._context = context
        self._resolve = resolve
        self._grids = grids
        self._selected = selected
        self._deal = deal
        self._progress = progress
        self._controller = controller
        self._firsts = firsts
        self._refused = ""
        self._engines: dict[str, tuple[Endpoint, Engine | Replayer]] = {}
        self._parent: ParentWatch | None = None
        self._loop: EventLoop | None = None
        self._prefetched: dict[tuple[Any, ...], dict[int, AnsweredCell]] = {}

    def trials_of(self, item: pytest.Item, system: Any) -> pd.DataFrame:
        """The whole design of *item* as a table, one row a trial."""
        planned = self._grids[collection.grid_key(item)]

        def ask(planned: Planned) -> pd.DataFrame:
            table = self._table(planned, item, system)
            with reading_until(self._context.read_until):
                return planned.table(table)

        table = ask(planned)
        item.stash[ASKED] = _asked_of(table)
        second_sample.offer(item, table, planned, ask)
        return table

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
            for _, _, rows in self._answers(planned, item, system, chosen):
                for cell_id, several in itertools.groupby(rows, key=lambda row: row[0].cell.id):
                    entries, trials = zip(*several, strict=True)
                    memory[places[cell_id]] = AnsweredCell(entries[0].cell, trials)
        self._skip_on_a_shard()
        return memory[index]

    def _table(self, planned: Planned, item: pytest.Item, system: Any) -> pd.DataFrame:
        import pandas as pd

        grid = planned.grid
        temperature = collection.selection_of(item).temperature
        frames = []
        for endpoint, entries, rows in self._answers(planned, item, system):
            design = (
                [entry.cell.id for entry in entries],
                grid.repetitions,
                sorted(grid.parameters.items()),
            )
            frame = trials_frame(
                [(entry.cell, trial) for entry, trial in rows],
                EndpointFacts(
                    name=endpoint.name,
                    simulated=endpoint.simulated,
                    replayed=self._context.recording is not None,
                ),
                GridFacts(
                    endpoint=endpoint.name,
                    identity=endpoint.identity(),
                    protected_classes=tuple(
                        dict.fromkeys(group for entry in entries for group in entry.cell.groups)
                    ),
                    templates={template.id: template.text for template in grid.templates},
                    digest=hashlib.sha256(repr(design).encode()).hexdigest()[:16],
                ),
            )
            _add_columns(frame, rows, planned.script_columns)
            if any(entry.one_message for entry in entries):
                frame[ONE_MESSAGE] = [entry.one_message for entry, _ in rows]
            if planned.temperatures:
                if temperature is None:
                    frame["temperature"] = "default"
                else:
                    frame["temperature"] = f"{temperature:g}"
            frames.append(frame)
        self._skip_on_a_shard()
        if len(frames) == 1:
            return frames[0]
        with any_text():
            table = pd.concat(
                [frame.astype(object) for frame in frames], ignore_index=True
            ).infer_objects()
        table.attrs = dict(frames[0].attrs)
        return table

    def _skip_on_a_shard(self) -> None:
        if self._deal is not None:
            shard = self._context.settings.shard
            pytest.skip(
                f"shard {shard}: asked, to be merged (pytest-fairness merge) and judged then"
            )

    def _answers(
        self, planned: Planned, item: pytest.Item, system: Any, indices: Sequence[int] | None = None
    ) -> Iterator[tuple[Endpoint, list[PlannedCell], list[tuple[PlannedCell, Trial]]]]:
        """Each system that the cells of *planned* (those at *indices*) ask: *system*, or one that
        an arm brings; with these cells, and each with its trials, one after the other.
        """
        selection = collection.selection_of(item)
        tier = selection.tier
        temperature = selection.temperature
        by_system: dict[int, list[PlannedCell]] = {}
        for entry in planned.entries(tier, indices):
            by_system.setdefault(id(entry.system), []).append(entry)
        for entries in by_system.values():
            own_system = entries[0].system
            endpoint, engine = self._engine(system if own_system is None else own_system)
            sent = [_as_sent(planned, entry, endpoint, tier) for entry in entries]
            prompted = _prompted(endpoint, sent)
            deaf = next(
                (endpoint for endpoint in prompted if not endpoint.supports_system_prompt), None
            )
            if tier == 1 and deaf is not None:
                why = (
                    f"endpoint {deaf.name!r} takes no system prompt, so there is no tier 1 to test"
                )
                pytest.skip(SkipReason(why))
            if tier == 2 and planned.tiers_by_arm and prompted:
                pytest.skip(collection.TIER_OF_ARMS)
            for step in {
                id(system): system for entry in sent for system in entry.step_systems
            }.values():
                reporting.note_endpoint(self._context.store, step)
            plan = planned_trials(planned, sent, temperature)
            part = [part for part in selection[2:] if part is not None]
            trials = self._pull(endpoint, engine, planned, plan, " ".join(map(str, part)))
            repeated = (entry for entry in sent for _ in range(planned.grid.repetitions))
            yield endpoint, sent, list(zip(repeated, trials, strict=True))

    def _pull(
        self,
        endpoint: Endpoint,
        engine: Engine | Replayer,
        planned: Planned,
        plan: Sequence[PlannedTrial],
        part: str,
    ) -> list[Trial]:
        """The trials of *plan*, in its order; NOT_RUN those that another shard asks. *part* tells
        the items of one test apart, each of which asks a sample of its own.

        What the test asks is logged once a session and process. Raises what the engine raises,
        UsageError where a resumed run asked otherwise before (nothing is asked then, and nothing
        mixed), and EndpointError where no trial has a usable answer.
        """
        mine = plan
        if self._deal is not None:
            mine = [trial for trial in plan if self._deal.mine(trial)]
        design = self._logged_design(endpoint, planned, plan, part, trials=len(mine))
        if isinstance(engine, Engine):
            self._try_endpoints()
        if isinstance(engine, Replayer):
            trials = engine.run(mine, design)
        else:
            trials = self._asked(engine, mine)
        refuse_if_nothing_answered(trials, endpoint.name)
        by_place = dict(zip(map(id, mine), trials, strict=True))
        absent = partial(Trial, status=Status.NOT_RUN, error="asked by another shard")
        return [
            by_place.get(id(trial)) or absent(key=engine.key_of(trial), repetition=trial.repetition)
            for trial in plan
        ]

    def _logged_design(
        self,
        endpoint: Endpoint,
        planned: Planned,
        plan: Sequence[PlannedTrial],
        part: str,
        *,
        trials: int,
    ) -> RecordedDesign | None:
        """What the test asks of *endpoint*, logged once a session and process; None for a second
        sample, which belongs to no collected test and is asked as it comes.

        Raises UsageError where a resumed run asked otherwise before.
        """
        test = next((key for key, grids in self._grids.items() if grids is planned), None)
        if test is None or not plan:
            return None
        context = self._context
        store = context.store
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
            whole=len(plan) == planned.grid.calls,
            trials=trials,
        )
        designs = store.designs()
        previous = []
        if context.settings.run_to_resume is not None:
            previous = [logged for logged in designs if logged.session != design.session]
        if changed := closest_changes(previous, design):
            raise UsageError(
                f"run {store.directory.name} cannot be resumed for this test: "
                f"{'; '.join(changed)}. The trials asked before are kept and not reused. Undo the "
                "change, or start a new run without --fairness-resume"
            )
        if not any(logged.session == design.session and logged.same(design) for logged in designs):
            store.append(design.to_record())
        return design

    def _asked(self, engine: Engine, plan: Sequence[PlannedTrial]) -> list[Trial]:
        """The trials of *plan*; where not all of it can be asked, the manifest says why, for a
        session that resumes.
        """
        store = self._context.store
        try:
            trials = engine.run(plan)
        except (BudgetError, EndpointError) as error:
            reporting.note_unasked(store, "cost" if isinstance(error, BudgetError) else "endpoint")
            raise
        if any(trial.status is Status.NOT_RUN for trial in trials):
            reporting.note_unasked(store, "time")
        return trials

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
            (entry,) = planned.entries(selection.tier, [index])
            endpoint, engine = self._engine(selection.endpoint)
            if endpoint.simulated or entry.asks_others or not isinstance(engine, Engine):
                continue
            entry = _as_sent(planned, entry, endpoint, selection.tier)
            deaf = any(not system.supports_system_prompt for system in _prompted(endpoint, [entry]))
            if selection.tier == 1 and deaf:
                continue  # its tests are skipped
            try:
                self._asked(engine, planned_trials(planned, [entry], selection.temperature)[:1])
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
        context = self._context
        settings = self._context.settings
        endpoint = self._resolve(system)
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
            progress=self._progress(),
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

    def _halt(self) -> None:
        for _, engine in list(self._engines.values()):
            if isinstance(engine, Engine):
                engine.halt(_ENDED)

    def close(self) -> None:
        if self._parent is not None:
            self._parent.stop()
        try:
            for _, engine in self._engines.values():
                engine.close()
        finally:
            self._engines.clear()
            if self._loop is not None:
                self._loop.close()
                self._loop = None


# ---------------------------------------------------------------- what is asked


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
            structured=planned.structured(entry.cell),
        )
        for entry in entries
        for number in range(planned.grid.repetitions)
    ]


def deal_of(
    shard: str, items: Iterable[pytest.Item], grids: Mapping[collection.Key, Planned]
) -> Deal:
    """All trials that *items* want, dealt out to the shards, of which *shard* (``2/5``) is one."""
    part, whole = map(int, shard.split("/"))
    # Whatever the endpoint: a shard asks the same of each of several.
    selections = dict.fromkeys(collection.selection_of(item)[:3] for item in items)
    wanted = (
        planned_trials(grids[key], grids[key].entries(tier), temperature)
        for key, tier, temperature in selections
        if key in grids
    )
    return Deal(itertools.chain.from_iterable(wanted), part, whole)


# ---------------------------------------------------------------- whether a system can be asked it


def _as_sent(planned: Planned, entry: PlannedCell, endpoint: Endpoint, tier: int) -> PlannedCell:
    """*entry* as *endpoint* can be asked it: role and request in one message where it is sent one
    text a request.
    """
    if not needs_one_message(entry, endpoint):
        return entry
    made = planned.in_one_message(entry, endpoint)
    return replace(made, cell=replace(made.cell, tier=tier))


def _prompted(endpoint: Endpoint, entries: Sequence[PlannedCell]) -> list[Endpoint]:
    """The systems that *entries*, asked of *endpoint*, send a system prompt; of a grid's first
    tier, *endpoint*.
    """
    endpoints: dict[int, Endpoint] = {}
    for entry in entries:
        if isinstance(entry.script, Pipeline):
            systems = [
                system
                for prompt, system in step_systems(entry.script, endpoint)
                if prompt is not None
            ]
        else:
            first_tier = entry.cell.tier == 1 and not entry.one_message
            systems = []
            if entry.cell.system is not None or first_tier:
                systems = [endpoint]
        endpoints |= {id(system): system for system in systems}
    return list(endpoints.values())


def _asked_of(table: pd.DataFrame) -> dict[str, JSON]:
    """Return how many trials *table* holds, and what they cost; a choice has a row for each
    candidate.
    """
    costs = table.drop_duplicates("key")["cost"].astype(float)
    return {"trials": len(costs), "cost": float(costs.sum()), "unpriced": int(costs.isna().sum())}


# ---------------------------------------------------------------- what scripts say of their trials


def _add_columns(
    frame: pd.DataFrame, rows: Sequence[tuple[PlannedCell, Trial]], always: Sequence[str]
) -> None:
    """Columns of the scripts; missing where a trial has no script.

    Those in *always* are there whether a script fills them or not: they depend on the test, not on
    its tier.
    """
    script_rows: list[dict[str, JSON]] = []
    for entry, trial in rows:
        cell = entry.cell
        script = entry.script
        row: dict[str, JSON] = {
            "requests": len(trial.replies) or int(trial.status is not Status.NOT_RUN)
        }
        row |= {} if script is None else script.columns(cell, trial)
        # A request that failed was sent, and has no reply among those of the trial.
        sent = len(trial.replies) + (
            trial.status in (Status.ERROR, Status.UNKNOWN, Status.MALFORMED)
        )
        if isinstance(script, Escalation):
            turns = [turn for rung in script.rungs for turn in rung.turns]
            row["prompt"] = turns[max(1, min(sent, len(turns))) - 1]
        elif isinstance(script, Pipeline) and sent < len(cell.turns):
            # It ended before its last step, whose prompt would hold the place of a text that was
            # never made.
            messages = script.next(cell, trial.replies[: max(0, sent - 1)], Status.ANSWERED)
            if messages:
                row["prompt"] = messages[-1].content
            else:
                row["prompt"] = cell.turns[0]
        if DISCLAIMS in always:
            row[DISCLAIMS] = trial.status is Status.ANSWERED and has_disclaimer(trial.reply or "")
        script_rows.append(row)
    for column in dict.fromkeys([*always, *(key for row in script_rows for key in row)]):
        if column in frame:
            before = frame[column].tolist()
        else:
            before = [None] * len(frame)
        with any_text():
            frame[column] = [
                row.get(column, old) for row, old in zip(script_rows, before, strict=True)
            ]
