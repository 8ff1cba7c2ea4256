"""The probe `nvme`: log pages as drives answer them, and what a phase's metrics make of them."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from iolab.domain.observation import Observation
from iolab.domain.phase_record import NvmeObservation
from iolab.domain.probe import PROBES
from iolab.machines.host.nvme import Drives
from iolab.machines.host.site import Site
from iolab.machines.system import nvme_log
from iolab.machines.system.block import BlockDevice
from iolab.machines.system.facts import FactAbsent
from iolab.machines.system.nvme_log import CLOUD_GUID, DriveCounters, decoded


def health(units: int, kelvin: int) -> bytes:
    page = bytearray(512)
    page[1:3] = kelvin.to_bytes(2, "little")
    page[48:64] = units.to_bytes(16, "little")
    return bytes(page)


def cloud(programmed: int, guid: bytes = CLOUD_GUID) -> bytes:
    page = bytearray(512)
    page[0:16] = programmed.to_bytes(16, "little")
    page[496:512] = guid
    return bytes(page)


def test_pages_are_read_at_their_bytes() -> None:
    assert decoded(health(3, 311), cloud(2_000_000)) == DriveCounters(1_536_000, 2_000_000, 38)
    assert decoded(health(2**70, 300), b"") == DriveCounters(2**70 * 512_000, None, 27)


def test_another_maker_has_something_else_in_the_second_page() -> None:
    assert decoded(health(3, 311), cloud(2_000_000, bytes(16))).media_bytes_written is None


def test_a_command_is_the_72_bytes_that_its_number_says() -> None:
    assert nvme_log.COMMAND.size == nvme_log.ADMIN_COMMAND >> 16 & 0x3FFF == 72


def site(tmp_path: Path, *names: str) -> Site:
    places = [SimpleNamespace(device=BlockDevice((259, at), tmp_path / name)) for at, name in enumerate(names)]
    for name in names:
        (tmp_path / name).mkdir()
    return cast(Site, SimpleNamespace(places=places))


def observed(tmp_path: Path, *answers: DriveCounters) -> NvmeObservation:
    left = list(answers)
    return Drives({}, site(tmp_path, "nvme0n1"), lambda node: left.pop(0)).stop()


def metric(name: str, found: NvmeObservation) -> float | None:
    one = next(one for one in PROBES["nvme"].metrics if one.name == name)
    return one.of(cast(Observation, SimpleNamespace(probes={"nvme": found})))


def test_what_was_programmed_over_what_the_host_wrote(tmp_path: Path) -> None:
    before = DriveCounters(10**9, 3 * 10**9, 40)
    found = observed(tmp_path, before, DriveCounters(10**9 + 512_000_000, 3 * 10**9 + 1_280_000_000, 55))
    assert found == {
        "drives": {"nvme0n1": {"host_bytes_written": 512_000_000, "media_bytes_written": 1_280_000_000, "celsius": 55}}
    }
    assert metric("drive_write_amplification", found) == 2.5
    assert metric("drive_media_bytes", found) == 1.28e9
    assert metric("drive_celsius", found) == 55


def test_too_few_units_and_a_drive_that_does_not_say_have_no_amplification(tmp_path: Path) -> None:
    few = observed(tmp_path, DriveCounters(0, 0, 40), DriveCounters(49 * 512_000, 10**8, 40))
    assert metric("drive_write_amplification", few) is None
    silent: NvmeObservation = {"drives": {"nvme0n1": {"host_bytes_written": 10**9, "celsius": 40}}}
    assert metric("drive_write_amplification", silent) is None
    assert metric("drive_host_bytes", silent) == 10**9


def test_no_nvme_drive_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(FactAbsent, match="lies on no NVMe drive"):
        Drives({}, site(tmp_path, "sda"))


def test_a_drive_that_cannot_be_asked_is_named(tmp_path: Path) -> None:
    def ask(node: Path) -> DriveCounters:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(FactAbsent, match="cannot ask /dev/nvme0n1: Permission denied; run as root"):
        Drives({}, site(tmp_path, "nvme0n1"), ask)
