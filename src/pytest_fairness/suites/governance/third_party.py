"""Checks that provider and model stay as declared: who answered, with which fingerprint and
parameters. How they answer is for :mod:`~pytest_fairness.suites.governance.canary`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pytest_fairness import Finding, GroupResult, OutcomeKind, Reason
from pytest_fairness.analysis.checklist import RecordState, judge_record
from pytest_fairness.analysis.checks import checked, unchecked
from pytest_fairness.endpoints import Evidence
from pytest_fairness.engine.attempt import same_model
from pytest_fairness.model import JSON
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.reader import reading
from pytest_fairness.suites.authoring import Text, open_document
from pytest_fairness.suites.governance.past_results import PastRuns, id_of
from pytest_fairness.words import count, first_few

#: Whose requests we write ourselves, so that the log shows what was sent.
_ON_THE_WIRE = ("openai", "azure", "anthropic", "ollama", "litellm")
#: What a parameter is called in the requests of some providers.
_ALSO = {"max_tokens": ("num_predict",), "stop": ("stop_sequences",)}
_FINGERPRINT = "system_fingerprint"


class ThirdPartyOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of ``governance.yaml`` under ``third_party``.

    ``declared`` and ``fingerprints``: endpoint → the models that may answer, and the fingerprints,
    as the provider names them. ``since``: the first run that is looked at. ``canary``: endpoint → a
    file of approved replies. ``tolerance``: the share of canary prompts whose reply may change.
    """

    declared: dict[str, tuple[Text, ...]] = {}
    fingerprints: dict[str, tuple[Text, ...]] = {}
    since: str = ""
    canary: dict[str, Text] = {}
    tolerance: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.1


@dataclass(frozen=True, kw_only=True)
class ServiceInRun:
    """An endpoint in one run: which model was asked for and which answered how many trials, where,
    and by what manifest; ``simulated`` where no provider had a part.
    """

    run: str
    folder: Path
    asked: str | None
    answered: Mapping[str, int]
    type: str
    address: str
    simulated: bool


def services_of(
    past: PastRuns, options: ThirdPartyOptions, runs: Path
) -> dict[str, list[ServiceInRun]]:
    """Each endpoint in the runs that asked it, the oldest first."""
    services: dict[str, list[ServiceInRun]] = {}
    for run in past.since(options.since).asked:
        folder = runs / id_of(run)
        endpoints: dict[str, Mapping[str, Any]] = {}
        for endpoint in read_manifest(folder).get("endpoints", ()):
            endpoints[str(endpoint["name"])] = endpoint
        models: dict[str, Mapping[str, Any]] = {}
        for entry in run.models:
            models[str(entry["endpoint"])] = entry
        for name in dict.fromkeys((*models, *endpoints)):
            service = _service(id_of(run), folder, endpoints.get(name, {}), models.get(name))
            services.setdefault(name, []).append(service)
    return services


def _service(
    run: str, folder: Path, endpoint: Mapping[str, Any], models: Mapping[str, Any] | None
) -> ServiceInRun:
    """An *endpoint* of the manifest in *run*; *models* is None where it says nothing of one, as a
    function does not.
    """
    identity = endpoint.get("identity") or {}
    asked = None
    answered: Mapping[str, int] = {}
    address = ""
    if models is not None:
        asked = models["asked"]
        answered = models["answered"]
        address = str(identity.get("base_url") or "")
    return ServiceInRun(
        run=run,
        folder=folder,
        asked=asked,
        answered=answered,
        type=str(identity.get("type", "")),
        address=address,
        simulated=bool(endpoint.get("simulated")),
    )


def _finding(
    of: str,
    endpoint: str,
    state: RecordState,
    words: str,
    runs: Sequence[ServiceInRun],
    **more: Any,
) -> Finding:
    """The finding on *endpoint*, as
    :func:`~pytest_fairness.analysis.checklist.judge_record` judges its *state*.
    """
    import pandas as pd

    columns = {"endpoint": [endpoint] * len(runs), "simulated": [run.simulated for run in runs]}
    decision = judge_record(state)
    return checked(
        pd.DataFrame(columns),
        assertion="third_party",
        verdict=decision.verdict,
        words=f"{endpoint}: {words}",
        reason=decision.reason,
        outcome=of,
        kind=OutcomeKind.CATEGORICAL,
        **more,
    )


