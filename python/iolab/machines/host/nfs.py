"""The probe `nfs`: the NFS client's counters before and after."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

from iolab.base.mountstats import COUNTERS, Snapshot, snapshots
from iolab.domain import native_types as native
from iolab.domain.probe.probe import ProbeOptions
from iolab.machines.host.site import Site
from iolab.machines.system.facts import FactAbsent
from iolab.machines.system.mounts import Mount, mount_of, mounts, unescape

MOUNTSTATS = Path("/proc/self/mountstats")


class Mountstats:
    """The counters of the NFS mounts that the target lies on; of all NFS mounts if it lies on none."""

    def __init__(self, options: ProbeOptions, site: Site) -> None:
        self._mounts = [mount for mount in mounts() if mount.filesystem.startswith("nfs")]
        own = [mount for place in site.places if (mount := mount_of(place.path)) in self._mounts]
        found = [mount for mount in own if mount is not None] or self._mounts
        # A filesystem that is mounted in several places counts all of them together.
        self._mounts = list({mount.number: mount for mount in found}.values())
        if not self._mounts:
            raise FactAbsent(
                "no NFS is mounted here; sudo mount -t nfs SERVER:/PATH DIRECTORY, and name it in [target]"
            )
        self._before = self._read()
        self._started_ns = time.monotonic_ns()

    def stop(self) -> native.NfsObservation:
        """The observation: time since the start in ns, and by mount what its counters gained."""
        elapsed_ns = time.monotonic_ns() - self._started_ns
        return {"elapsed_ns": elapsed_ns, "mounts": differences(self._mounts, self._before, self._read())}

    def _read(self) -> dict[str, Snapshot]:
        try:
            text = MOUNTSTATS.read_text()
        except OSError as error:
            raise FactAbsent(f"cannot read {MOUNTSTATS}: {error.strerror}; a kernel with CONFIG_PROC_FS") from error
        return {unescape(one.mount): one for one in snapshots(text)}


def differences(
    chosen: list[Mount], before: dict[str, Snapshot], after: dict[str, Snapshot]
) -> dict[str, native.MountObserved]:
    """By mount point: the server's `source`, and under `operations`, by their names in small letters, the counters of
    those that were called. FactAbsent when a mount is new or gone."""
    found: dict[str, native.MountObserved] = {}
    for mount in chosen:
        point = mount.mount_point
        if point not in before or point not in after:
            raise FactAbsent(f"{point} was mounted or unmounted while it was observed")
        difference = after[point].since(before[point])
        if difference.went_backwards:
            raise FactAbsent(f"{point} was mounted anew while it was observed")
        operations = {
            name.lower(): cast(native.OperationObserved, dict(zip(COUNTERS, counters, strict=True)))
            for name, counters in difference.operations.items()
            if any(counters)
        }
        found[point] = {"source": mount.source, "operations": operations}
        if difference.pulled_up_bytes is not None:
            found[point]["pulled_up_bytes"] = difference.pulled_up_bytes
    return found
