"""Machine files: found, read with their devices, changed by settings; each key known by its line."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from iolab.base import data
from iolab.base.errors import InputError
from iolab.base.toml import parse
from iolab.domain.simulated_machine import InvalidMachine, check
from iolab.files import machine_file
from iolab.files.machine_file import Change, InvalidChange, MachineFile
from support.machines import MACHINE, QUICK, line_of, write_machine


@pytest.fixture
def small(here: Path) -> MachineFile:
    write_machine(here)
    return machine_file.read("model:small.toml", Path())


def changed(machine: MachineFile, changes: dict[str, Any]) -> dict[str, Any]:
    listed = [Change(tuple(key.split(".")), value, ("settings", "s", key)) for key, value in changes.items()]
    return machine_file.changed(machine, listed).table


def test_elements_of_arrays_have_lines_of_their_own() -> None:
    document = parse("[[a]]\nx = 1\n[[a]]\nx = [\n  { y = 1 },\n  { y = [2,\n 3] },\n]\n[a.b]\n[[a.b.c]]\nz = 1\n", "f")
    keys = ("a.0.x", "a.1", "a.1.x.0.y", "a.1.x.1.y.1", "a.1.b.c.0.z", "a.x", "a.b")
    assert [document.line(key.split(".")) for key in keys] == [2, 3, 5, 7, 11, 2, 9]


def test_a_table_stands_at_its_own_header() -> None:
    document = parse("[a.b]\nx = 1\n[a]\ny = 2\n[c.d]\n", "f")
    assert [document.line(key.split(".")) for key in ("a.b", "a", "a.y", "c")] == [1, 3, 4, 5]


def test_a_device_stands_in_the_place_of_its_name(small: MachineFile) -> None:
    assert small.drives == 2
    assert small.table["drives"][0]["device"]["latency_ns"] == 100_000
    assert set(small.copies) == {"machines%2Fsmall.toml", "machines%2Fdevices%2Fquick.toml"}
    assert small.copies["machines%2Fsmall.toml"] == MACHINE


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("kernel", f"small.toml:{line_of(MACHINE, 'kernel')}"),
        ("cpus.jitter", f"small.toml:{line_of(MACHINE, 'jitter')}"),
        ("drives.0.device", f"small.toml:{line_of(MACHINE, 'device')}"),
        ("drives.0.device.latency_ns", f"devices/quick.toml:{line_of(QUICK, 'latency_ns')}"),
        ("drives.1.device.latency_ns", f"small.toml:{line_of(MACHINE, 'device = {')}"),
        ("drives.1.scheduler.name", f"small.toml:{len(MACHINE.splitlines())}"),
    ],
)
def test_every_key_of_the_whole_has_a_file_and_a_line(small: MachineFile, key: str, where: str) -> None:
    assert small.where(tuple(key.split("."))) == where


EQUAL = f"""\
{MACHINE}
[[drives]]
count = 3
device = "quick"
interrupt_cpus = [4, 0]
scheduler = {{ name = "noop" }}
"""


def test_equal_drives_are_written_once_and_lists_dealt_out(here: Path) -> None:
    write_machine(here, EQUAL)
    machine = machine_file.read("model:small.toml", Path())
    assert machine.drives == 5
    assert [drive.get("interrupt_cpu") for drive in machine.table["drives"]] == [None, None, 4, 0, 4]
    assert all("count" not in drive and "interrupt_cpus" not in drive for drive in machine.table["drives"])
    for key, line in (
        ("drives.4.scheduler.name", line_of(EQUAL, "interrupt_cpus") + 1),
        ("drives.3.interrupt_cpu", line_of(EQUAL, "interrupt_cpus")),
        ("drives.3.queue", line_of(EQUAL, "count = 3") - 1),
        ("drives.1.scheduler", len(MACHINE.splitlines())),
    ):
        assert machine.where(tuple(key.split("."))) == f"small.toml:{line}", key
    assert machine.where(("drives", "4", "device", "latency_ns")).startswith("devices/quick.toml:")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("count = 3", "count = 0", "drives.2.count: expected 1 to 1024, found 0"),
        ("count = 3", "count = 100000000", "drives.2.count: expected 1 to 1024"),
        ("count = 3", 'count = "3"', "drives.2.count: expected 1 to 1024"),
        ("interrupt_cpus = [4, 0]", "interrupt_cpus = []", "drives.2.interrupt_cpus: expected a list"),
        ("interrupt_cpus = [4, 0]", "interrupt_cpus = 4", "drives.2.interrupt_cpus: expected a list"),
        ('device = "quick"\ninterrupt', 'device = "quik"\ninterrupt', "drives.2.device: .*did you mean quick"),
    ],
)
def test_equal_drives_that_cannot_be_are_told_on_the_line(here: Path, before: str, after: str, said: str) -> None:
    text = EQUAL.replace(before, after)
    write_machine(here, text)
    with pytest.raises(InputError, match=rf"^small.toml:{line_of(text, after.partition(chr(10))[0])}: {said}"):
        machine_file.read("model:small.toml", Path())


def test_the_copies_of_a_run_are_read_before_anything_else(small: MachineFile, tmp_path: Path) -> None:
    kept = tmp_path / "files"
    kept.mkdir()
    for name, text in small.copies.items():
        (kept / name).write_text(text)
    write_machine(tmp_path, MACHINE.replace("2.6.35", "6.1"), QUICK.replace("100000", "1"))
    assert machine_file.read("model:small.toml", Path(), copies=kept).table == small.table


def test_keys_are_changed_added_and_taken_away(small: MachineFile) -> None:
    table = changed(
        small,
        {
            "cpus.count": 1,
            "drives.0.queue.nr_requests": 8,
            "drives.0.filesystem": None,
            "drives.1.device": "quick",
            "drives.1.device.latency_ns": 1,
        },
    )
    assert table["cpus"]["count"] == 1
    assert table["drives"][0]["queue"] == {"nr_requests": 8}
    assert "filesystem" not in table["drives"][0]
    assert (table["drives"][1]["device"]["latency_ns"], table["drives"][1]["device"]["queue_depth"]) == (1, 4)
    assert small.table["cpus"]["count"] == 2


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("drives.2.device", "quick", "expected a number from 0 to 1 in place of 2"),
        ("drives.x.device", "quick", "in place of x"),
        ("kernel.name", "6.1", "kernel is a value, it has no keys"),
        ("drives.0.device", "quik", "did you mean quick?"),
        ("cpus.jitter", float("inf"), "expected a finite number"),
    ],
)
def test_a_key_that_leads_nowhere_is_told_with_the_change(
    small: MachineFile, key: str, value: object, what: str
) -> None:
    with pytest.raises(InvalidChange, match=re.escape(what)) as raised:
        changed(small, {"cpus.count": 1, key: value})
    assert raised.value.change.given_at == ("settings", "s", key)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"quick"', '"quik"', "small.toml:16: drives.0.device: .*did you mean quick"),
        ("67108864", "inf", "small.toml:13: memory.bytes: inf given; expected a finite number"),
        ("67108864", "1979-05-27", "small.toml:13: memory.bytes: 1979-05-27 given"),
        ("[[drives]]", "[[disks]]", "small.toml:1: drives: expected at least one"),
        ("[cpus]", "[cpus", "small.toml:4:6: not valid TOML"),
    ],
)
def test_a_machine_that_cannot_be_read_is_told_on_its_line(here: Path, before: str, after: str, said: str) -> None:
    write_machine(here, MACHINE.replace(before, after))
    with pytest.raises(InputError, match=said):
        machine_file.read("model:small.toml", Path())


def test_a_device_file_that_is_no_toml_is_told_on_its_line(here: Path) -> None:
    write_machine(here, device="kind = null")
    with pytest.raises(InputError, match=r"^devices/quick.toml:1:8: not valid TOML"):
        machine_file.read("model:small.toml", Path())


LIKE = """\
kind = "array"
# As the quick one.
like = "quick"
queue_depth = 2
[disk]
like = "inner"
cache.segments = 4
"""
INNER = 'kind = "disk"\nsurfaces = 6\n[cache]\nsegments = 10\nwrite_back = false\n'


def test_a_device_that_is_like_another_has_its_keys_but_those_that_it_gives_itself(here: Path) -> None:
    write_machine(here, MACHINE.replace('"quick"', '"slow"'))
    (here / "devices" / "slow.toml").write_text(LIKE)
    (here / "devices" / "inner.toml").write_text(INNER)
    machine = machine_file.read("model:small.toml", Path())
    disk = {"surfaces": 6, "cache": {"segments": 4, "write_back": False}}
    own = {"kind": "array", "queue_depth": 2, "disk": disk}
    assert machine.table["drives"][0]["device"] == parse(QUICK, "quick").values | own
    assert {name.removeprefix("machines%2Fdevices%2F") for name in machine.copies} == {
        "machines%2Fsmall.toml",
        *("slow.toml", "quick.toml", "inner.toml"),
    }, "a run keeps all that the machine was read from"
    for key, line in (("queue_depth", 4), ("latency_ns", 3), ("disk.surfaces", 6), ("disk.cache.segments", 7)):
        assert machine.where(("drives", "0", "device", *key.split("."))) == f"devices/slow.toml:{line}"


def test_a_machine_that_is_like_another_has_its_tables_but_what_it_gives_itself(here: Path) -> None:
    write_machine(here)
    (here / "larger.toml").write_text('like = "small.toml"\n[cpus]\ncount = 4\n[[drives]]\ndevice = "quick"\n')
    small, larger = (machine_file.read(f"model:{name}.toml", Path()) for name in ("small", "larger"))
    assert larger.table["cpus"] == {**small.table["cpus"], "count": 4}
    assert larger.table["kernel"] == small.table["kernel"] and larger.table["drives"] == [
        {"device": parse(QUICK, "quick").values}
    ]
    assert larger.where(("cpus", "jitter")) == "larger.toml:1" and larger.where(("cpus", "count")) == "larger.toml:3"
    assert set(larger.copies) == {"machines%2Flarger.toml", "machines%2Fsmall.toml", "machines%2Fdevices%2Fquick.toml"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('like = "slow"\n', r"^devices/slow.toml: like: it is like itself"),
        ('kind = "null"\nlike = "quik"\n', r'^devices/slow.toml:2: like: "quik": unknown device; did you mean quick'),
        ("like = 3\n", r"^devices/slow.toml:1: like: expected a name"),
    ],
)
def test_what_a_device_is_like_must_be_another(here: Path, text: str, said: str) -> None:
    write_machine(here, MACHINE.replace('"quick"', '"slow"'))
    (here / "devices" / "slow.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        machine_file.read("model:small.toml", Path())


@pytest.mark.parametrize("name", machine_file.devices())
def test_every_device_names_its_source_and_can_be_built(name: str) -> None:
    assert "# source = " in machine_file.devices()[name]
    one_disk = machine_file.read("model:one_disk", Path())
    check({**one_disk.table, "drives": [{"device": one_disk.device(name).values}]})  # type: ignore[typeddict-item]


def test_unknown_machines_are_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean one_disk"):
        machine_file.read("model:one_disc", Path())
    with pytest.raises(InputError, match=r"absent.toml: cannot read it: No such file"):
        machine_file.read("model:absent.toml", Path())


@pytest.mark.parametrize("name", machine_file.names())
def test_the_machines_that_come_with_iolab_can_be_read(name: str) -> None:
    machine = machine_file.read(f"model:{name}", Path())
    assert machine.table["title"]
    assert all(isinstance(drive["device"], dict) for drive in machine.table["drives"])
    assert (data.MACHINES / f"{name}.toml").read_text() in machine.copies.values()


def test_all_missing_keys_are_reported_at_once() -> None:
    text = 'kernel = "6.1"\n[cpus]\ncount = 2\njitter = 0.0\n[[drives]]\ndevice = { kind = "null", latency_ns = 1 }\n'
    with pytest.raises(InvalidMachine) as caught:
        check(tomllib.loads(text))  # type: ignore[arg-type]
    assert str(caught.value) == (
        "cpus: missing fields `time_slice_ns`, `call_ns`, `completion_ns`, `page_copy_ns`; "
        "drives.0.device lacks `capacity_bytes`, `queue_depth`"
    )
    with pytest.raises(InvalidMachine, match=r"^missing field `cpus`; drives\.0\.device lacks `capacity_bytes`"):
        check(tomllib.loads(text.partition("[cpus]")[0] + text[text.index("[[drives]]") :]))  # type: ignore[arg-type]