def configured_models(path: Path) -> dict[str, str]:
    """The model that each entry of the file *path* asks for now, where it names one."""
    if not path.exists():
        return {}
    data: Any = open_document(path).data
    entries = None
    if isinstance(data, dict):
        entries = data.get("endpoints")
    models = {}
    for entry in entries or ():
        if isinstance(entry, dict) and {"name", "model"} <= entry.keys():
            models[str(entry["name"])] = str(entry["model"])
    return models


def nothing_asked(of: str) -> Finding:
    """Return what is concluded where no past run has asked anybody."""
    import pandas as pd

    words = (
        "no endpoint: there is no past run that asked: run the fairness tests first "
        "(pytest -m fairness), then this test again"
    )
    return unchecked(
        pd.DataFrame(columns=["endpoint", "simulated"]),
        assertion="third_party",
        reason=Reason.N,
        words=words,
        outcome=of,
        kind=OutcomeKind.CATEGORICAL,
    )


# ---------------------------------------------------------------- the model


def model_finding(
    endpoint: str,
    runs: Sequence[ServiceInRun],
    options: ThirdPartyOptions,
    configured: str | None = None,
) -> Finding:
    """Return whether the model that answers is the one that was declared, and has been the same in
    all
    *runs*.

    FAIL where one answered in the newest run that is none of those declared, nor a dated snapshot
    of one. FLAG where the newest run was answered by another version than a run before it, or by
    several, and ``declared`` does not name each. *configured*: what ``endpoints.yaml`` asks for
    now.
    """
    newest = runs[-1]
    declared = options.declared.get(endpoint, ())
    notes = [*_moved(runs)]
    if configured and newest.asked and configured != newest.asked:
        notes.append(
            f"endpoints.yaml asks for {configured} now: no run has asked it yet, the newest for "
            f"{newest.asked}"
        )
    groups = []
    for model, n in sorted(newest.answered.items()):
        groups.append(GroupResult(group=model, n=n, clusters=1, shares={}))
    asked: list[JSON] = [
        {"run": run.run, "asked": run.asked, "answered": dict(run.answered)} for run in runs
    ]
    return _finding(
        "model",
        endpoint,
        *_model_state(runs, declared),
        runs,
        notes=tuple(notes),
        group_results=tuple(groups),
        n_per_group=dict(newest.answered),
        details={"runs": asked},
    )


def _model_state(runs: Sequence[ServiceInRun], declared: Sequence[str]) -> tuple[RecordState, str]:
    """Return who answered the newest of *runs*, as its state and in words, where *declared* may."""
    newest = runs[-1]
    if not newest.answered:
        words = "no reply says which model gave it: the application has to return its name"
        return RecordState.UNRECORDED, words
    who = f"{first_few(sorted(newest.answered))} answered in run {newest.run}"
    wanted = tuple(declared)
    if not declared and newest.asked:
        wanted = (newest.asked,)
    if not wanted and not newest.simulated:
        words = (
            f"{who}, and nobody has declared which model may: name it in governance.yaml "
            "(third_party: declared)"
        )
        return RecordState.UNRECORDED, words
    strangers = [model for model in newest.answered if not _is_declared(model, wanted)]
    if strangers:
        answered = sum(newest.answered[stranger] for stranger in strangers)
        words = (
            f"{first_few(sorted(strangers))} answered {answered:,} of "
            f"{sum(newest.answered.values()):,} trials of run {newest.run}, where "
            f"{first_few(sorted(wanted))} is declared"
        )
        return RecordState.UNDECLARED, words
    return _version_state(runs, declared, who)


