"""Each number of a machine's file has the range that the schema gives; a value outside is refused with both."""

import json
from collections.abc import Iterator
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from iolab import _native
from iolab.domain import simulated_machine
from iolab.domain.simulated_machine import InvalidMachine
from iolab.files import machine_file
from iolab.files.machine_file.keys import ELEMENT, Key, keys, read_when

MACHINES = Path(__file__).parents[1] / "machines"
IN_NO_MACHINE: dict[str, Any] = {
    "coalesce": {"completions": 8, "time_ns": 100_000},
    "timer_interrupts": {"first_ns": 1},
    "start": {"lead_ns": 1},
    "cgroups": [{"name": "a", "weight": 100}],
    "io_max": {"read": 1},
    "io_cost": {"model": {"rbps": 1}, "qos": {"rlat": 1}},
    "offline": [{"cpu": 0, "from_ns": 0, "until_ns": 1}],
    "writeback": {"cycles": {"map": 1}},
    "metadata": {"call_ns": 1},
    "slc": {"blocks_per_plane": 1, "bits_per_cell": 3, "page_program_ns": 1, "idle_ns": 1},
    "skew": {"block_bytes": 4096},
    "zones": [{"bytes": 4096, "weight": 1}],
    "sizes": [{"bytes": 4096, "weight": 1}],
    "placement": {"handles": 2, "isolation": "initially"},
    "thermal": {
        "idle_celsius": 40,
        "millikelvin_per_watt": 10_000,
        "time_constant_ns": 10**9,
        "read_nanojoule": 1,
        "program_nanojoule": 1,
        "erase_nanojoule": 1,
        "throttle_celsius": 80,
        "resume_celsius": 75,
        "throttle_per_mille": 2000,
    },
}
"""Tables that no file in machines/ has."""
LESS = {
    "completion.interrupt_stalled_cycles": "completion.interrupt_cycles",
    "drives.N.device.cache.low_percent": "high_percent",
    "drives.N.device.firmware.collect_only_per_mille": "collect_per_mille",
    "drives.N.filesystem.cycles.commit_locked": "cycles.commit",
    "memory.dirty_background_percent": "dirty_percent",
    "mounts.N.transport.credits": "slots",
    "swap.bytes": "the drive",
}
"""Keys whose most is less than in the schema, by what decides."""
OWN_KEYS = {key.kind for key in keys()}
NUMBERS = [key for key in keys() if key.takes in ("integer", "number") and (key.least, key.most) != (None, None)]


@cache
def machines() -> list[dict[str, Any]]:
    """Those of iolab, and one with each of its devices."""
    one_disk = machine_file.read("model:one_disk", Path())
    devices = [dict(one_disk.device(path.stem).values) for path in sorted((MACHINES / "devices").glob("*.toml"))]
    found = [dict(machine_file.read(f"model:{path.stem}", Path()).table) for path in sorted(MACHINES.glob("*.toml"))]
    return [*found, *({**one_disk.table, "drives": [{"device": device}]} for device in devices)]


def changed(machine: dict[str, Any], key: Key, value: float) -> dict[str, Any] | None:
    """The machine with the value in the first place that the key has there; None: it has no such table."""
    machine = dict(machine)
    at: Any = machine
    for part in key.path[:-1]:
        inner = at[0] if part == ELEMENT else at.get(part, IN_NO_MACHINE.get(part))
        if not inner:
            return None
        # What does not lie on the path is shared with the machine that is changed.
        at[0 if part == ELEMENT else part] = at = copy(inner)
        if part in ("device", "filesystem") and (at["kind"] if at["kind"] in OWN_KEYS else None) != key.kind:
            return None
    if "offline" in key.path and "topology" not in machine["cpus"]:
        return None
    at[0 if key.path[-1] == ELEMENT else key.path[-1]] = value
    return machine


def refusals(key: Key, value: float) -> Iterator[InvalidMachine]:
    """The refusals of the machines that have the key's table. A key that nothing would read there may have any
    value."""
    for machine in machines():
        if (out_of_range := changed(machine, key, value)) is not None:
            try:
                _native.unread_keys(json.dumps(out_of_range), "[]", [])
            except ValueError as error:
                yield InvalidMachine.from_native(error)


def outside(key: Key) -> Iterator[tuple[float, float]]:
    """A value below the range and one above it, each with the end of the range. Above, bytes stay whole sectors."""
    step = 512 if key.unit == "bytes" else 1
    if key.least is not None:
        yield key.least - 1, key.least
    if key.most is not None:
        yield key.most + step, key.most


@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: f"{key.kind or ''}:{key.name}")
def test_a_value_out_of_range_is_refused_by_key_value_and_range(key: Key) -> None:
    name = key.name.replace(f".{ELEMENT}", ".0")
    for value, end in outside(key):
        told = [refusal.what for refusal in refusals(key, value) if refusal.key == name]
        told = [what for what in told if what.endswith(f"found {value:g}") or f"{value:.0f}" in what]
        assert told, f"{name} = {value}: no machine refuses it by that name"
        ends = ("expected 0 to", "from 0 to", "not negative") if end == 0 else (f"{end:.0f}",)
        if key.name not in LESS or value < end:
            assert any(word in what for what in told for word in ends), told


def test_each_number_of_a_machine_is_tried() -> None:
    tried = {key.path for key in NUMBERS}
    for machine in machines():
        for path in numbers(machine):
            assert path in tried or "scheduler" in path or "affinity" in path or path[2:4] == ("device", "disk"), path


def numbers(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from numbers(inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, (*path, ELEMENT))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def test_each_key_but_the_titles_has_a_reader() -> None:
    names = [key.name for key in keys()]
    unread = set(names) - set(read_when(names))
    assert unread == {"title"}


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("memory.bytes", "bytes"),
        ("drives.N.queue.read_ahead_kb", "KiB"),
        ("drives.N.filesystem.cycles.begin", "cycles"),
        ("mounts.N.costs.decode_ns.read", "ns"),
        ("drives.N.device.cache.dirty_ns_max", "ns"),
        ("drives.N.device.interface_bytes_per_s", "bytes/s"),
        ("cpus.count", ""),
    ],
)
def test_a_unit_follows_from_the_name(name: str, unit: str) -> None:
    assert {key.unit for key in keys() if key.name == name} == {unit}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("cylinders = 3750, sectors_per_track = 738", "cylinders = 0, sectors_per_track = 738"),
        ("cylinders = 1, ", "cylinders = 0, "),
    ],
)
def test_a_refusal_points_to_the_line_of_an_element(before: str, after: str, tmp_path: Path) -> None:
    device = (MACHINES / "devices" / "ide_7200_2003.toml").read_text()
    assert before in device
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "wrong.toml").write_text(device.replace(before, after))
    (tmp_path / "machine.toml").write_text(
        'kernel = "2.6.35"\n[cpus]\ncount = 1\ntime_slice_ns = 1\ncall_ns = 1\ncompletion_ns = 1\npage_copy_ns = 1\n'
        'jitter = 0\n[[drives]]\ndevice = "wrong"\n'
    )
    (number,) = (number for number, line in enumerate(device.splitlines(), 1) if before in line)
    machine = machine_file.read("model:machine.toml", tmp_path)
    with pytest.raises(InvalidMachine) as refused:
        simulated_machine.check(machine.table)
    assert machine.where(refused.value.path).endswith(f"devices/wrong.toml:{number}")
