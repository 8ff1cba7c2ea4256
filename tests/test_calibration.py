"""Calibration: cells are split and read, keys fitted, and the answer compared with predictors that have no model."""

import json
import math
import tomllib
from collections.abc import Sequence
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError, MachineError
from iolab.domain.calibration import iocost, null
from iolab.domain.calibration.cell import Cell, factor, split
from iolab.domain.calibration.fit import fit
from iolab.domain.calibration.key import LUN, Key, keys_of, read_by, with_values
from iolab.domain.calibration.search import Values
from iolab.domain.workload.io import IoOptions
from iolab.files import machine_file
from iolab.files.measured import measured
from iolab.machines.system.block import device_at
from iolab.presentation.progress.plain import PlainDisplay
from iolab.studies.calibrate.calibrate import MACHINE as MACHINE_DEFAULT
from iolab.studies.calibrate.calibrate import Limit, device_named, machine_around
from iolab.studies.calibrate.cells_to_measure import READS, WRITES, experiment_text
from iolab.studies.calibrate.device_file import table_text
from iolab.studies.calibrate.measure import measure, place_of
from iolab.studies.calibrate.simulated import DeviceUnderTest
from support.command_line import CommandLine
from typing_extensions import override

DEVICES = Path(__file__).parents[1] / "machines" / "devices"
LIBRARY = Path(__file__).parents[1] / "tools" / "device_library"
SERVICE = Key("service_ns", 1, 10**9, 1000)
SERVERS = Key("servers", 1, 64, 1)
LATENCY = Key("latency_ns", 1, 10**9, 1000)
DEPTHS = (1, 2, 4, 8, 32)


def cell(name: str, iops: float = 1000, **options: object) -> Cell:
    return Cell(name, IoOptions.model_validate({"duration": "1s", **options}), iops)


# -- Cells -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from([0, 50, 100]), st.integers(1, 64)), min_size=1, max_size=40))
def test_a_third_of_the_cells_is_held_back_whatever_their_order(asked: list[tuple[int, int]]) -> None:
    cells = [cell(str(n), read_percent=share, queue_depth=depth) for n, (share, depth) in enumerate(asked)]
    fitted, held = split(cells)
    assert sorted(one.name for one in (*fitted, *held)) == sorted(one.name for one in cells)
    assert len(held) == (len(cells) + 1) // 3
    assert [one.name for one in split(cells[::-1])[1]] == [one.name for one in held]


def test_a_simulated_cell_lasts_as_many_operations_as_asked_within_what_the_device_holds() -> None:
    asked = cell("deep", 50_000, jobs=4, queue_depth=8, file_size="1GiB").asked(10_000, 2**31)
    assert asked.duration == 200_000_000
    assert asked.file_size == 2**29
    shared = cell("shared", 50_000, jobs=4, shared_files=True, file_size="1GiB").asked(10_000, 2**31)
    assert shared.file_size == 2**30


def test_predictors_without_a_model_take_what_was_measured_nearby() -> None:
    fitted = [
        cell("small", 100, queue_depth=1),
        cell("large", 900, queue_depth=1, block_size="64KiB"),
        cell("write", 10, read_percent=0, queue_depth=2),
    ]
    asked = cell("asked", 200, queue_depth=2)
    assert null.nearest(asked, fitted) == 100
    assert null.mean_of_operation(asked, fitted) == pytest.approx(300)
    assert null.nearest(cell("write", 20, read_percent=0), fitted) == 10
    assert factor(100, 200) == factor(200, 100) == 2
    assert factor(0, 200) == math.inf


# -- The fit -----------------------------------------------------------------------------------------------------------


def rates_of(values: Values, cells: Sequence[int] = range(len(DEPTHS))) -> list[float]:
    """Equal servers behind a fixed latency, by depth; the last rate is of a cell that nothing reads."""
    service, latency = values["service_ns"], values["latency_ns"]
    depths = [DEPTHS[number] for number in cells]
    return [1e9 * min(depth / (service + latency), values["servers"] / service) for depth in depths]


