"""Whether replies explain themselves, and to all groups alike."""

from __future__ import annotations

import msgspec


class TransparencyOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say under ``transparency``."""
