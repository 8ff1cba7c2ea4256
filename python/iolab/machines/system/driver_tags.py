"""How many requests a disk's driver holds at a time: the tags of each hardware queue.

`nr_requests` sets one of two things (blk_mq_update_nr_requests, block/blk-mq.c): the driver's tags when there is no
scheduler, the scheduler's own when there is one. A change of scheduler sets what `nr_requests` shows anew and leaves
the driver's tags as they are: a disk shows 128 and goes on with the 8 that somebody wrote before. A number that is
shown already is not written again. Seen on Linux 6.18. Only debugfs shows the driver's tags.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iolab.base.plain_text import counted
from iolab.machines.system import detached_mount
from iolab.machines.system.block import BlockDevice, shown

CHANGED_BY = frozenset({"scheduler", "nr_requests"})
"""The controls that change the tags or what is shown of them."""
TAGS = re.compile(r"^nr_tags=(\d+)$.*?^bitmap_tags:$.*?^depth=(\d+)$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class DriverTags:
    """Of the first hardware queue; `nr_requests` sets all alike."""

    used: int
    """How many the driver may hold."""
    made: int
    """How many its driver made."""


def of(disk: BlockDevice) -> DriverTags | None:
    """None if debugfs may not be read or shows none for this disk: without privileges, in a locked kernel."""
    try:
        with detached_mount.of("debugfs") as root, _opened(root, f"block/{disk.name}/hctx0/tags") as file:
            found = TAGS.search(os.read(file, 1 << 16).decode())
    except OSError:
        return None
    return DriverTags(used=int(found[2]), made=int(found[1])) if found else None


@dataclass(frozen=True)
class Shortage:
    """Fewer tags than made, which `nr_requests` does not show."""

    what: str
    remedy: str
    """The commands that give the driver all its tags."""


def shortage(disk: BlockDevice) -> Shortage | None:
    """What `nr_requests` hides of the disk, if it hides something."""
    tags, queue = of(disk), disk.queue
    if tags is None or tags.used == tags.made:
        return None
    depth, scheduler = shown(queue / "nr_requests"), shown(queue / "scheduler")
    if scheduler == "none" and depth == str(tags.used):
        return None
    commands = [f"for n in {_other(tags.made)} {tags.made}; do echo $n > {queue}/nr_requests; done"]
    if scheduler != "none":
        commands = [f"echo none > {queue}/scheduler", *commands, f"echo {scheduler} > {queue}/scheduler"]
    return Shortage(
        f"{disk.name}: the driver holds {counted(tags.used, 'request')} at most, of {tags.made}, "
        f"though nr_requests shows {depth}: {tags.used} was set without a scheduler, and changes of scheduler keep it",
        f"as root: {'; '.join(commands)}",
    )


def notes(disks: Iterable[BlockDevice]) -> list[str]:
    """What is hidden of these disks and those that they are stacked on, each with the commands that mend it."""
    each = {one.name: one for disk in disks for one in (disk, *disk.disks_below)}
    return [f"{short.what}; {short.remedy}" for disk in each.values() if (short := shortage(disk)) is not None]


def fill(disk: BlockDevice) -> None:
    """Gives the driver of a disk that is the caller's own, and has no scheduler, all its tags. OSError if the kernel
    refuses."""
    tags = of(disk)
    if tags is not None and tags.used != tags.made and shown(disk.queue / "scheduler") == "none":
        write(disk.queue / "nr_requests", str(tags.made))


def write(nr_requests: Path, wanted: str) -> None:
    """Writes the number even if it is shown already: by another one first. OSError if the kernel refuses."""
    if shown(nr_requests) == wanted:
        nr_requests.write_text(str(_other(int(wanted))))
    nr_requests.write_text(wanted)


@contextmanager
def _opened(directory: int, path: str) -> Iterator[int]:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        yield file
    finally:
        os.close(file)


def _other(depth: int) -> int:
    """One that the kernel takes too: it takes 4 or more."""
    return depth - 1 if depth > 4 else depth + 1