@pytest.mark.parametrize(
    ("service", "latency", "servers"),
    [(31_728, 14_535, 1), (34_764, 11_499, 1), (35_683, 8523, 8), (140_277, 82_465, 1), (20_000, 30_191, 6)],
)
def test_the_fit_meets_what_its_keys_can_meet(service: int, latency: int, servers: int) -> None:
    truth = {"service_ns": service, "latency_ns": latency, "servers": servers}
    start = {"service_ns": 1_000_000, "latency_ns": 1000}
    found, at_end = fit(
        (SERVICE, LATENCY),
        start,
        rates_of(truth),
        lambda values, cells: rates_of({**values, "servers": servers}, cells),
        [0],
    )
    assert at_end
    again = rates_of({**{one.key.name: one.value for one in found}, "servers": servers})
    assert max(factor(one, true) for one, true in zip(again, rates_of(truth), strict=True)) < 1.05
    assert all(one.low <= one.value <= (one.high or 0) for one in found if one.low is not None)


@pytest.mark.parametrize(
    ("service", "latency", "servers"), [(20_000, 13_552, 5), (80_000, 5000, 3), (50_000, 90_000, 8)]
)
def test_the_fit_finds_a_count_beyond_a_plateau(service: int, latency: int, servers: int) -> None:
    truth = {"service_ns": service, "latency_ns": latency, "servers": servers}
    start = {"service_ns": 1_000_000, "latency_ns": 1000, "servers": 64}
    found, _ = fit((SERVICE, LATENCY, SERVERS), start, rates_of(truth), rates_of, [0])
    again = rates_of({one.key.name: one.value for one in found})
    assert max(factor(one, true) for one, true in zip(again, rates_of(truth), strict=True)) < 1.1


def test_a_key_that_no_cell_shows_keeps_its_start_and_has_no_interval() -> None:
    keys = (SERVICE, Key("unread", 1, 10**6, 7))
    start = {"service_ns": 500, "unread": 7}
    found, _ = fit(keys, start, [1e9 / 3000], lambda values, cells: [1e9 / values["service_ns"]])
    assert found[0].value == pytest.approx(3000, rel=0.01)
    assert (found[1].value, found[1].shown) == (7, False)


@pytest.mark.parametrize("devices", [1, 10, 100])
def test_a_search_whose_time_is_over_has_the_best_of_what_it_tried_and_no_interval(devices: int) -> None:
    truth = {"service_ns": 20_000, "latency_ns": 13_552, "servers": 5}
    start = {"service_ns": 1_000_000, "latency_ns": 1000, "servers": 64}
    tried: list[Values] = []

    def rates(values: Values, cells: Sequence[int]) -> list[float]:
        tried.append(values)
        return rates_of(values, cells)

    keys = (SERVICE, LATENCY, SERVERS)
    found, at_end = fit(keys, start, rates_of(truth), rates, [0], lambda: len(tried) >= devices)
    assert not at_end
    assert len(tried) == devices
    assert {one.key.name: one.value for one in found} in tried
    assert not any(one.shown for one in found)
    if devices == 100:
        again = rates_of({one.key.name: one.value for one in found})
        assert factor(again[0], rates_of(truth)[0]) < 1.1


def test_flushes_are_fitted_if_somebody_measured_them_and_the_device_has_a_cache() -> None:
    flash = tomllib.loads((DEVICES / "nvme_mqsim.toml").read_text())
    protected = with_values(flash, {"firmware.power_loss_protection": 1})
    assert "firmware.flush_ns" in {key.name for key in keys_of(flash, flushes=True)}
    assert "firmware.flush_ns" not in {key.name for key in keys_of(flash, flushes=False)}
    assert "firmware.flush_ns" not in {key.name for key in keys_of(protected, flushes=True)}
    assert keys_of({"kind": "disk"}, flushes=False) == ()


def test_keys_of_a_lun_that_its_table_lacks_are_not_fitted() -> None:
    plain, loop = (tomllib.loads((DEVICES / f"{name}.toml").read_text()) for name in ("paced_flat", "loop_device"))
    assert [key.name for key in keys_of(plain, flushes=True)] == [key.name for key in LUN]
    more = {"adapter_ns", "back_end.write_access_ns", "back_end.write_bytes_per_s"}
    assert {key.name for key in keys_of(loop, flushes=False)} == {key.name for key in LUN} | more
    assert {key.name for key in keys_of(loop, flushes=True)} - {key.name for key in LUN} == more | {"flush_ns"}
    assert read_by("read", ["back_end.servers", *more]) == ["back_end.servers", *(more & {"adapter_ns"})]


