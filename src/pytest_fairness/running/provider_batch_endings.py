"""What becomes of the trials of a batch: their replies logged, their money settled, and on to their next request or
their end.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from pytest_fairness.endpoints.protocol import AttemptError, Evidence
from pytest_fairness.errors import EndpointError
from pytest_fairness.model import Trial
from pytest_fairness.running.attempts import Asker, Ended, failed
from pytest_fairness.running.batch import LOST, Policy
from pytest_fairness.running.budget import Budget
from pytest_fairness.running.conversation import REPEATABLE, Conversation
from pytest_fairness.running.progress import ProgressSink
from pytest_fairness.running.provider_batch_results import BATCHED
from pytest_fairness.running.provider_batch_submission import Flying, InBatch


class Endings:
    """``ready`` are the conversations that wait for a next request, in their order; ``asked`` the finished trials."""

    def __init__(
        self,
        *,
        asker: Asker,
        budget: Budget,
        policy: Policy,
        finish: Callable[[Conversation], Trial],
        progress: ProgressSink | None,
    ) -> None:
        self.ready: deque[Conversation] = deque()
        self.asked: dict[str, Trial] = {}
        self._asker = asker
        self._budget = budget
        self._policy = policy
        self._finish = finish
        self._progress = progress
        self._failures = Counter[str]()

    def on(self, conversation: Conversation) -> None:
        """What comes after an attempt, or none: the end, or the next batch."""
        if conversation.status is None:
            self.ready.append(conversation)
            return
        trial = self._finish(conversation)
        self.asked[conversation.key] = trial
        if self._progress is not None:
            self._progress.advance(trial)

    def conclude(self, member: InBatch, how: Ended, *, blame: bool = True) -> None:
        """Log how a request ended, and go on with its trial. *blame*: a failure counts against the trial."""
        conversation = member.conversation
        self._asker.conclude(conversation, member.number, how, member.reserved, None)
        if blame and how.evidence in REPEATABLE and conversation.status is None:
            self._failures[conversation.key] += 1
            if self._failures[conversation.key] >= self._policy.max_attempts:
                conversation.give_up(f"{how.error} (after {self._failures[conversation.key]} attempts)")
        elif how.evidence is None:
            self._failures.pop(conversation.key, None)
        self.on(conversation)

    def reject(self, conversation: Conversation, error: AttemptError) -> None:
        """A request that cannot be sent as it is: its own outcome. Raises EndpointError where none can be sent."""
        if error.evidence is Evidence.AUTH:
            raise EndpointError(f"{error}; nothing more is sent to this endpoint: mend its key, quota or model name")
        how = failed(error.evidence, str(error), wire=error.wire)
        self._asker.conclude(conversation, conversation.attempts + 1, how, 0, None)
        self.on(conversation)

    def lost_before(self, conversation: Conversation) -> None:
        """A trial that was sent by a process that is gone, and nobody knows how it ended."""
        if self._policy.retry.unknown:
            conversation.ask_again()
        else:
            conversation.lose(LOST)
        self.on(conversation)

    def unmade(self, flying: Flying, why: str) -> None:
        """The batch was never made: its trials are as free as before."""
        for member in flying.members.values():
            how = failed(Evidence.NOT_SENT, f"the batch was not made: {why}", flags=(BATCHED,))
            self.conclude(member, how, blame=False)

    def lost(self, flying: Flying, why: str) -> None:
        """The batch was sent, and nobody knows what became of it: charged in full, and not sent again unasked."""
        for member in flying.members.values():
            if self._policy.retry.unknown:
                self._budget.leave(member.reserved)
                member.conversation.ask_again()
                self.on(member.conversation)
            else:
                text = f"{LOST} (batch {flying.submission.tag}: {why})"
                self.conclude(member, failed(Evidence.NO_RESPONSE, text, flags=(BATCHED,)))
