"""A guest machine for people and for tables, in the shape that a host's description has (host/describe.py)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping

from iolab import __version__, _native
from iolab.base import child_process
from iolab.base.strict_json import JsonObject
from iolab.domain.record import Observed
from iolab.domain.trial import GuestMachine, ScratchTarget, Trial
from iolab.machines.guest import kernel, plan, programs, tree

VERSION_LIMIT_S = 10.0


def describe(name: str, guests: Mapping[str, GuestMachine]) -> JsonObject:
    """What machine.json says; fetches the kernels, so that no trial waits for them. Commits of a tree are built by the
    first trial that takes one: of many, a search takes few.

    Raises:
        InputError, MachineError: there is no such kernel, or this machine cannot run guests.
    """
    programs.agent()
    programs.counter()
    first = next(iter(guests.values()))
    images: JsonObject = {}
    for guest in guests.values():
        if tree.is_commit(guest.kernel):
            images[guest.kernel] = {"commit": guest.kernel.rpartition("@")[2]}
        elif guest.kernel not in images:
            found = kernel.find(guest.kernel, guest.modules)
            images[guest.kernel] = {"image": str(found.image), "blake2b": found.identity()}
    return {
        "guest": {"name": name, "kernels": images, "qemu": _version(), "drive": first.drive},
        "kernel": {"release": first.kernel if len(images) == 1 else "by setting"},
        "cpu": {"count_online": first.cpus, "model": "emulated, an instruction a nanosecond"},
        "memory": {"total_bytes": first.memory_bytes},
        "versions": {"iolab": __version__, "native_build_profile": _native.build_profile()},
    }


def observed(trial: Trial, release: str | None) -> Observed:
    """What the trial's record says of its machine; `release`: the kernel that ran, None if none came up."""
    assert trial.guest is not None and isinstance(trial.target, ScratchTarget)
    machine: JsonObject = {"name": trial.machine, "kernel": release or trial.guest.kernel, "seed": trial.seed}
    named = trial.target.filesystem
    device: JsonObject = {"model": trial.guest.drive, "virtual": True, "size_bytes": trial.target.size_bytes}
    if trial.guest.drive == "null_blk":
        device["memory_backed"] = plan.null_blk_parameters(trial)["memory_backed"] == "1"
    return {
        "guest": machine,
        "filesystem": {"type": named} if named is not None else {"absent": "a bare drive"},
        "device": device,
    }


def _version() -> str:
    told = subprocess.run(
        [programs.qemu(), "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=VERSION_LIMIT_S,
        env=child_process.environment(),
        check=False,
    )
    found = re.search(r"version (\S+)", told.stdout)
    return found[1] if found else "unknown"
