"""The kind aio-stream: one application per device."""

from typing import Any

import pytest
from iolab.domain.trial import LoadPhase
from iolab.domain.workload import KINDS

KIND = KINDS["aio-stream"]


def phases(devices: int = 1, **options: Any) -> list[LoadPhase]:
    accepted = KIND.options.model_validate(options)
    assert not list(KIND.conflicts(accepted))
    made = KIND.phases(accepted, 1, devices)
    return [phase for phase in made if isinstance(phase, LoadPhase)]


def test_each_device_has_an_application_with_a_thread_of_its_own() -> None:
    *layouts, main = phases(devices=3, cpus=[1, 0])
    assert [(phase.name, phase.measured) for phase in layouts] == [(f"layout device.{n}", False) for n in range(3)]
    assert [file.get("place", 0) for file in main.load["files"]] == [0, 1, 2]
    groups = main.load["groups"]
    assert [group["cpus"] for group in groups] == [[1], [0], [1]]
    assert [(group["name"], group["direct"], len(group["jobs"])) for group in groups] == [
        (f"device.{n}", True, 1) for n in range(3)
    ]


def test_by_default_128_reads_of_256_kib_are_in_flight() -> None:
    (group,) = phases()[-1].load["groups"]
    (job,) = group["jobs"]
    assert (job["queue_depth"], job["blocks"], job["read_share"]) == (128, [{"bytes": 256 * 1024, "weight": 1.0}], 1.0)
    assert job["pattern"] == {"kind": "sequential"}


def test_a_window_is_gone_round_in_small_blocks() -> None:
    layout, main = phases(window="2MiB")
    (job,) = main.load["groups"][0]["jobs"]
    assert (job["length_bytes"], job["blocks"][0]["bytes"]) == (2 * 2**20, 4096)
    assert job["until"] == {"ops": None, "bytes": None, "duration_ns": 10 * 10**9}
    assert layout.load["files"][0]["size_bytes"] == 2 * 2**20


def test_writers_lay_nothing_out() -> None:
    (main,) = phases(operation="write")
    assert main.offered == ("write",)


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"window": 1000}, "window"),
        ({"window": "64KiB", "block_size": "128KiB"}, "block_size"),
        ({"block_size": 1000}, "block_size"),
        ({"cpus": []}, "cpus"),
    ],
)
def test_what_makes_no_sense_is_named(options: dict[str, Any], key: str) -> None:
    assert [conflict.key for conflict in KIND.conflicts(KIND.options.model_validate(options))] == [(key,)]
