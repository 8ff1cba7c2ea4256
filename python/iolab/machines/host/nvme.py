"""The probe `nvme`: what NVMe drives count of themselves, before and after."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from iolab.domain.phase_record import NvmeDrive, NvmeObservation
from iolab.domain.probe.probe import ProbeOptions
from iolab.machines.host.site import Site
from iolab.machines.system import nvme_log
from iolab.machines.system.block import BlockDevice
from iolab.machines.system.facts import FactAbsent
from iolab.machines.system.nvme_log import DriveCounters

Ask = Callable[[Path], DriveCounters]


class Drives:
    """The NVMe drives that the target lies on."""

    def __init__(self, options: ProbeOptions, site: Site, ask: Ask = nvme_log.counters) -> None:
        devices = [place.device.disk for place in site.places if place.device is not None]
        below = {disk.name: disk for device in devices for disk in device.disks_below or [device]}
        self._drives = [disk for disk in below.values() if disk.name.startswith("nvme")]
        self._ask = ask
        if not self._drives:
            raise FactAbsent("the target lies on no NVMe drive")
        self._before = self._read()

    def stop(self) -> NvmeObservation:
        """What each drive has counted since it was made."""
        after = self._read()
        return {"drives": {name: _since(self._before[name], seen) for name, seen in after.items()}}

    def _read(self) -> dict[str, DriveCounters]:
        return {disk.name: self._asked(disk) for disk in self._drives}

    def _asked(self, disk: BlockDevice) -> DriveCounters:
        node = Path("/dev", disk.name)
        try:
            return self._ask(node)
        except OSError as error:
            raise FactAbsent(f"cannot ask {node}: {error.strerror or error}; run as root") from error


def _since(before: DriveCounters, after: DriveCounters) -> NvmeDrive:
    seen: NvmeDrive = {
        "host_bytes_written": after.host_bytes_written - before.host_bytes_written,
        "celsius": after.celsius,
    }
    if before.media_bytes_written is not None and after.media_bytes_written is not None:
        seen["media_bytes_written"] = after.media_bytes_written - before.media_bytes_written
    return seen
