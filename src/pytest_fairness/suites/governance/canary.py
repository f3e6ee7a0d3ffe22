"""Canary prompts: neutral questions that are asked again, and whether the replies are those of
before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_fairness import (
    FairnessError,
    Finding,
    GroupResult,
    OutcomeKind,
    Reason,
    UsageError,
    Verdict,
)
from pytest_fairness.analysis.checklist import RecordState, judge_record
from pytest_fairness.analysis.checks import ALPHA, JudgedShare, checked, judge_share
from pytest_fairness.model import JSON
from pytest_fairness.reports import Columns, Section, table
from pytest_fairness.runs.files import write_atomically
from pytest_fairness.scorers import answer_line
from pytest_fairness.suites.authoring import open_document, slug
from pytest_fairness.suites.governance.past_results import MOST_LISTED
from pytest_fairness.suites.governance.third_party import ThirdPartyOptions
from pytest_fairness.words import percent, percents

if TYPE_CHECKING:
    import pandas as pd

PROMPTS = "canary_prompts.yaml"
#: A prompt as it is asked: what stands around the answer may change with the hour.
ASKED = (
    "{prompt}\n\nEnd with a line `ANSWER: <that answer alone>`; if you decline to answer, with a "
    "line `ANSWER: no answer`."
)
#: A model that is replaced changes most replies; fewer may be a change of its settings.
MOST = 0.5


class CanaryReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt and its reply, word for word."""

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
    models = set()
    replies = {}
    for row in rows:
        if isinstance(row["model"], str):
            models.add(row["model"])
        if isinstance(row["reply"], str):
            prompt = str(row["name"])
            replies[names[prompt]] = CanaryReply(prompt, row["reply"])
    return CanaryReplies(
        endpoint=", ".join(sorted({str(row["endpoint"]) for row in rows})),
        models=tuple(sorted(models)),
        run=run,
        simulated=bool(trials["simulated"].any()),
        replies=replies,
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


def answer_in(reply: str) -> str:
    """The answer on the last line of *reply*, which the request asks for, normalised; all of a
    reply without such a line, or one that declines.
    """
    return normalised(answer_line(reply) or reply)


def normalised(reply: str) -> str:
    """*reply* without what a model changes freely: case, blanks, punctuation."""
    return " ".join(re.findall(r"\w+", reply.casefold()))


@dataclass(frozen=True, slots=True)
class ChangedReplies:
    """Prompts that were answered now and before: how alike the two replies are, and which differ."""

    similarity: dict[str, float]
    changed: list[str]

    @classmethod
    def of(cls, now: CanaryReplies, before: CanaryReplies) -> ChangedReplies:
        """Return those of *now* whose prompt is the same in *before*."""
        similarity = {}
        changed = []
        for name, reply in now.replies.items():
            earlier = before.replies.get(name)
            if earlier is None or earlier.prompt != reply.prompt:
                continue
            then = answer_in(earlier.reply)
            text = answer_in(reply.reply)
            similarity[name] = SequenceMatcher(None, then, text, autojunk=False).ratio()
            if text != then:
                changed.append(name)
        return cls(similarity, changed)

    @property
    def prompts(self) -> int:
        return len(self.similarity)


def canary_finding(
    now: CanaryReplies,
    before: CanaryReplies | None,
    about: str,
    tolerance: float,
    trials: pd.DataFrame,
    kept: str,
) -> Finding:
    """Return whether more than the share *tolerance* of the canary prompts are answered otherwise
    than *before*, which *about* names.

    The prompt is the unit, and :func:`~pytest_fairness.analysis.checks.judge_share` decides; more
    than may, but not over half of them, is a FLAG. *kept*: where the replies of now are.
    """
    if before is None:
        words = (
            f"{len(now.replies)} replies to canary prompts, and none to compare them with: read "
            f"{kept}, copy it to a file of the project and name that in governance.yaml "
            "(third_party: canary)"
        )
        return _incomparable(now, RecordState.UNCOMPARED, words, trials, len(now.replies), ())
    replies = ChangedReplies.of(now, before)
    prompts = replies.prompts
    notes = []
    if replies.changed:
        notes = [f"changed: {', '.join(replies.changed[:MOST_LISTED])}"]
    models = []
    if before.models != now.models:
        then = ", ".join(before.models) or "nobody known"
        models = [f"{then} answered then, {', '.join(now.models)} now"]
    asked = len(trials)
    judged = judge_share(
        len(replies.changed),
        prompts,
        at_most=tolerance,
        missing=(asked - prompts) / max(asked, 1),
        flag_up_to=MOST,
    )
    if judged.reason is Reason.UNSCORED:
        words = f"only {prompts} of {asked} canary prompts have a reply now and in {about}"
        return _about(now, judged.verdict, judged.reason, words, trials, prompts, notes=models)
    if before.simulated != now.simulated:
        kind = "live"
        if before.simulated:
            kind = "simulated"
        words = f"{about} are {kind}, and these are not"
        return _incomparable(now, RecordState.UNRECORDED, words, trials, prompts, models)
    return _about(
        now,
        judged.verdict,
        judged.reason,
        f"{_compared(replies, judged, tolerance)} than {about}",
        trials,
        prompts,
        notes=[*notes, *models],
        **_figures(replies, judged, tolerance),
    )


def _incomparable(
    now: CanaryReplies,
    state: RecordState,
    words: str,
    trials: pd.DataFrame,
    prompts: int,
    notes: Sequence[str],
) -> Finding:
    """The finding where *state* keeps the replies from being compared."""
    decision = judge_record(state)
    return _about(now, decision.verdict, decision.reason, words, trials, prompts, notes=notes)


def _about(
    now: CanaryReplies,
    verdict: Verdict,
    reason: Reason | None,
    words: str,
    trials: pd.DataFrame,
    prompts: int,
    *,
    notes: Sequence[str],
    **figures: Any,
) -> Finding:
    """The finding on the replies of *now*."""
    return checked(
        trials,
        assertion="canary",
        verdict=verdict,
        words=f"{now.endpoint}: {words}",
        reason=reason,
        outcome="canary replies",
        kind=OutcomeKind.BINARY,
        cluster="name",
        n_per_group={"prompts": prompts},
        notes=tuple(notes),
        **figures,
    )


def _compared(replies: ChangedReplies, judged: JudgedShare, tolerance: float) -> str:
    """The share that changed beside the one that may, in words."""
    x = len(replies.changed)
    n = replies.prompts
    limit = "more than"
    if judged.verdict is Verdict.PASS:
        limit = "fewer than"
    elif judged.verdict is Verdict.INCONCLUSIVE:
        limit = "too uncertain to tell from"
    interval = percents(judged.low, judged.high, 0)
    return (
        f"{x} of {n} canary prompts ({percent(x / n, 0)}, 95 % interval {interval}; {limit} the "
        f"{percent(tolerance, 0)} that may) are answered otherwise"
    )


def _figures(replies: ChangedReplies, judged: JudgedShare, tolerance: float) -> dict[str, Any]:
    """The fields of a finding with what was computed."""
    x = len(replies.changed)
    n = replies.prompts
    group = GroupResult(
        group="prompts", n=n, clusters=n, value=x / n, low=judged.low, high=judged.high
    )
    similarity = fmean(replies.similarity.values())
    details: dict[str, JSON] = {
        "tolerance": tolerance,
        "changed": [*replies.changed],
        "similarity": {**replies.similarity},
    }
    return {
        "test_statistic": f"{x} of {n} changed (exact binomial test against {tolerance:g})",
        "p_value": judged.p_value,
        "corrected_p_value": judged.p_value,
        "effect_size": f"share changed = {x / n:.3f}; mean similarity = {similarity:.3f}",
        "family": {"size": 1, "method": "none", "alpha": ALPHA},
        "group_results": (group,),
        "details": details,
    }


def canary_section(now: CanaryReplies, before: CanaryReplies | None) -> Section | None:
    """Each reply that changed, then and now; None where none did."""
    if before is None:
        return None
    rows = []
    for name, reply in now.replies.items():
        earlier = before.replies.get(name)
        if earlier is not None and answer_in(earlier.reply) != answer_in(reply.reply):
            rows.append((name, earlier.reply, reply.reply))
    if not rows:
        return None
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
    heading = f"Canary replies: {now.endpoint}"
    return Section(id=f"canary-{slug(now.endpoint)}", heading=heading, parts=(shown,))
