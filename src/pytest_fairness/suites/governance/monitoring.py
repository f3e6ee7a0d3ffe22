"""How scores and verdicts drift over runs."""

from __future__ import annotations

import msgspec


class MonitoringOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say under ``monitoring``."""