@pytest.mark.parametrize("name", ["nvme_mqsim", "null", "paced_flat", "loop_device", "sata_ssd_2018"])
def test_a_device_is_written_as_it_is_read(name: str) -> None:
    device = tomllib.loads((DEVICES / f"{name}.toml").read_text())
    assert tomllib.loads(table_text(device)) == device


# -- What was measured -------------------------------------------------------------------------------------------------


def fio(**options: str) -> dict[str, object]:
    side = {"io_bytes": 4096000, "total_ios": 1000, "runtime": 500, "iops": 2000}
    way = "read" if "read" in options["rw"] else "write"
    return {"jobname": "some", "groupid": 0, "job options": options, way: side}


def written(tmp_path: Path, *jobs: dict[str, object]) -> Path:
    path = tmp_path / "fio.json"
    numbered = [{**job, "groupid": number} for number, job in enumerate(jobs)]
    path.write_text(json.dumps({"fio version": "fio-3.33", "jobs": numbered}, indent=1))
    return path


def test_jobs_of_fio_are_cells(tmp_path: Path) -> None:
    common = {"direct": "1", "ioengine": "libaio", "size": "1g"}
    deep = fio(rw="randread", bs="4k", iodepth="32", numjobs="4", **common)
    commits = fio(rw="write", bs="16k", sync="1", direct="1")
    found = measured.read(written(tmp_path, deep, commits))
    first, second = found.cells
    assert (first.operation, first.depth, first.iops) == ("read", 128, 2000)
    assert (second.operation, second.depth, second.options.osync_every) == ("durable write", 1, 1)
    assert second.options.block_size == {16384: 1.0}
    assert found.left_out == []


@pytest.mark.parametrize(
    ("mean_ms", "iodepth", "engine", "asked"),
    [
        (4, "4", "libaio", (8, 1)),  # two jobs of depth 4 in a group
        (4, "8", "libaio", (8, 1)),
        (3.9, "8", "libaio", (8, 1)),
        (4, "1", "psync", (1, 8)),
    ],
)
def test_a_group_is_as_deep_as_rate_and_latency_say(
    tmp_path: Path, mean_ms: float, iodepth: str, engine: str, asked: tuple[int, int]
) -> None:
    """diskplorer's maps: fio states the first job's options alone, and `buffered=0` is `direct=1`."""
    job = fio(rw="randread", bs="4k", iodepth=iodepth, ioengine=engine, buffered="0")
    cast(dict[str, object], job["read"])["lat_ns"] = {"min": 1e6, "max": 9e6, "mean": mean_ms * 1e6, "N": 1000}
    found = measured.read(written(tmp_path, job))
    assert found.left_out == []
    (cell,) = found.cells
    assert (cell.options.queue_depth, cell.options.jobs) == asked


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rw": "randread"}, "direct=1"),
        ({"rw": "randread", "direct": "1", "rate_iops": "100"}, "rate_iops=100"),
        ({"rw": "randtrimread", "direct": "1"}, "rw=randtrimread"),
        ({"rw": "read", "direct": "1", "ioengine": "rbd"}, "ioengine=rbd"),
        ({"rw": "read", "direct": "1", "iodepth": "99999", "ioengine": "libaio"}, "queue_depth"),
        ({"rw": "read", "direct": "1", "bs": "many"}, "many"),
    ],
)
def test_what_is_no_cell_is_left_out_with_the_reason(tmp_path: Path, options: dict[str, str], why: str) -> None:
    found = measured.read(written(tmp_path, fio(**options)))
    assert found.cells == []
    (line,) = found.left_out
    assert why in line and "\n" not in line


