"""A justification that is in force, whenever the tests run."""

from __future__ import annotations

import datetime

APPROVED = datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=30)
#: The longest that there is.
EXPIRES = APPROVED + datetime.timedelta(days=3 * 365 + 1)
IN_FORCE = {"reason": "one site", "approver": "Jane", "date": str(APPROVED), "expiry": str(EXPIRES)}
