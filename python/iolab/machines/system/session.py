"""Under what a session of a run measures: this iolab, this boot, this machine. Compared before a run goes on."""

from __future__ import annotations

import os
from pathlib import Path


def boot_id() -> str:
    """The kernel's name for this boot; empty if it shows none."""
    return _read("/proc/sys/kernel/random/boot_id")


def fingerprint() -> dict[str, str]:
    """What must be the same for trials to be comparable. A reboot of the same kernel changes nothing here."""
    system = os.uname()
    return {
        "kernel": f"{system.release} {system.version}",
        "architecture": system.machine,
        "cpu": _cpu_model(),
        "cpus": str(os.cpu_count()),
    }


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """How this machine differs from the one before, a phrase each."""
    names = dict.fromkeys([*before, *now])
    return [
        f"{name} was {before.get(name)} and is {now.get(name)}" for name in names if before.get(name) != now.get(name)
    ]


def _cpu_model() -> str:
    lines = _read("/proc/cpuinfo").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