@pytest.mark.parametrize(
    "text",
    [
        "8:0 ctrl=user model=linear rbps=1000000000 rseqiops=200000 rrandiops=100000 wbps=500000000 "
        "wseqiops=30000 wrandiops=20000\n",
        json.dumps(
            [
                {
                    "record": {
                        "model": {
                            "rbps": 1e9,
                            "rseqiops": 2e5,
                            "rrandiops": 1e5,
                            "wbps": 5e8,
                            "wseqiops": 3e4,
                            "wrandiops": 2e4,
                        }
                    }
                }
            ]
        ),
    ],
)
def test_the_six_rates_of_io_cost_are_cells(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result"
    path.write_text(text)
    cells = {one.name: one for one in measured.read(path).cells}
    assert tuple(cells) == iocost.RATES
    assert cells["rrandiops"].iops == 100_000
    assert iocost.in_its_unit("rbps", cells["rbps"].iops) == 1e9
    assert cells["rrandiops"].depth == 2048


def test_any_other_file_is_refused_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "else"
    path.write_text("nothing measured")
    with pytest.raises(InputError, match="no measurements"):
        measured.read(path)


# -- The command -------------------------------------------------------------------------------------------------------

KNOWN = """\
machine = "model:known.toml"
rounds = 2
seed = 7
"""
MACHINE = """\
kernel = "6.1"
cpus = { count = 4, time_slice_ns = 4000000, call_ns = 1000, completion_ns = 1500, page_copy_ns = 300, jitter = 0.05 }
[[drives]]
device = { kind = "null", capacity_bytes = 4294967296, latency_ns = 83000, queue_depth = 6 }
scheduler = { name = "none" }
"""


@pytest.mark.long
def test_a_run_on_a_known_device_gives_back_its_keys(iolab: CommandLine) -> None:
    depths = {1: "4KiB", 2: "4KiB", 3: "16KiB", 4: "4KiB", 5: "8KiB", 8: "4KiB", 16: "4KiB"}
    cells = "".join(
        f'[workloads.d{depth}]\nqueue_depth = {depth}\nblock_size = "{size}"\nfile_size = "64MiB"\nduration = "200ms"\n'
        for depth, size in depths.items()
    )
    iolab.write("known.toml", MACHINE)
    iolab.write("known-cells.toml", KNOWN + cells)
    iolab("run", "known-cells.toml", "--out", "measured")
    done = iolab("machine", "calibrate", "measured", "--like", "null", "--machine", "model:known.toml", "--json")
    found = json.loads(done.stdout)
    assert found["keys"]["latency_ns"]["value"] == pytest.approx(83000, rel=0.05)
    assert found["keys"]["queue_depth"]["value"] == 6
    roles = [one["role"] for one in found["cells"]]
    assert (roles.count("fit"), roles.count("held back")) == (5, 2)
    assert found["errors"]["held back"]["typical"] < 1.02
    assert found["errors"]["another round of the same cell"]["cells"] == 7
    assert found["errors"]["another round of the same cell"]["worst"] < 1.02
    device = tomllib.loads(found["file"])
    assert device["latency_ns"] == found["keys"]["latency_ns"]["value"]
    assert "held back (2 cells): typically x1" in found["file"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ([], "nothing to calibrate by"),
        (["absent.json"], "absent.json"),
        (["two.txt", "--like", "wd1600aajs"], "a device of kind disk"),
        (["two.txt", "--out", "x"], "--out"),
        (["two.txt", "--machine", "model:nfs-rdma-client"], "no drive"),
    ],
)
def test_mistakes_are_one_line(iolab: CommandLine, arguments: list[str], what: str) -> None:
    iolab.write("two.txt", "rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=6\n")
    failed = iolab("machine", "calibrate", *arguments, status=2)
    assert what in failed.stderr
    assert failed.stderr.count("\n") == 1


def test_describe_takes_no_source(iolab: CommandLine) -> None:
    assert "of calibrate" in iolab("machine", "describe", "--like", "null", status=2).stderr


@pytest.mark.parametrize("name", ["paced_flat", "loop_device", "null", "nvme_mqsim"])
def test_a_device_of_each_kind_is_asked_in_the_machine_that_is_taken_by_itself(name: str) -> None:
    bench = DeviceUnderTest(machine_around(MACHINE_DEFAULT), operations=100)
    (answer,) = bench.ask(device_named(name), [cell("reads", 1000, queue_depth=4)])
    assert answer.iops > 0


def test_a_device_that_cannot_be_is_an_error_of_one_line() -> None:
    bench = DeviceUnderTest(machine_around(MACHINE_DEFAULT))
    with pytest.raises(MachineError, match="queue_depth"):
        bench.ask({**device_named("null"), "queue_depth": 0}, [cell("reads")])


# -- A device that is measured -----------------------------------------------------------------------------------------


