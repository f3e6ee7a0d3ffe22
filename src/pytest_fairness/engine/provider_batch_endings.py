"""What becomes of the trials of a batch: their replies logged, their money settled, and on to their next request or
their end.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from pytest_fairness.endpoints.protocol import AttemptError, Evidence
from pytest_fairness.engine.attempt import Asker, Ended, failed
from pytest_fairness.engine.charges import USAGE_ABSURD
from pytest_fairness.engine.conversation import REPEATABLE, Conversation
from pytest_fairness.engine.progress import ProgressSink
from pytest_fairness.engine.provider_batch_results import BATCHED
from pytest_fairness.engine.provider_batch_submission import Flying, InBatch
from pytest_fairness.engine.queue import ABSURD, LOST, Policy
from pytest_fairness.errors import EndpointError
from pytest_fairness.model import Trial
from pytest_fairness.runs.money import Budget

_MEND = "mend its key, quota or model name"


class Endings:
    """``ready`` are the conversations that wait for a next request, in their order; ``asked`` the finished trials;
    ``error`` is why nothing more should be asked. *server_error_attempts*: how often a request is asked that the
    provider failed at.
    """

    def __init__(
        self,
        *,
        asker: Asker,
        budget: Budget,
        policy: Policy,
        finish: Callable[[Conversation], Trial],
        progress: ProgressSink | None,
        label: str,
        server_error_attempts: int,
    ) -> None:
        self.ready: deque[Conversation] = deque()
        self.asked: dict[str, Trial] = {}
        self.error: EndpointError | None = None
        self._label = label
        self._server_error_attempts = server_error_attempts
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
        if USAGE_ABSURD in how.flags and not self._asker.free:
            self.error = self.error or EndpointError(ABSURD.format(endpoint=self._label, usage=how.usage))
        if how.evidence is Evidence.AUTH:  # the next would be refused as well; this one may be asked another day
            self.error = self.error or EndpointError(f"{how.error}; nothing more is sent to this endpoint: {_MEND}")
            return
        if how.evidence is None:
            self._failures.pop(conversation.key, None)
        elif blame:
            self._failed(conversation, how)
        self.on(conversation)

    def _failed(self, conversation: Conversation, how: Ended) -> None:
        """Decide whether a request that failed is asked again: where it cost nothing, and not too often."""
        self._failures[conversation.key] += 1
        failures = self._failures[conversation.key]
        if how.evidence is Evidence.SERVER and failures < self._server_error_attempts:
            conversation.reopen()
        elif how.evidence in REPEATABLE and failures >= self._policy.max_attempts:
            conversation.give_up(f"{how.error} (after {failures} attempts)")

    def reject(self, conversation: Conversation, error: AttemptError) -> None:
        """A request that cannot be sent as it is: its own outcome. Raises EndpointError where none can be sent."""
        if error.evidence is Evidence.AUTH:
            raise EndpointError(f"{error}; nothing more is sent to this endpoint: {_MEND}")
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
