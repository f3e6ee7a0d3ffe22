"""A plugin (``-p tests.support.ordinary_user``) of a session that root runs: like anybody else, it
may not pass over permissions.
"""

from __future__ import annotations

import ctypes
import os

#: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
CAPABILITIES = 1 << 1 | 1 << 2
#: _LINUX_CAPABILITY_VERSION_3, of which a process has two sets of 32: effective, permitted and
#: inheritable ones.
HEADER = (ctypes.c_uint32 * 2)(0x20080522, 0)
SETS = (ctypes.c_uint32 * 6)()


def give_up_capabilities() -> None:
    """Take the capabilities from this thread, and from those that it starts."""
    library = ctypes.CDLL(None, use_errno=True)
    for call in (library.capget, library.capset):
        if call(HEADER, SETS) != 0:
            raise OSError(ctypes.get_errno(), "the capabilities of root cannot be given up")
        for place in range(3):
            SETS[place] &= ~CAPABILITIES


if os.geteuid() == 0:
    give_up_capabilities()
