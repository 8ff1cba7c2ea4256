"""What may be written: nothing that anybody uses, nothing that holds data, unless the one explicit flag allows it.

`destroy` lifts the rule about data (signatures, partition tables, whatever is not zero). Nothing lifts the rule about
use: a device that is mounted, held, swapped to, or backs a loop device is refused always.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iolab.base.errors import InputError, MachineError
from iolab.base.quantity import size_in_words
from iolab.domain.trial import DeviceIdentity, DeviceTarget
from iolab.machines.system import blankness, block, command, device_identity, loop, rights
from iolab.machines.system.block import BlockDevice, device_at
from iolab.machines.system.mounts import mounts

SWAPS = Path("/proc/swaps")


def claim_device(node: Path, *, destroy: bool, named: Path | None = None, known: DeviceIdentity | None = None) -> int:
    """Checks that the device may be overwritten and takes it exclusively, so that nobody can mount it meanwhile.

    Returns a file descriptor that holds the claim until it is closed.

    Args:
        node: the device's own; later writes go to this one, wherever a link then leads.
        named: what messages call it, None: as the node.
        known: the device that the run wrote to before. It has to be this one, with nothing made on it since; what the
            run itself left on it is no reason to refuse it.

    Raises:
        InputError: it must not be written; names each reason.
        MachineError: no permission.
    """
    path = named or node
    device = device_at(node)
    uses = list(_uses(device))
    if uses:
        raise InputError(
            f"not written to: {'; '.join(uses)}", where=str(path), remedy="name a device that nothing uses"
        )
    if device.is_written_in_sequence:
        raise InputError(
            "not written to: its zones take writes in sequence only (host-managed), and iolab writes anywhere",
            where=str(path),
            remedy="name a device without zones, or a directory of a filesystem on this one (btrfs, XFS); a guest "
            "machine writes such zones (docs/zones.md)",
        )
    fd = _open_exclusively(node, path)
    try:
        if block.number_of(os.fstat(fd).st_rdev) != device.number:
            raise InputError("not written to: the name leads to another device by now", where=str(path))
        if known is not None:
            device_identity.check_same(device, path, known)
            device_identity.check_signatures(known_by(node), path, known)
        elif not destroy:
            _refuse_data(device, node, fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def admit(target: DeviceTarget) -> list[DeviceIdentity]:
    """Checks that each of the target's devices may be overwritten. Returns what they are known by from now on; where
    they are known already, they have to be the same.

    Raises:
        InputError, MachineError: as `claim_device`.
    """
    return [_admitted(Path(path), target, known) for path, known in target.with_identities]


def _admitted(path: Path, target: DeviceTarget, known: DeviceIdentity | None) -> DeviceIdentity:
    node = path.resolve()
    fd = claim_device(node, destroy=target.destroy, named=path, known=known)
    try:
        on_it = known_by(node) if known is None else known.signatures
        return device_identity.of(device_at(node), path, on_it)
    finally:
        os.close(fd)


def check_file_writable(path: Path, status: os.stat_result) -> None:
    """A file with data, and a file that the kernel uses, are not overwritten.

    Args:
        status: of the file that will be written to, whatever the path leads to later.

    Raises:
        InputError: states why not.
    """
    users = [f"it backs {device.node}" for device in loop.backed_by_file(status)]
    if str(path.resolve()) in _swaps():
        users.append("it is swap space")
    if users:
        raise InputError(f"not written to: {'; '.join(users)}", where=str(path), remedy="name another file")
    if status.st_size > 0:
        raise InputError(
            f"the workload writes, and this file holds {size_in_words(status.st_size)} that iolab did not write",
            where=str(path),
            remedy="name a file that does not exist yet (iolab makes and removes it), or only read",
        )


def _uses(device: BlockDevice) -> Iterator[str]:
    """Each way in which the device, or a partition on it, is in use: one phrase."""
    if device.size_bytes == 0:
        yield "it has no size (nothing attached)"
    if device.read_only:
        yield "it is read-only"
    for part in (device, *device.partitions):
        name = "it" if part is device else f"its partition {part.name}"
        for mount_point in _mounted_at(part):
            yield (
                f"{name} is the disk of /, the root filesystem"
                if mount_point == "/"
                else (f"{name} is mounted at {mount_point}")
            )
        if part.number in map(_number_of_node, _swaps()):
            yield f"{name} is swap space in use"
        for holder in part.holders:
            under_root = ", the disk of / (the root filesystem)" if _holds_root(holder) else ""
            yield f"{name} is held by {holder}{under_root}"
        for user in loop.backed_by_device(part.number):
            yield f"{name} backs {user.node}"


def _holds_root(name: str) -> bool:
    """Whether / lies on the stacked device, or on one that is stacked on it."""
    directory = block.SYS / "block" / name
    if not directory.exists():
        return False
    device = block.device_in(directory.resolve())
    return any("/" in _mounted_at(part) or any(map(_holds_root, part.holders)) for part in (device, *device.partitions))


def _mounted_at(device: BlockDevice) -> list[str]:
    """By number, and by the source's number for filesystems that show a number of their own (btrfs)."""
    found = [
        mount.mount_point
        for mount in mounts()
        if mount.number == device.number or _number_of_node(mount.source) == device.number
    ]
    return list(dict.fromkeys(found))


