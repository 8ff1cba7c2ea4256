"""What tells a device from another, without devices."""

import os
from pathlib import Path
from typing import Any

import pytest
from iolab.base.errors import InputError, MachineError
from iolab.domain.trial import DeviceIdentity
from iolab.machines.system import blankness, device_identity
from iolab.machines.system.block import BlockDevice

SIZE_BYTES = 512 << 20
KNOWN = DeviceIdentity(
    path="/dev/x",
    name="x",
    number=(7, 0),
    sequence=9,
    boot_id="boot",
    size_bytes=SIZE_BYTES,
    start_bytes=None,
    serial="S1",
    signatures=[("ext4", "u1")],
)


@pytest.mark.parametrize(
    ("known", "now", "says"),
    [
        ({}, {}, None),
        ({}, {"size_bytes": 1}, "it has 1 bytes"),
        ({}, {"sequence": 10}, "another was attached as x since"),
        ({}, {"number": (7, 1), "name": "y"}, "leads to y, and led to x"),
        ({}, {"serial": "S2"}, "serial number is S2, and was S1"),
        ({}, {"start_bytes": 512}, "begins elsewhere"),
        ({}, {"boot_id": "next", "sequence": 3, "number": (8, 0)}, None),
        ({}, {"boot_id": "next", "serial": "S2"}, "serial number"),
        ({"serial": None}, {"boot_id": "next", "serial": None}, "no serial number to be recognised by"),
        ({"serial": None, "sequence": None}, {"serial": None, "sequence": None}, None),
    ],
)
def test_a_device_is_told_from_another(
    monkeypatch: pytest.MonkeyPatch, known: dict[str, Any], now: dict[str, Any], says: str | None
) -> None:
    monkeypatch.setattr(device_identity, "of", lambda *_: KNOWN.model_copy(update=now))
    device, then = BlockDevice((7, 0), Path("/sys/block/x")), KNOWN.model_copy(update=known)
    if says is None:
        device_identity.check_same(device, Path("/dev/x"), then)
        return
    with pytest.raises(InputError, match=f"/dev/x: .*{says}"):
        device_identity.check_same(device, Path("/dev/x"), then)


def test_signatures_may_go_but_not_come() -> None:
    device_identity.check_signatures([], Path("/dev/x"), KNOWN)
    device_identity.check_signatures([("ext4", "u1")], Path("/dev/x"), KNOWN)
    with pytest.raises(InputError, match="ext4 signature u2"):
        device_identity.check_signatures([("ext4", "u2")], Path("/dev/x"), KNOWN)


@pytest.mark.parametrize(
    ("offset", "data", "what"),
    [
        (0, b"x", None),
        (512, b"EFI PART", "a GUID partition table"),
        (4096, b"EFI PART", "a GUID partition table"),
        (SIZE_BYTES - 512, b"EFI PART", "a GUID partition table"),
        (SIZE_BYTES - 1, b"x", None),
        (SIZE_BYTES // 4, b"XFSB", "a superblock of xfs"),
        (64 << 20, b"_BHRfS_M", "a superblock of btrfs"),
        (8193 * 1024 + 56, b"\x53\xef", "a superblock of ext2, ext3 or ext4"),
        (32768 * 4096 + 56, b"\x53\xef", "a superblock of ext2, ext3 or ext4"),
        (SIZE_BYTES // 128 * 77, b"x", None),
    ],
)
def test_data_is_found_and_named(tmp_path: Path, offset: int, data: bytes, what: str | None) -> None:
    with (tmp_path / "image").open("w+b") as image:
        image.truncate(SIZE_BYTES)
        assert blankness.first_data(image.fileno(), SIZE_BYTES, "x") is None
        os.pwrite(image.fileno(), data, offset)
        assert blankness.first_data(image.fileno(), SIZE_BYTES, "x") == blankness.NonzeroByte(offset, what)


@pytest.mark.parametrize("size_bytes", [0, 512, 5000, 1 << 20, 3 << 20])
def test_small_devices_are_read_whole(tmp_path: Path, size_bytes: int) -> None:
    with (tmp_path / "image").open("w+b") as image:
        image.truncate(size_bytes)
        assert blankness.first_data(image.fileno(), size_bytes, "x") is None
        for offset in {0, size_bytes // 2, size_bytes - 1} if 0 < size_bytes <= 1 << 20 else ():
            os.pwrite(image.fileno(), b"x", offset)
            assert blankness.first_data(image.fileno(), size_bytes, "x") == blankness.NonzeroByte(offset, None)
            os.pwrite(image.fileno(), b"\0", offset)


def test_what_reads_too_slowly_or_not_at_all_is_not_taken_for_blank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "image").open("w+b") as image:
        image.truncate(SIZE_BYTES)
        monkeypatch.setattr(blankness, "TIME_LIMIT_S", -1.0)
        with pytest.raises(MachineError, match="too slowly"):
            blankness.first_data(image.fileno(), SIZE_BYTES, "x")
    monkeypatch.undo()
    unreadable = os.open(tmp_path / "image", os.O_WRONLY)
    try:
        with pytest.raises(InputError, match="cannot read byte 0"):
            blankness.first_data(unreadable, SIZE_BYTES, "x")
    finally:
        os.close(unreadable)
