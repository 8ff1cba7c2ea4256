"""Which device it is that a name leads to: names are given anew, and links moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from iolab.base.errors import InputError
from iolab.base.quantity import size_in_words
from iolab.domain.trial import DeviceIdentity
from iolab.machines.system import state
from iolab.machines.system.block import BlockDevice, device_at

SERIALS = ("serial", "wwid", "device/serial", "device/wwid", "dm/uuid", "md/uuid")
"""The files in sysfs that identify a disk; the first that exists counts."""


def of(device: BlockDevice, path: Path, signatures: Sequence[tuple[str, str | None]] = ()) -> DeviceIdentity:
    """What the device is known by from now on.

    Args:
        path: as the user named it.
        signatures: type and UUID of each that is on it.
    """
    disk = device.disk.directory
    start = _text(device.directory / "start") if device.is_partition else None
    sequence = _text(disk / "diskseq")
    return DeviceIdentity(
        path=str(path),
        name=device.name,
        number=device.number,
        sequence=None if sequence is None else int(sequence),
        boot_id=state.boot_id(),
        size_bytes=device.size_bytes,
        start_bytes=None if start is None else 512 * int(start),
        serial=next(filter(None, (_text(disk / name) for name in SERIALS)), None),
        signatures=list(signatures),
    )


def check_same(device: BlockDevice, path: Path, known: DeviceIdentity) -> None:
    """Raises InputError if the device is not, or may not be, the one that was written to before."""
    if differences := list(_differences(known, of(device, path))):
        raise InputError(
            f"not written to: it is not the device that this run began with: {'; '.join(differences)}",
            where=str(path),
            remedy="bring back the device that it was, or start a new run",
        )


def check_node(node: Path, known: DeviceIdentity | None) -> None:
    """The same of a node that nobody holds open; nothing to check if nothing is known."""
    if known is not None:
        check_same(device_at(node), Path(known.path), known)


def check_signatures(found: Sequence[tuple[str, str | None]], path: Path, known: DeviceIdentity) -> None:
    """Raises InputError if there is one that was not on the device when it was taken: somebody's, made since."""
    if new := [one for one in found if one not in known.signatures]:
        named = ", ".join(f"{kind} signature" + (f" {uuid}" if uuid else "") for kind, uuid in new)
        raise InputError(
            f"not written to: somebody made something on it since this run began ({named})",
            where=str(path),
            remedy=f"if nobody needs it, wipe it (wipefs --all {path}), else start a new run elsewhere",
        )


def _differences(known: DeviceIdentity, now: DeviceIdentity) -> Iterator[str]:
    if now.size_bytes != known.size_bytes:
        yield f"it has {size_in_words(now.size_bytes)}, and had {size_in_words(known.size_bytes)}"
    if now.start_bytes != known.start_bytes:
        yield "the partition begins elsewhere"
    if now.serial != known.serial:
        yield f"its serial number is {now.serial}, and was {known.serial}"
    if now.boot_id != known.boot_id:
        # Numbers are given anew at each boot; without a serial number nothing distinguishes two devices of a size.
        if known.serial is None:
            yield "the machine was rebooted, and the device has no serial number to be recognised by"
    elif now.number != known.number:
        yield f"the name leads to {now.name}, and led to {known.name}"
    elif now.sequence != known.sequence:
        yield f"another was attached as {now.name} since"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None
