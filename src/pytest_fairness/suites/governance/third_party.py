"""Whether provider and model stay what was declared."""

from __future__ import annotations

import msgspec


class ThirdPartyOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``governance.yaml`` may say under ``third_party``."""