def _version_state(
    runs: Sequence[ServiceInRun], declared: Sequence[str], who: str
) -> tuple[RecordState, str]:
    """Return whether the newest of *runs* was answered by the version of those before, as its state
    and in words; *who* answered it may.
    """
    newest = runs[-1]
    before = _before_the_change(runs)
    versions = {*newest.answered}
    if before is not None:
        versions |= before.answered.keys()
    if not versions <= set(declared) and len(versions) > 1:
        others = ""
        if before is not None:
            others = f"; {first_few(sorted(before.answered))} did in run {before.run}"
        words = (
            f"{who}{others}: the version has changed, and governance.yaml (third_party: declared) "
            "does not name each"
        )
        return RecordState.CHANGED, words
    if before is not None:
        return RecordState.AS_DECLARED, f"{who}, as declared"
    if any(run.answered for run in runs[:-1]):
        return RecordState.AS_DECLARED, f"{who}, as in {count(len(runs) - 1, 'run')} before"
    return RecordState.AS_DECLARED, who


def _before_the_change(runs: Sequence[ServiceInRun]) -> ServiceInRun | None:
    """The last of *runs* that was answered by others than the newest."""
    newest = set(runs[-1].answered)
    for run in reversed(runs):
        if run.answered and set(run.answered) != newest:
            return run
    return None


def _is_declared(model: str, declared: Collection[str]) -> bool:
    """Return whether *model* is one of *declared*, or a dated snapshot of one; any is where nobody
    has declared one.
    """
    return not declared or any(same_model(name, model) for name in declared)


def _moved(runs: Sequence[ServiceInRun]) -> Iterator[str]:
    """Yield what *runs* were asked otherwise than before: that stands in endpoints.yaml, and so is
    declared.
    """
    for before, now in pairwise(runs):
        changes = (
            ("for", before.asked, now.asked),
            ("at", before.address, now.address),
            ("as", before.type, now.type),
        )
        for what, old, new in changes:
            if old != new:
                yield (
                    f"asked {what} {new or 'nothing'} since run {now.run}, {what} "
                    f"{old or 'nothing'} before"
                )


# ---------------------------------------------------------------- the log


@dataclass(kw_only=True)
class ServiceLog:
    """The facts about one endpoint in the log of a run: fingerprints, how many requests carried
    each parameter as it was meant to be sent, and which the provider refused.
    """

    fingerprints: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    meant: Counter[str] = field(default_factory=Counter)
    carried: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def dropped(self) -> dict[str, int]:
        """The number of requests that lack it, by parameter, where any does."""
        missing = self.meant - self.carried
        return dict(sorted(missing.items()))


def service_logs(folder: Path, *, parameters: bool) -> dict[str, ServiceLog]:
    """The log of the run in *folder* by endpoint; with the *parameters* of each request, or
    fingerprints alone. Raises StoreError.
    """
    logs: dict[str, ServiceLog] = {}
    with reading(folder, check=False) as reader:
        trials: dict[str, tuple[str, Mapping[str, Any]]] = {}
        for record in reader.each("trial"):
            sent = {
                **record["parameters"].get("requested", {}),
                **record["parameters"].get("sent", {}),
            }
            trials[record["key"]] = record["endpoint"]["name"], sent
            logs.setdefault(record["endpoint"]["name"], ServiceLog())
        for record in reader.each("attempt"):
            endpoint, meant = trials.get(record["key"], ("", {}))
            log = logs.setdefault(endpoint, ServiceLog())
            wire = record.get("wire") or {}
            if (mark := _json(wire.get("response_body")).get(_FINGERPRINT)) is not None:
                log.fingerprints[str(mark)] += 1
            if parameters:
                _count_parameters(log, record, wire, meant)
    return logs


def _count_parameters(
    log: ServiceLog, record: Mapping[str, Any], wire: Mapping[str, Any], sent: Mapping[str, Any]
) -> None:
    """Add to *log* which of the parameters *sent* an attempt carried, and which were refused."""
    body = _json(wire.get("request_body"))
    if body:
        log.requests += 1
        log.meant.update(sent.keys())
        log.carried.update(name for name, value in sent.items() if _carries(body, name, value))
    if record.get("evidence") in (Evidence.REJECTED, Evidence.AUTH):
        error = str(record.get("error") or "")
        log.refused.update(name for name in sent if re.search(rf"\b{re.escape(name)}\b", error))


def _carries(body: Mapping[str, Any], name: str, value: object) -> bool:
    """Return whether the request *body* has *value* under *name*, or what providers call that."""
    parameters = dict(body)
    if isinstance(body.get("options"), dict):
        parameters = {**body["options"], **body}
    for parameter in (name, *_ALSO.get(name, ())):
        if parameter in parameters and parameters[parameter] in (value, [value]):
            return True
    return False


