"""Whether provider and model stay what was declared: who answered, with which fingerprint and
parameters, and how.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pytest_fairness.analysis.checks import ALPHA, checked, judge_share
from pytest_fairness.design.slugs import slug
from pytest_fairness.documents import Text, open_document
from pytest_fairness.endpoints.protocol import Evidence
from pytest_fairness.engine.attempt import same_model
from pytest_fairness.errors import FairnessError, UsageError
from pytest_fairness.model import Finding, GroupResult, OutcomeKind, Reason, Verdict
from pytest_fairness.reports.sections import Columns, Section, table
from pytest_fairness.runs.files import write_atomically
from pytest_fairness.runs.manifest import read_manifest
from pytest_fairness.runs.reader import reading
from pytest_fairness.suites.governance.past_results import MOST_LISTED, PastRuns, id_of, listed_few
from pytest_fairness.words import count, percent

if TYPE_CHECKING:
    import pandas as pd

PROMPTS = "canary_prompts.yaml"
#: The share of prompts without a reply above which nothing is compared.
MOST_UNANSWERED = 0.05
#: Whose requests we write ourselves, so that the log shows what was sent.
_ON_THE_WIRE = ("openai", "azure", "anthropic", "ollama", "litellm")
#: What a parameter is called in the requests of some providers.
_ALSO = {"max_tokens": ("num_predict",), "stop": ("stop_sequences",)}
_FINGERPRINT = "system_fingerprint"


class ThirdPartyOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say under ``third_party``.

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
        by_name = {
            str(endpoint["name"]): endpoint
            for endpoint in read_manifest(folder).get("endpoints", ())
        }
        for entry in run.run.get("models") or ():
            name = str(entry["endpoint"])
            identity = by_name.get(name, {}).get("identity") or {}
            service = ServiceInRun(
                run=id_of(run),
                folder=folder,
                asked=entry["asked"],
                answered=entry["answered"],
                type=str(identity.get("type", "")),
                address=str(identity.get("base_url") or ""),
                simulated=bool(by_name.get(name, {}).get("simulated")),
            )
            services.setdefault(name, []).append(service)
        for name, details in by_name.items():
            if not any(name == str(entry["endpoint"]) for entry in run.run.get("models") or ()):
                services.setdefault(name, []).append(_nameless(run, folder, details))
    return services


def _nameless(run: Any, folder: Path, entry: Mapping[str, Any]) -> ServiceInRun:
    """An endpoint that says nothing of a model, as a function."""
    kind = str((entry.get("identity") or {}).get("type", ""))
    return ServiceInRun(
        run=id_of(run), folder=folder, asked=None, answered={}, type=kind, address="",
        simulated=bool(entry.get("simulated")),
    )  # fmt: skip


def _finding(
    of: str, endpoint: str, verdict: Verdict, words: str, runs: Sequence[ServiceInRun], **more: Any
) -> Finding:
    import pandas as pd

    columns = {"endpoint": [endpoint] * len(runs), "simulated": [run.simulated for run in runs]}
    return checked(
        pd.DataFrame(columns),
        assertion="third_party",
        verdict=verdict,
        words=f"{endpoint or 'no endpoint'}: {words}",
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
    named = [
        entry
        for entry in entries or ()
        if isinstance(entry, dict) and {"name", "model"} <= entry.keys()
    ]
    return {str(model["name"]): str(model["model"]) for model in named}


def nothing_asked(of: str) -> Finding:
    """Return what is concluded where no past run has asked anybody."""
    words = (
        "there is no past run that asked: run the fairness tests first (pytest -m fairness), then "
        "this test again"
    )
    return _finding(of, "", Verdict.INCONCLUSIVE, words, (), reason=Reason.N)


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
    wanted = declared or tuple(filter(None, [newest.asked]))
    notes = [*_moved(runs)]
    if configured and newest.asked and configured != newest.asked:
        notes.append(
            f"endpoints.yaml asks for {configured} now: no run has asked it yet, the newest for "
            f"{newest.asked}"
        )
    groups = tuple(
        GroupResult(group=model, n=n, clusters=1, shares={})
        for model, n in sorted(newest.answered.items())
    )
    more: dict[str, Any] = {
        "notes": tuple(notes),
        "group_results": groups,
        "n_per_group": dict(newest.answered),
        "details": {
            "runs": [
                {"run": run.run, "asked": run.asked, "answered": dict(run.answered)} for run in runs
            ]
        },
    }
    said = listed_few(sorted(newest.answered))
    if not newest.answered:
        words = "no reply says which model gave it: the application has to return its name"
        return _finding(
            "model", endpoint, Verdict.INCONCLUSIVE, words, runs, reason=Reason.UNRECORDED, **more
        )
    if not wanted and not newest.simulated:
        words = (
            f"{said} answered in run {newest.run}, and nobody has declared which model may: name "
            "it in governance.yaml "
            "(third_party: declared)"
        )
        return _finding(
            "model", endpoint, Verdict.INCONCLUSIVE, words, runs, reason=Reason.UNRECORDED, **more
        )
    strangers = [model for model in newest.answered if not _is_declared(model, wanted)]
    if strangers:
        of = sum(newest.answered[stranger] for stranger in strangers)
        words = (
            f"{listed_few(sorted(strangers))} answered {of:,} of {sum(newest.answered.values()):,} "
            f"trials of run {newest.run}, where {listed_few(sorted(wanted))} is declared"
        )
        return _finding("model", endpoint, Verdict.FAIL, words, runs, **more)
    changed = [run for run in runs if run.answered and set(run.answered) != set(newest.answered)]
    versions = [*newest.answered]
    before = ""
    if changed:
        versions += changed[-1].answered
        before = f"; {listed_few(sorted(changed[-1].answered))} did in run {changed[-1].run}"
    unnamed = not set(versions) <= set(declared)
    if unnamed and (changed or len(newest.answered) > 1):
        words = (
            f"{said} answered in run {newest.run}{before}: the version has changed, and "
            "governance.yaml (third_party: declared) does not name each"
        )
        return _finding("model", endpoint, Verdict.FLAG, words, runs, **more)
    since = ""
    if changed:
        since = ", as declared"
    elif any(run.answered for run in runs[:-1]):
        since = f", as in {count(len(runs) - 1, 'run')} before"
    words = f"{said} answered in run {newest.run}{since}"
    return _finding("model", endpoint, Verdict.PASS, words, runs, **more)


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
        for what, old, new in (("for", before.asked, now.asked), ("at", before.address, now.address),
                               ("as", before.type, now.type)):  # fmt: skip
            if old != new:
                yield (
                    f"asked {what} {new or 'nothing'} since run {now.run}, {what} "
                    f"{old or 'nothing'} before"
                )


# ---------------------------------------------------------------- the log


@dataclass(kw_only=True)
class ServiceLog:
    """What the log of a run says of one endpoint: fingerprints, how many requests carried each
    parameter as it was meant to be sent, and which the provider refused.
    """

    fingerprints: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    meant: Counter[str] = field(default_factory=Counter)
    carried: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


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
    body = _json(wire.get("request_body"))
    if body:
        log.requests += 1
        has = {**(body["options"] if isinstance(body.get("options"), dict) else {}), **body}
        for name, value in sent.items():
            log.meant[name] += 1
            given = [
                has[parameter] for parameter in (name, *_ALSO.get(name, ())) if parameter in has
            ]
            log.carried[name] += any(given_value in (value, [value]) for given_value in given)
    if record.get("evidence") in (Evidence.REJECTED, Evidence.AUTH):
        error = str(record.get("error") or "")
        log.refused.update(name for name in sent if re.search(rf"\b{re.escape(name)}\b", error))


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
    seen = {
        run.run: service_logs(run.folder, parameters=False).get(endpoint, ServiceLog()).fingerprints
        for run in runs
    }
    newest = seen[runs[-1].run]
    declared = options.fingerprints.get(endpoint, ())
    details: Any = {"runs": {run: dict(marks) for run, marks in seen.items()}}
    earlier = [run for run, marks in seen.items() if marks and run != runs[-1].run]
    fingerprints = {*declared, *(mark for run in earlier for mark in seen[run])}
    fresh = sorted(set(newest) - fingerprints)
    shown = listed_few(sorted(newest))
    more: dict[str, Any] = {"details": details, "n_per_group": dict(newest)}
    if not newest:
        why = "most providers give none"
        if runs[-1].simulated:
            why = "it is simulated"
        words = f"no reply of run {runs[-1].run} carries a fingerprint ({why})"
        return _finding(
            "fingerprint",
            endpoint,
            Verdict.INCONCLUSIVE,
            words,
            runs,
            reason=Reason.UNRECORDED,
            **more,
        )
    if not earlier and not declared:
        words = f"{shown} in run {runs[-1].run}, and no other run to compare it with"
        return _finding(
            "fingerprint",
            endpoint,
            Verdict.INCONCLUSIVE,
            words,
            runs,
            reason=Reason.PRECISION,
            **more,
        )
    if fresh:
        words = (
            f"{listed_few(fresh)} in run {runs[-1].run} for the first time: what the provider runs "
            "has changed; the "
            "canary prompts say whether it answers otherwise"
        )
        return _finding("fingerprint", endpoint, Verdict.FLAG, words, runs, **more)
    words = f"{shown} in run {runs[-1].run}, none of them new in {count(len(earlier) + 1, 'run')}"
    return _finding("fingerprint", endpoint, Verdict.PASS, words, runs, **more)


def parameter_finding(endpoint: str, runs: Sequence[ServiceInRun]) -> Finding:
    """Return whether each request of the newest run carried every parameter as it was meant, and
    none was refused.
    """
    newest = runs[-1]
    log = service_logs(newest.folder, parameters=True).get(endpoint, ServiceLog())
    dropped = {
        name: n - log.carried[name]
        for name, n in sorted(log.meant.items())
        if n > log.carried[name]
    }
    details: Any = {"requests": log.requests, "dropped": dropped, "refused": dict(log.refused)}
    more: dict[str, Any] = {"details": details, "n_per_group": dict(log.meant)}
    if log.refused:
        words = (
            "the provider refused "
            f"{listed_few([f'{name} {n:,} times' for name, n in sorted(log.refused.items())])}"
        )
        return _finding(
            "parameters", endpoint, Verdict.FAIL, f"{words} in run {newest.run}", runs, **more
        )
    if newest.type not in _ON_THE_WIRE or not log.requests:
        why = "the log does not show what its requests carried"
        if newest.simulated:
            why = "it is simulated"
        words = f"whether parameters were dropped in run {newest.run} is not known: {why}"
        return _finding(
            "parameters",
            endpoint,
            Verdict.INCONCLUSIVE,
            words,
            runs,
            reason=Reason.UNRECORDED,
            **more,
        )
    if dropped:
        words = listed_few(
            [f"{name} is missing in {n:,} of {log.meant[name]:,}" for name, n in dropped.items()]
        )
        return _finding(
            "parameters",
            endpoint,
            Verdict.FAIL,
            f"requests of run {newest.run}: {words}",
            runs,
            **more,
        )
    if not log.meant:
        words = (
            f"run {newest.run} sent no parameter: what the provider takes instead stands nowhere, "
            "and may change"
        )
        return _finding(
            "parameters",
            endpoint,
            Verdict.INCONCLUSIVE,
            words,
            runs,
            reason=Reason.UNRECORDED,
            **more,
        )
    words = (
        f"{log.requests:,} requests of run {newest.run} carried {listed_few(sorted(log.meant), 6)} "
        "as they should"
    )
    return _finding("parameters", endpoint, Verdict.PASS, words, runs, **more)


# ---------------------------------------------------------------- canary prompts


class CanaryReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was asked and answered, word for word."""

    prompt: str
    reply: str


