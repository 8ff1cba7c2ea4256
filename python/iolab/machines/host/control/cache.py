"""What the page cache holds when a phase starts: the phases drop it, this determines how much of it they can."""

from __future__ import annotations

import os

from typing_extensions import override

from iolab.machines.host.control.applier import AppliedValue, Applier, Context
from iolab.machines.system.page_cache import DROP_CACHES


class DropCaches(Applier):
    """Notes which caches are dropped."""

    @override
    def apply(self, context: Context, value: bool) -> AppliedValue:
        reach = "all caches" if os.access(DROP_CACHES, os.W_OK) else "the files' own pages"
        return AppliedValue(None, reach if value else False)


APPLIERS: tuple[Applier, ...] = (DropCaches("drop_caches"),)
