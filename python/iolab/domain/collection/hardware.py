"""What a run ran on, less its kernel: numbers of different hardware are shown side by side only on request."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from iolab.base.plain_text import counted
from iolab.domain.conditions import OF_MODEL, differences

KIND = "kind of machine"
OF_HARDWARE = (KIND, "machine", "CPU", "CPUs", "memory", "virtualization", "device model", "device size")
"""Facts that a kernel has no say in (`iolab.domain.conditions.FACTS`), and the kind of machine."""
NEVER_IN_ID = ("memory", f"{OF_MODEL}title", f"{OF_MODEL}files")
"""What may differ on the same hardware: kernels keep some memory for themselves."""
ID_LENGTH = 8

Facts = Mapping[str, str]


def hardware_of(machine_name: str | None, facts: Facts) -> dict[str, str]:
    """Those of a run's facts (`facts_of`) that are about hardware, and whether it is this machine, a model or a
    guest."""
    kind = (machine_name or "").partition(":")[0] if (machine_name or "").startswith("guest:") else machine_name or ""
    found = {KIND: kind} | {name: facts[name] for name in OF_HARDWARE if name in facts}
    return found | {name: value for name, value in facts.items() if name.startswith(OF_MODEL)}


def hardware_id(hardware: Facts) -> str:
    """The same for runs on the same hardware."""
    named = sorted((name, value) for name, value in hardware.items() if name not in NEVER_IN_ID)
    return blake2b(repr(named).encode(), digest_size=ID_LENGTH // 2).hexdigest()


def in_words(hardware: Facts) -> str:
    """`host storage1, AMD EPYC, 2 CPUs, Samsung 980`: enough to distinguish two."""
    kind = " ".join(part for part in (hardware.get(KIND, ""), hardware.get("machine", "")) if part)
    cpus = counted(int(hardware["CPUs"]), "CPU") if "CPUs" in hardware else ""
    parts = (kind, hardware.get("CPU", ""), cpus, hardware.get("device model", ""))
    return ", ".join(part for part in parts if part) or "unknown"


def unlike(ours: Facts, theirs: Facts) -> list[tuple[str, str, str]]:
    """In what two pieces of hardware differ, of what is known of both: what, and both values."""
    known = [name for name in ours if name in theirs and name not in NEVER_IN_ID[1:]]
    return differences({name: ours[name] for name in known}, {name: theirs[name] for name in known})