def _open_exclusively(node: Path, path: Path) -> int:
    """O_EXCL on a block device fails while a filesystem, dm, md, swap or another claim has it, in any mount namespace;
    also on a disk while one of its partitions is claimed."""
    try:
        fd = os.open(node, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    except PermissionError as error:
        raise MachineError("no permission to write to it", where=str(path), remedy=rights.AS_ROOT) from error
    except OSError as error:
        if error.errno == errno.EBUSY:
            what = "not written to: the kernel holds it exclusively (a filesystem, dm, md, swap or another program)"
            raise InputError(what, where=str(path), remedy="name a device that nothing uses") from error
        raise MachineError(f"cannot open it: {error.strerror}", where=str(path)) from error
    return fd


def _refuse_data(device: BlockDevice, node: Path, fd: int, path: Path) -> None:
    found = [f"partition {part.name}" for part in device.partitions]
    found += [f"{signature.type} signature" for signature in signatures(node)]
    if not found and (data := blankness.first_data(fd, device.size_bytes, str(path))) is not None:
        found = [f"{data}; it may be what an earlier run wrote"]
    if found:
        raise InputError(
            f"not written to: it carries data ({', '.join(found)})",
            where=str(path),
            remedy="to lose what is on it, set destroy = true in [target]",
        )


@dataclass(frozen=True)
class Signature:
    """A mark by which libblkid recognises what a device holds: a filesystem, a partition table, an array's member."""

    type: str
    uuid: str | None


def signatures(path: Path) -> list[Signature]:
    """Filesystem, RAID, swap and partition-table signatures that libblkid recognises, as `wipefs --no-act` finds them.

    Raises:
        MachineError: wipefs is missing or cannot read the device.
    """
    printed = command.run(["wipefs", "--no-act", "--json", str(path)], package="util-linux", where=str(path))
    if not printed.strip():
        return []
    return [Signature(entry["type"], entry.get("uuid")) for entry in json.loads(printed)["signatures"]]


def known_by(node: Path) -> list[tuple[str, str | None]]:
    """Type and UUID of each signature, each once. Raises as `signatures`."""
    return list(dict.fromkeys((found.type, found.uuid) for found in signatures(node)))


def _swaps() -> list[str]:
    try:
        lines = SWAPS.read_text().splitlines()[1:]
    except OSError:
        return []
    return [line.split()[0].replace("\\040", " ") for line in lines]


def _number_of_node(path: str) -> tuple[int, int] | None:
    if not path.startswith("/"):
        return None
    try:
        number = Path(path).stat().st_rdev
    except OSError:
        return None
    return (os.major(number), os.minor(number)) if number else None
