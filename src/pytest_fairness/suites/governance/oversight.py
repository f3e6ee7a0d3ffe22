"""Whether what was found was decided, by whom, and in time."""

from __future__ import annotations

import msgspec


class OversightOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say under ``oversight``."""