class CanaryReplies(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of replies: of one endpoint in one run, by the prompt's name."""

    endpoint: str
    models: tuple[str, ...]
    run: str
    replies: dict[str, CanaryReply]
    simulated: bool = False


def canary_prompts() -> dict[str, str]:
    """Name → prompt, as they ship."""
    return open_document(Path(__file__).with_name(PROMPTS)).convert(dict[str, str])


def canary_file(folder: Path, endpoint: str) -> Path:
    """Return where the replies of *endpoint* stand in the *folder* of a run."""
    return folder / f"canary-{slug(endpoint)}.json"


def canary_replies(trials: pd.DataFrame, run: str) -> CanaryReplies:
    """The replies of *trials*, whose name is the prompt; those without a text are left out."""
    names = {prompt: name for name, prompt in canary_prompts().items()}
    rows = trials.to_dict("records")
    return CanaryReplies(
        endpoint=", ".join(sorted({str(row["endpoint"]) for row in rows})),
        models=tuple(sorted({str(row["model"]) for row in rows if isinstance(row["model"], str)})),
        run=run,
        simulated=bool(trials["simulated"].any()),
        replies={
            names[str(row["name"])]: CanaryReply(str(row["name"]), row["reply"])
            for row in rows
            if isinstance(row["reply"], str)
        },
    )


def write_canary(folder: Path, replies: CanaryReplies) -> Path:
    """Leave *replies* in the *folder* of the run; nothing is approved by that. Raises StoreError."""
    path = canary_file(folder, replies.endpoint)
    text = json.dumps(msgspec.to_builtins(replies), indent=1, ensure_ascii=True, allow_nan=False)
    write_atomically(path, f"{text}\n".encode("ascii"))
    return path


def read_canary(path: Path) -> CanaryReplies:
    """The replies in the file *path*. Raises UsageError."""
    try:
        return msgspec.convert(json.loads(path.read_bytes()), CanaryReplies)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is no file of canary replies ({error})") from None


def reference_replies(
    endpoint: str, options: ThirdPartyOptions, root: Path, folders: Sequence[Path]
) -> tuple[CanaryReplies | None, str]:
    """Return what the replies of *endpoint* are compared with, and in words what that is: the
    approved file, else the oldest of *folders* that has some. Raises UsageError for an approved
    file that cannot be read.
    """
    if (approved := options.canary.get(endpoint)) is not None:
        return read_canary(root / approved), f"the approved replies in {approved}"
    for folder in folders:
        if folder.name >= options.since and (path := canary_file(folder, endpoint)).exists():
            try:
                return read_canary(path), f"those of run {folder.name}, which nobody has approved"
            except FairnessError:
                continue
    return None, ""


def normalised(reply: str) -> str:
    """*reply* without what a model changes freely: case, blanks, punctuation."""
    return " ".join(re.findall(r"\w+", reply.casefold()))


def canary_finding(
    now: CanaryReplies,
    before: CanaryReplies | None,
    about: str,
    tolerance: float,
    trials: pd.DataFrame,
    kept: str,
) -> Finding:
    """Return whether more than the share *tolerance* of the canary prompts are answered otherwise
    than
    *before*.

    The prompt is the unit, and :func:`~pytest_fairness.analysis.checks.judge_share` decides; more
    than may, but not over half of them, is a FLAG. *kept*: where the replies of now are.
    """
    then = {}
    if before is not None:
        then = before.replies
    both = [
        name
        for name, reply in now.replies.items()
        if name in then and then[name].prompt == reply.prompt
    ]
    asked = len(trials)
    verdict = Verdict.INCONCLUSIVE
    reason: Reason | None = Reason.PRECISION
    more: dict[str, Any] = {}
    if before is None:
        words = (
            f"{len(now.replies)} replies to canary prompts, and none to compare them with: read "
            f"{kept}, "
            "copy it to a file of the project and name that in governance.yaml (third_party: "
            "canary)"
        )
    elif asked - len(both) > MOST_UNANSWERED * asked:
        reason = Reason.UNSCORED
        words = f"only {len(both)} of {asked} canary prompts have a reply now and in {about}"
    elif before.simulated != now.simulated:
        reason = Reason.UNRECORDED
        words = f"{about} are {'simulated' if before.simulated else 'live'}, and these are not"
    else:
        verdict, reason, words, more = _compared(now, before, both, tolerance)
        words = f"{words} than {about}"
    compared = len(now.replies)
    if before is not None:
        compared = len(both)
    if before is not None and before.models != now.models:
        answered = (
            f"{', '.join(before.models) or 'nobody known'} answered then, {', '.join(now.models)} "
            "now"
        )
        more["notes"] = (*more.get("notes", ()), answered)
    return checked(
        trials,
        assertion="canary",
        verdict=verdict,
        words=f"{now.endpoint}: {words}",
        reason=reason,
        outcome="canary replies",
        kind=OutcomeKind.BINARY,
        cluster="name",
        n_per_group={"prompts": compared},
        **more,
    )


def _compared(
    now: CanaryReplies, before: CanaryReplies, both: Collection[str], tolerance: float
) -> tuple[Verdict, Reason | None, str, dict[str, Any]]:
    pairs = {name: (before.replies[name].reply, now.replies[name].reply) for name in both}
    alike = {
        name: SequenceMatcher(None, normalised(then), normalised(said), autojunk=False).ratio()
        for name, (then, said) in pairs.items()
    }
    changed = [name for name, pair in pairs.items() if normalised(pair[0]) != normalised(pair[1])]
    n = len(pairs)
    x = len(changed)
    judged = judge_share(x, n, at_most=tolerance)
    verdict = judged.verdict
    if verdict is Verdict.FAIL and x <= n / 2:
        # A model that is replaced changes most replies; fewer may be a change of its settings.
        verdict = Verdict.FLAG
    way = {Verdict.PASS: "fewer than", Verdict.INCONCLUSIVE: "too uncertain to tell from"}.get(
        verdict, "more than"
    )
    words = (
        f"{x} of {n} canary prompts ({percent(x / n, 0)}, 95 % interval {100 * judged.low:.0f} to "
        f"{percent(judged.high, 0)}; {way} "
        f"the {percent(tolerance, 0)} that may) are answered otherwise"
    )
    return (
        verdict,
        judged.reason,
        words,
        {
            "test_statistic": f"{x} of {n} changed (exact binomial test against {tolerance:g})",
            "p_value": judged.p_value,
            "corrected_p_value": judged.p_value,
            "effect_size": f"share changed = {x / n:.3f}; mean similarity = {fmean(alike.values()):.3f}",
            "family": {"size": 1, "method": "none", "alpha": ALPHA},
            "group_results": (
                GroupResult(
                    group="prompts",
                    n=n,
                    clusters=n,
                    value=x / n,
                    low=judged.low,
                    high=judged.high,
                ),
            ),
            "notes": tuple(f"changed: {', '.join(changed[:MOST_LISTED])}" for _ in changed[:1]),
            "details": {
                "tolerance": tolerance,
                "changed": list(changed),
                "similarity": dict(alike),
            },
        },
    )


def canary_section(now: CanaryReplies, before: CanaryReplies | None) -> Section | None:
    """Each reply that changed, then and now; None where none did."""
    if before is None:
        return None
    rows = [
        (name, before.replies[name].reply, reply.reply)
        for name, reply in now.replies.items()
        if name in before.replies
        and normalised(before.replies[name].reply) != normalised(reply.reply)
    ]
    columns: Columns = {
        "prompt": lambda row: row[0],
        "then": lambda row: row[1],
        "now": lambda row: row[2],
    }
    shown = table(
        f"Canary prompts that {now.endpoint} answers otherwise",
        rows,
        columns,
        words=("then", "now"),
    )
    name = slug(now.endpoint)
    if rows:
        return Section(
            id=f"canary-{name}", heading=f"Canary replies: {now.endpoint}", parts=(shown,)
        )
    return None
