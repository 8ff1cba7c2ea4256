"""A simulated machine for people and for tables, in the shape that a host's description has (host/describe.py)."""

from __future__ import annotations

from collections.abc import Sequence

from iolab import _native
from iolab.base.strict_json import JsonObject
from iolab.base.version import VERSION
from iolab.domain import native_types as native
from iolab.domain import simulated_machine
from iolab.domain.record import ObservedTarget, TargetObservation
from iolab.domain.trial import Trial

Described = JsonObject
"""What people read, and tables by path: texts and numbers under keys, `{"absent": why}` for what is not known."""

_NO_DEVICE: JsonObject = {"absent": "files lie on a server"}


def describe(name: str, machine: native.MachineFile, files: Sequence[str]) -> Described:
    """The content of machine.json.

    Args:
        name: as the experiment has it, `model:NAME`.
        machine: as its file describes it, devices in place of their names.
        files: names of the run's copies of what it was read from.
    """
    return {
        "model": {"name": name, "title": machine.get("title", ""), "files": list(files)},
        "kernel": {"release": machine["kernel"]},
        "cpu": _cpu(machine),
        "memory": machine.get("memory") or {"absent": "no page cache: all I/O is direct"},
        "drives": [_drive(drive) for drive in machine["drives"]],
        **({"mounts": mounts} if (mounts := machine.get("mounts")) else {}),
        "versions": {"iolab": VERSION, "native_build_profile": _native.build_profile()},
    }


def observed(trial: Trial) -> TargetObservation:
    """The description of the machine in the trial's record: filesystem and device of the first drive or mount, others
    under `further`."""
    assert trial.model is not None
    places: list[ObservedTarget] = [
        {"filesystem": _filesystem(drive), "device": _device(drive)} for drive in trial.model["drives"]
    ]
    places += [{"filesystem": {"type": "nfs"}, "device": _NO_DEVICE} for _ in trial.model.get("mounts", ())]
    machine: JsonObject = {"name": trial.machine, "kernel": trial.model["kernel"], "seed": trial.seed}
    seen: TargetObservation = {"model": machine, "filesystem": places[0]["filesystem"], "device": places[0]["device"]}
    if len(places) > 1:
        seen["further"] = places[1:]
    return seen


def _cpu(machine: native.MachineFile) -> Described:
    clock_hz = machine["cpus"].get("clock_hz")
    clock = {} if clock_hz is None else {"frequency_mhz": clock_hz / 1e6}
    return {"count_online": simulated_machine.cpu_count(machine), **clock, **machine["cpus"]}


def _drive(drive: native.DriveSpec) -> Described:
    return {**_device(drive), "filesystem": _filesystem(drive)}


def _filesystem(drive: native.DriveSpec) -> Described:
    filesystem = drive.get("filesystem")
    if filesystem is None:
        return {"absent": "a bare drive"}
    return {"type": filesystem["kind"], **{key: value for key, value in filesystem.items() if key != "kind"}}


def _device(drive: native.DriveSpec) -> Described:
    named = simulated_machine.scheduler_of(drive)
    return {
        "model": drive["device"]["kind"],
        "virtual": True,
        "scheduler": named.get("name", {"absent": "the kernel's own"}),
        "scheduler_tunables": {key: str(value) for key, value in named.items() if key != "name"},
        "queue": {key: str(value) for key, value in (drive.get("queue") or {}).items()},
    }
