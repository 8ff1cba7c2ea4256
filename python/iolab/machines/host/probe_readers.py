"""Probes around a phase, whoever runs it: started before it and stopped after it.

Most are read in the engine's threads (crates/measure/engine/src/probe); those that take a look before and after are
here. One that cannot run never fails the trial: the phase's record states why it is absent.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, cast

from iolab import _native
from iolab.domain import native_types as native
from iolab.domain.phase_record import Observations, RecordedProbes
from iolab.domain.probe.probe import ProbeOptions
from iolab.domain.trial import Phase
from iolab.machines.host import extents, nfs, nvme
from iolab.machines.host.site import Site
from iolab.machines.system import cgroup, tracefs
from iolab.machines.system.action import RemoveTraceInstance
from iolab.machines.system.block import BlockDevice
from iolab.machines.system.facts import FactAbsent
from iolab.machines.system.undo import UndoJournal

TRACE_INSTANCES = {"block": "", "switches": "-switches"}
"""Probes with a tracing instance of their own, each with what its name has after the common one."""


class Reader(Protocol):
    """A probe that was started in Python. Whoever makes one may raise `FactAbsent`."""

    def stop(self) -> Mapping[str, object]:
        """What was observed since it was made, in the shape that docs/reference/probes.md describes. May raise
        `FactAbsent`."""
        ...


READERS: dict[str, Callable[[ProbeOptions, Site], Reader]] = {
    "extents": extents.Extents,
    "nfs": nfs.Mountstats,
    "nvme": nvme.Drives,
}
"""Probe -> what makes its reader of the probe's options and the target; all others are the engine's."""


@dataclass
class ProbeResults:
    """What probes saw, by name, and why others could not."""

    observations: dict[str, Mapping[str, object]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def in_record(self) -> RecordedProbes:
        """What a phase's record holds of its probes; nothing if none was on."""
        if not self.observations and not self.absent:
            return {}
        return {"probes": cast(Observations, self.observations), "probes_absent": self.absent}


@contextmanager
def around(phase: Phase, probes: Mapping[str, ProbeOptions], site: Site, undo: UndoJournal) -> Iterator[ProbeResults]:
    """What the probes observe while the context lasts; complete when it is left. A phase that is not measured has none.

    Args:
        probes: by name, with their options (`iolab.domain.trial.Trial.probes`).
    """
    probed = ProbeResults()
    if not probes or not phase.measured:
        yield probed
        return
    readers = _start_readers(probes, site, probed)
    engine = _start_engine(probes, site, undo, probed)
    try:
        yield probed
    finally:
        if engine is not None:
            seen: native.ProbeReports = json.loads(engine.stop())
            probed.observations |= cast(dict[str, Mapping[str, object]], seen["observations"])
            probed.absent |= seen["absent"]
    for name, reader in readers.items():
        try:
            probed.observations[name] = reader.stop()
        except FactAbsent as absent:
            probed.absent[name] = str(absent)


def _start_readers(probes: Mapping[str, ProbeOptions], site: Site, probed: ProbeResults) -> dict[str, Reader]:
    started = {}
    for name, options in probes.items():
        if name in READERS:
            try:
                started[name] = READERS[name](options, site)
            except FactAbsent as absent:
                probed.absent[name] = str(absent)
    return started


def _start_engine(
    probes: Mapping[str, ProbeOptions], site: Site, undo: UndoJournal, probed: ProbeResults
) -> _native.Probes | None:
    wanted = {}
    for name, options in probes.items():
        if name not in READERS:
            try:
                wanted[name] = _ENGINE_OPTIONS[name](options, site) if name in _ENGINE_OPTIONS else options
            except FactAbsent as absent:
                probed.absent[name] = str(absent)
    if not wanted:
        return None
    instance = f"iolab-{secrets.token_hex(8)}"
    for name, suffix in TRACE_INSTANCES.items():
        if name in wanted and tracefs.root() is not None:  # else the probe is absent, and reports it
            undo.before(RemoveTraceInstance(instance + suffix))
    return _native.Probes.start(json.dumps({"trace_instance": instance, **wanted}))


def _with_devices(options: ProbeOptions, site: Site) -> ProbeOptions:
    """For a partition, the disk too: a bio names the partition, the request that it becomes the disk."""
    of_host = {name: value for name, value in options.items() if name != "trace"}
    return {**of_host, "devices": _numbers(device for own in _devices(site) for device in (own, own.disk))}


def _with_processes(options: ProbeOptions, site: Site) -> ProbeOptions:
    own = options["tasks"] == "own"
    rest = {name: value for name, value in options.items() if name != "tasks"}
    return {**rest, "pids": [os.getpid()] if own else None}


def _with_io_stat(options: ProbeOptions, site: Site) -> ProbeOptions:
    """For a partition, its disk, and for layers the disks below: whose requests they are, theirs is io.cost."""
    hierarchy = cgroup.version_2()
    if hierarchy is None:
        raise FactAbsent("control groups version 2 are not mounted here; iolab doctor")
    disks = [disk for own in _devices(site) for disk in (own.disk, *own.disk.disks_below)]
    return {**options, "devices": _numbers(disks), "io_stat": str(hierarchy.root / "io.stat")}


def _devices(site: Site) -> list[BlockDevice]:
    devices = [place.device for place in site.places if place.device is not None]
    if not devices:
        raise FactAbsent('the target lies on no block device (tmpfs, overlay, network); use [target] kind = "scratch"')
    return devices


def _numbers(devices: Iterable[BlockDevice]) -> list[str]:
    return [f"{major}:{minor}" for major, minor in sorted({device.number for device in devices})]


_ENGINE_OPTIONS: dict[str, Callable[[ProbeOptions, Site], ProbeOptions]] = {
    "block": _with_devices,
    "switches": _with_processes,
    "io_cost": _with_io_stat,
}
"""Probe -> its options with what only the machine can determine."""