def test_a_device_that_is_only_read_is_asked_reads_of_what_is_there() -> None:
    target = {"kind": "device", "path": "/dev/some"}
    read_only = tomllib.loads(experiment_text("t", target, writes=False, region_bytes=2**30, seconds=1))["workloads"]
    assert all(one["read_percent"] == 100 and one["layout"] is False for one in read_only.values())
    both = tomllib.loads(experiment_text("t", target, writes=True, region_bytes=2**30, seconds=1))["workloads"]
    assert {one["read_percent"] for one in both.values()} == {0, 70, 100}
    assert read_only.keys() < both.keys()


@pytest.mark.root
def test_a_device_with_data_keeps_them(loop_device: Path, tmp_path: Path) -> None:
    size = device_at(loop_device).size_bytes
    content = bytes(range(256)) * (size // 256)
    loop_device.write_bytes(content)
    place = place_of(loop_device)
    assert place is not None and place.read_only is not None and "data" in place.read_only
    found = measure(place, tmp_path / "run", PlainDisplay(StringIO()), seconds=0.02)
    assert {one.operation for one in found.cells} == {"read"}
    assert len(found.cells) == len(READS)
    assert all(one.again is not None for one in found.cells)
    assert loop_device.read_bytes() == content


def test_what_there_was_no_time_to_measure_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    place = place_of(tmp_path / "data")
    assert place is not None

    class OfTrials(Limit):
        @override
        def ends_measuring(self) -> bool:
            return len(list((tmp_path / "run").glob("trials/*"))) >= 3

    found = measure(place, tmp_path / "run", PlainDisplay(StringIO()), seconds=0.02, limit=OfTrials())
    assert len(found.cells) == 3
    (line,) = found.left_out
    assert f"iolab run --resume {tmp_path / 'run'}" in line
    missing = line.partition(": ")[0].split(", ")
    assert {*missing, *(one.name for one in found.cells)} == {one.name for one in (*READS, *WRITES)}
    assert len(missing) == len(READS) + len(WRITES) - 3
    assert not list((tmp_path / "data").iterdir())


@pytest.mark.root
def test_a_blank_device_may_be_written_to(loop_device: Path) -> None:
    place = place_of(loop_device)
    assert place is not None and place.read_only is None
    assert place.target == {"kind": "device", "path": str(place.path)}


# -- The library -------------------------------------------------------------------------------------------------------


def test_the_library_is_what_its_results_make_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LIBRARY))
    runs, program = import_module("runs"), import_module("library")
    known = runs.models()
    assert len(known) == 34
    results = json.loads((LIBRARY / "results.json").read_text())
    for path, text in program.rendered(results, known).items():
        assert path.read_text() == text, path


def test_a_device_of_the_library_is_as_far_off_as_the_page_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """All eight figures, so that a change of the model shows."""
    monkeypatch.syspath_prepend(str(LIBRARY))
    runs, fitting = import_module("runs"), import_module("fitting")
    model = next(one for one in runs.models() if one.name == "Samsung_SSD_860")
    device = machine_file.device_at(DEVICES / f"{model.file}.toml").values
    figures = fitting.simulated(model, device)
    stated = json.loads((LIBRARY / "results.json").read_text())[model.name]["figures"]
    assert all(factor(figures[name], stated[name]) < 1.02 for name in stated), (figures, stated)
    assert all(factor(figures[name], model.figures[name]) < 1.03 for name in fitting.FITTED)


def test_devices_are_listed_with_their_errors(iolab: CommandLine) -> None:
    listed = json.loads(iolab("list", "devices", "--json").stdout)["devices"]
    assert {one["name"] for one in listed} == {path.stem for path in DEVICES.glob("*.toml")}
    shown = iolab("list", "devices", "samsung_ssd_860").stdout
    assert "held back" in shown and "Little's law" in shown


def test_a_device_of_the_library_is_named_in_files_and_settings(iolab: CommandLine) -> None:
    iolab.write(
        "m.toml",
        MACHINE.replace(
            '{ kind = "null", capacity_bytes = 4294967296, latency_ns = 83000, queue_depth = 6 }',
            '"hfs256gd9tng_62a0a"',
        ),
    )
    settings = '[settings.a]\n[settings.b]\nmachine = { "drives.0.device" = "samsung_ssd_970_pro_512gb" }\n'
    cell = '[workloads.w]\nfile_size = "16MiB"\noperations = 200\nqueue_depth = 8\nlayout = false\n'
    iolab.write("e.toml", 'machine = "model:m.toml"\nrounds = 1\nseed = 1\n' + cell + settings)
    iolab("run", "e.toml", "--out", "run")
