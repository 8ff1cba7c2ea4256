"""A guest machine for people and for tables, in the shape that a host's description has (host/describe.py)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence

from iolab import _native
from iolab.base import child_process
from iolab.base.strict_json import JsonObject, dumps
from iolab.base.version import VERSION
from iolab.domain import control
from iolab.domain.record import TargetObservation
from iolab.domain.trial import GuestMachine, ScratchTarget, Trial
from iolab.domain.trial.guest import is_commit
from iolab.machines.guest import configuration, kernel, plan, programs, qemu

VERSION_LIMIT_S = 10.0
_OF_QEMU = re.compile(r"x-|.*cpuid|.*-cache$|vmware|fill|check$|kvm$|hypervisor$")
"""Properties of QEMU's processors that are no flags."""


def describe(name: str, guests: Mapping[str, GuestMachine]) -> JsonObject:
    """The content of machine.json; fetches the kernels, so that no trial waits for them. Commits of a tree are built by
    the first trial that takes one: of many, a search takes few.

    Raises:
        InputError, MachineError: there is no such kernel, or this machine cannot run guests.
    """
    programs.agent()
    programs.counter()
    first = next(iter(guests.values()))
    images: JsonObject = {}
    for guest in guests.values():
        if is_commit(guest.kernel):
            name_of = guest.kernel if guest.config is None else f"{guest.kernel} {guest.config}"
            images[name_of] = {"commit": guest.kernel.rpartition("@")[2]}
        elif guest.kernel not in images:
            found = kernel.find(guest.kernel, guest.modules)
            images[guest.kernel] = {"image": str(found.image), "blake2b": found.identity(), **made(found)}
    processor: JsonObject = {"model": qemu.PROCESSOR, "flags": flags()}
    of_guest: JsonObject = {"name": name, "kernels": images, "qemu": _version(), "drive": first.drive}
    return {
        "guest": of_guest | ({"cpu": processor} if first.accelerator == "tcg" else {}),
        "kernel": {"release": first.kernel if len(images) == 1 else "by setting"},
        "cpu": {"count_online": first.cpus, "model": "emulated, an instruction a nanosecond"},
        "memory": {"total_bytes": first.memory_bytes},
        "versions": {"iolab": VERSION, "native_build_profile": _native.build_profile()},
    }


def made(found: kernel.Kernel) -> JsonObject:
    """What the kernel was configured as and built by, as far as that is known."""
    compiler = None if found.config is None else configuration.compiler(found.config)
    facts = {"configuration": found.configuration, "compiler": compiler}
    return {name: value for name, value in facts.items() if value is not None}


def observed(trial: Trial, release: str | None, found: kernel.Kernel | None) -> TargetObservation:
    """The description of the machine in the trial's record.

    Args:
        release: the kernel that ran; None if none came up.
        found: the kernel that was booted; None if none was.
    """
    trial = control.amend(trial)
    assert trial.guest is not None and isinstance(trial.target, ScratchTarget)
    machine: JsonObject = {"name": trial.machine, "kernel": release or trial.guest.kernel, "seed": trial.seed}
    machine |= {} if found is None else made(found)
    named = trial.target.filesystem
    device: JsonObject = {"model": trial.guest.drive, "virtual": True, "size_bytes": trial.target.size_bytes}
    if trial.guest.drive == "null_blk":
        device["memory_backed"] = plan.null_blk_parameters(trial)["memory_backed"] == "1"
    elif trial.guest.drive in ("virtio-blk", "nvme"):
        device["memory_backed"] = plan.reads_what_it_wrote(trial)
    if trial.target.layers:
        device["layers"] = trial.target.layers
    return {
        "guest": machine,
        "filesystem": {"type": named} if named is not None else {"absent": "a bare drive"},
        "device": device,
    }


def _version() -> str:
    found = re.search(r"version (\S+)", _qemu_output("--version"))
    return found[1] if found else "unknown"


def flags() -> list[str]:
    """The flags of the processor that QEMU emulates, as QEMU expands the model's name; none if it does not report
    them."""
    asked = {"type": "full", "model": {"name": qemu.PROCESSOR}}
    output = _qemu_output(
        *("-machine", "none", "-accel", "tcg", "-nodefaults", "-display", "none", "-qmp", "stdio"),
        given=[
            {"execute": "qmp_capabilities"},
            {"execute": "query-cpu-model-expansion", "arguments": asked},
            {"execute": "quit"},
        ],
    )
    for line in output.splitlines():
        found = re.search(r'"props": (\{[^}]*\})', line)
        if found:
            names = re.findall(r'"([a-z][a-z0-9._-]*)": true', found[1])
            return sorted(one for one in names if not _OF_QEMU.match(one))
    return []


def _qemu_output(*options: str, given: Sequence[JsonObject] = ()) -> str:
    """What QEMU prints; empty if it does not answer."""
    try:
        return subprocess.run(
            [programs.qemu(), *options],
            input="".join(f"{dumps(one)}\n" for one in given),
            capture_output=True,
            text=True,
            timeout=VERSION_LIMIT_S,
            env=child_process.environment(),
            check=False,
        ).stdout
    except subprocess.TimeoutExpired:
        return ""
