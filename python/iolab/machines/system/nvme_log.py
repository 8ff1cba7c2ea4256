"""What an NVMe drive counts of itself: its log pages, which are read and nothing else."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from iolab.domain.probe.nvme import UNIT_BYTES

ADMIN_COMMAND = 0xC0484E41
"""`NVME_IOCTL_ADMIN_CMD` of linux/nvme_ioctl.h."""
COMMAND = struct.Struct("=BBHIIIQQII8I")
"""`struct nvme_passthru_cmd`."""
GET_LOG_PAGE = 0x02
ALL_NAMESPACES = 0xFFFFFFFF
PAGE_BYTES = 512
HEALTH = 0x02
"""NVM Express base specification, SMART / health information."""
CLOUD_HEALTH = 0xC0
"""OCP Datacenter NVMe SSD specification, extended health information."""
CLOUD_GUID = bytes.fromhex("c5af1028eabff2a49c4f6f7cc914d5af")
"""Other makers have other things under that number."""
KELVIN_OF_0_CELSIUS = 273


@dataclass(frozen=True)
class DriveCounters:
    """Since the drive was made."""

    host_bytes_written: int
    media_bytes_written: int | None
    """Programmed for the host's writes, moved data included; None: the drive does not say."""
    celsius: int


def counters(node: Path) -> DriveCounters:
    """Of the drive behind a namespace's block device.

    Raises:
        OSError: it can't be asked: no NVMe drive, or no right to.
    """
    fd = os.open(node, os.O_RDONLY | os.O_CLOEXEC)
    try:
        health = _page(fd, HEALTH)
        try:
            cloud = _page(fd, CLOUD_HEALTH)
        except OSError:
            cloud = b""  # it has no such page
    finally:
        os.close(fd)
    return decoded(health, cloud)


def decoded(health: bytes, cloud: bytes) -> DriveCounters:
    """What the two pages say; the second may be missing, or another maker's."""
    is_cloud = cloud[496:512] == CLOUD_GUID
    return DriveCounters(
        host_bytes_written=int.from_bytes(health[48:64], "little") * UNIT_BYTES,
        media_bytes_written=int.from_bytes(cloud[0:16], "little") if is_cloud else None,
        celsius=int.from_bytes(health[1:3], "little") - KELVIN_OF_0_CELSIUS,
    )


def _page(fd: int, number: int) -> bytes:
    page = ctypes.create_string_buffer(PAGE_BYTES)
    which = number | (PAGE_BYTES // 4 - 1) << 16
    asked = (GET_LOG_PAGE, 0, 0, ALL_NAMESPACES, 0, 0, 0, ctypes.addressof(page), 0, PAGE_BYTES)
    command = bytearray(COMMAND.pack(*asked, which, *(0,) * 7))
    if status := fcntl.ioctl(fd, ADMIN_COMMAND, command):
        raise OSError(f"the drive refuses log page {number:#x} (status {status:#x})")
    return page.raw
