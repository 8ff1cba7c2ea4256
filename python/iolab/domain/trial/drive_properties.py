"""The properties that a guest machine's drives may get, by kind: names and types. QEMU's devices have properties that
name files, and other parts of the machine; none of those is here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from iolab.base import quantity
from iolab.base.errors import unknown
from iolab.base.option import shown
from iolab.domain.trial.guest import DriveKind

Parameter = str | int | bool
SIZE_MAX = 2**40


@dataclass(frozen=True)
class Kind:
    """A kind of values."""

    expected: str
    read: Callable[[Parameter], str | None]
    """The value as the drive takes it; None: it is no such value."""


def _whole(least: int, most: int) -> Kind:
    """Whether something is on is a number too for the kernel's own drives."""

    def read(value: Parameter) -> str | None:
        return str(int(value)) if isinstance(value, int) and least <= value <= most else None

    return Kind(f"a whole number from {least} to {most}", read)


def _read_size(value: Parameter) -> str | None:
    try:
        size = quantity.parse_bytes(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return None if isinstance(size, bool) or not 0 <= size <= SIZE_MAX else str(size)


def _switch(*words: str) -> Kind:
    def read(value: Parameter) -> str | None:
        if isinstance(value, bool):
            return "on" if value else "off"
        return value if isinstance(value, str) and value in words else None

    return Kind(f"true, false, or one of {', '.join(words)}", read)


def _text(pattern: str, expected: str) -> Kind:
    def read(value: Parameter) -> str | None:
        return value if isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) else None

    return Kind(expected, read)


_LONG, _SIGNED, _UNSIGNED = _whole(0, 2**63 - 1), _whole(-(2**31), 2**31 - 1), _whole(0, 2**32 - 1)
_BYTE, _TEN_BITS = _whole(0, 255), _whole(0, 1024)
_SIZE = Kind('a size such as "4KiB", at most 1TiB', _read_size)
_SWITCH, _SWITCH_AUTO = _switch("on", "off"), _switch("on", "off", "auto")
_WORD = _text(r"[\w.-]{1,20}", "a word of at most 20 letters, digits, -, _ and .")
_SECTORS = _text(r"[0-9+-]{1,100}", "sectors such as +8 or +0-7")
_BLOCKS = {
    "logical_block_size": _SIZE,
    "physical_block_size": _SIZE,
    "min_io_size": _SIZE,
    "opt_io_size": _SIZE,
    "discard_granularity": _SIZE,
    "write-cache": _SWITCH_AUTO,
    "serial": _WORD,
    "ioeventfd": _SWITCH,
}
_NULL_BLK = (
    "badblocks_once badblocks_partial_io blocking blocksize cache_size completion_nsec discard fua home_node "
    "hw_queue_depth index irqmode max_sectors mbps memory_backed no_sched poll_queues queue_mode rotational "
    "shared_tag_bitmap shared_tags size submit_queues use_per_node_hctx virt_boundary zone_append_max_sectors "
    "zone_capacity zone_max_active zone_max_open zone_nr_conv zone_size zoned"
)
_SCSI_DEBUG = (
    "add_host ato atomic_wr atomic_wr_align atomic_wr_gran atomic_wr_max_bndry atomic_wr_max_length "
    "atomic_wr_max_length_bndry cdb_len clustering delay dev_size_mb dif dix dsense every_nth fake_rw guard "
    "host_lock host_max_queue lbpu lbprz lbpws lbpws10 lowest_aligned max_luns max_queue medium_error_count "
    "medium_error_start ndelay no_lun_0 no_rwlock no_uld num_parts num_tgts opt_blks opt_xferlen_exp opts "
    "per_host_store physblk_exp poll_queues ptype random removable scsi_level sector_size statistics strict "
    "submit_queues tur_ms_to_ready unmap_alignment unmap_granularity unmap_max_blocks unmap_max_desc uuid_ctl "
    "virtual_gb vpd_use_hostno wp write_same_length zone_cap_mb zone_max_open zone_nr_conv zone_size_mb"
)
PROPERTIES: dict[DriveKind, dict[str, Kind]] = {
    "null_blk": {
        **dict.fromkeys(_NULL_BLK.split(), _LONG),
        **dict.fromkeys(("badblocks", "zone_readonly", "zone_offline"), _SECTORS),
    },
    "scsi_debug": {
        **dict.fromkeys(_SCSI_DEBUG.split(), _SIGNED),
        "zbc": _WORD,
    },
    "virtio-blk": {
        **_BLOCKS,
        "config-wce": _SWITCH,
        "discard": _SWITCH,
        "event_idx": _SWITCH,
        "indirect_desc": _SWITCH,
        "max-discard-sectors": _UNSIGNED,
        "max-write-zeroes-sectors": _UNSIGNED,
        "num-queues": _TEN_BITS,
        "packed": _SWITCH,
        "queue-size": _TEN_BITS,
        "report-discard-granularity": _SWITCH,
        "request-merging": _SWITCH,
        "seg-max-adjust": _SWITCH,
        "vectors": _TEN_BITS,
        "write-zeroes": _SWITCH,
    },
    "nvme": {
        **_BLOCKS,
        "aer_max_queued": _TEN_BITS,
        "aerl": _BYTE,
        "cmb_size_mb": _TEN_BITS,
        "max_ioqpairs": _TEN_BITS,
        "mdts": _BYTE,
        "msix_qsize": _TEN_BITS,
        "use-intel-id": _SWITCH,
        "vsl": _BYTE,
    },
}
"""Attributes in configfs of null_blk, parameters of the module scsi_debug, else properties of QEMU's device."""


def read(drive: DriveKind, name: str, value: Parameter) -> str:
    """As the drive takes it. ValueError: it has no such property, or takes no such value of it; what it takes."""
    known = PROPERTIES[drive].get(name)
    if known is None:
        raise ValueError(unknown(f"parameter of {drive}", name, sorted(PROPERTIES[drive])))
    text = known.read(value)
    if text is None:
        raise ValueError(f"{shown(value)} given; expected {known.expected}")
    return text