def _json(text: Any) -> dict[str, Any]:
    if not isinstance(text, str):
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if isinstance(data, dict):
        return data
    return {}


def fingerprint_finding(
    endpoint: str, runs: Sequence[ServiceInRun], options: ThirdPartyOptions
) -> Finding:
    """Return whether the newest run was answered under a fingerprint that no run before it has, and
    nobody has declared.
    """
    seen = {}
    for run in runs:
        log = service_logs(run.folder, parameters=False).get(endpoint, ServiceLog())
        seen[run.run] = log.fingerprints
    declared = options.fingerprints.get(endpoint, ())
    return _finding(
        "fingerprint",
        endpoint,
        *_fingerprint_state(runs[-1], seen, declared),
        runs,
        details={"runs": {run: dict(fingerprints) for run, fingerprints in seen.items()}},
        n_per_group=dict(seen[runs[-1].run]),
    )


def _fingerprint_state(
    newest: ServiceInRun, seen: Mapping[str, Collection[str]], declared: Collection[str]
) -> tuple[RecordState, str]:
    """Return whether the fingerprints of the *newest* run are *declared*, or *seen* in another, as
    a state and in words.
    """
    fingerprints = seen[newest.run]
    if not fingerprints:
        why = "most providers give none"
        if newest.simulated:
            why = "it is simulated"
        words = f"no reply of run {newest.run} carries a fingerprint ({why})"
        return RecordState.UNRECORDED, words
    shown = f"{first_few(sorted(fingerprints))} in run {newest.run}"
    earlier = [of_run for run, of_run in seen.items() if of_run and run != newest.run]
    if not earlier and not declared:
        return RecordState.UNCOMPARED, f"{shown}, and no other run to compare it with"
    fresh = set(fingerprints).difference(declared, *earlier)
    if fresh:
        words = (
            f"{first_few(sorted(fresh))} in run {newest.run} for the first time: what the "
            "provider runs has changed; the canary prompts say whether it answers otherwise"
        )
        return RecordState.CHANGED, words
    return RecordState.AS_DECLARED, f"{shown}, none of them new in {count(len(earlier) + 1, 'run')}"


def parameter_finding(endpoint: str, runs: Sequence[ServiceInRun]) -> Finding:
    """Return whether each request of the newest run carried every parameter as it was meant, and
    none was refused.
    """
    newest = runs[-1]
    log = service_logs(newest.folder, parameters=True).get(endpoint, ServiceLog())
    details: dict[str, JSON] = {
        "requests": log.requests,
        "dropped": {**log.dropped},
        "refused": {**log.refused},
    }
    return _finding(
        "parameters",
        endpoint,
        *_parameter_state(newest, log),
        runs,
        details=details,
        n_per_group=dict(log.meant),
    )


def _parameter_state(newest: ServiceInRun, log: ServiceLog) -> tuple[RecordState, str]:
    """Return whether the parameters of the *newest* run arrived, as a state and in words."""
    if log.refused:
        refused = [f"{name} {n:,} times" for name, n in sorted(log.refused.items())]
        words = f"the provider refused {first_few(refused)} in run {newest.run}"
        return RecordState.REFUSED, words
    if newest.type not in _ON_THE_WIRE or not log.requests:
        why = "the log does not show what its requests carried"
        if newest.simulated:
            why = "it is simulated"
        words = f"whether parameters were dropped in run {newest.run} is not known: {why}"
        return RecordState.UNRECORDED, words
    if log.dropped:
        dropped = []
        for name, n in log.dropped.items():
            dropped.append(f"{name} is missing in {n:,} of {log.meant[name]:,}")
        return RecordState.DROPPED, f"requests of run {newest.run}: {first_few(dropped)}"
    if not log.meant:
        words = (
            f"run {newest.run} sent no parameter: what the provider takes instead stands nowhere, "
            "and may change"
        )
        return RecordState.UNRECORDED, words
    words = (
        f"{log.requests:,} requests of run {newest.run} carried {first_few(sorted(log.meant), 6)} "
        "as they should"
    )
    return RecordState.ARRIVED, words
