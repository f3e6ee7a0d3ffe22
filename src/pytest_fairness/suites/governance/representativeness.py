"""How far personas, name banks and a dataset are like a declared population."""

from __future__ import annotations

import msgspec


class DataOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say under ``data``."""
