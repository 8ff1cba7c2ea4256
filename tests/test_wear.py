"""`iolab wear`: what writes do to a simulated flash drive, from the command line."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from iolab.presentation.table.wear import wear_tables
from iolab.studies.wear import Wear, WearSlice
from support.command_line import CommandLine

TRACES = Path(__file__).parent / "traces"
SMALL = [
    f"--set=geometry.{key}={value}"
    for key, value in {
        "blocks_per_plane": 64,
        "pages_per_block": 32,
        "channels": 2,
        "dies_per_channel": 2,
        "planes_per_die": 2,
        "over_provision_per_mille": 250,
    }.items()
]
"""A drive of 192 MiB."""
LARGER = ["--set=geometry.blocks_per_plane=300", "--set=firmware.buffer_bytes=1048576"]
"""One of 900 MiB, so that the buffer holds a thousandth of it."""
DRIVE = ["nvme_small_2020", *SMALL]


def worn(iolab: CommandLine, *arguments: str) -> Any:
    return iolab("wear", *DRIVE, "--block-size", "16KiB", *arguments, "--json").json()


def test_random_writes_come_to_a_cliff_and_sequential_ones_do_not(iolab: CommandLine) -> None:
    drawn = worn(iolab, "random", "--amount", "400MiB")
    assert 1.3 < drawn["write_amplification_last_quarter"] < 4
    assert 0 < drawn["cliff_bytes"] < drawn["host_bytes"]
    assert drawn["host_bytes"] == sum(one["host_bytes"] for one in drawn["slices"])
    assert drawn["erases"] == sum(one["erases"] for one in drawn["slices"]) > 0
    free = [one["free_percent"] for one in drawn["slices"]]
    # They fall until the collector begins, at 5 % of the blocks, and stay there.
    assert free[0] > 15
    assert all(0 < share < 8 for share in free[-12:])
    assert all(one["slc_percent"] is None and one["celsius"] is None for one in drawn["slices"])
    sequential = worn(iolab, "sequential", "--amount", "400MiB")
    assert sequential["write_amplification"] < 1.05
    assert sequential["host_bytes"] >= 380 * 2**20


def test_the_picture_has_a_bar_for_each_row(iolab: CommandLine) -> None:
    text = iolab("wear", *DRIVE, "random", "--amount", "64MiB").stdout
    doubt, remedy, rate, *_ = text.splitlines()
    assert doubt.startswith("! no block was erased yet") and "--start steady" in remedy
    assert rate.startswith("Rate: ") and "in the last quarter" in rate
    assert iolab("wear", *DRIVE, "random", "--amount", "64MiB", "--start", "steady").stdout.startswith("Rate: ")
    for expected in ("Write amplification: ", "Erases: ", "Cliff: ", "Free blocks: ", "Rate over the bytes written"):
        assert expected in text
    assert 12 < sum("█" in line for line in text.splitlines()) <= 24


def test_a_steady_start_shows_what_a_long_run_comes_to(iolab: CommandLine) -> None:
    long = worn(iolab, "random", "--amount", "800MiB")
    short = worn(iolab, "random", "--amount", "40MiB", "--start", "steady-random")
    # Dies of 64 blocks, of which a half is more than 1 %, and writes of four units, which the law takes for one each.
    assert short["write_amplification"] == pytest.approx(long["write_amplification_last_quarter"], rel=0.12)
    sequential = worn(iolab, "sequential", "--amount", "40MiB", "--start", "steady-sequential")
    assert sequential["write_amplification"] == pytest.approx(1, abs=0.02)
    assert sequential["erases"] > 0


def test_a_skewed_workload_starts_where_its_own_long_run_ends(iolab: CommandLine, tmp_path: Path) -> None:
    zones = tmp_path / "zones.toml"
    zones.write_text(
        '[workloads.hot]\npattern = "zoned"\nzones = "90/10%:10/90%"\nread_percent = 0\nqueue_depth = 32\n'
    )
    for workload in ("random", "zipf", "pareto", "normal", str(zones)):
        begun = {
            state: worn(iolab, workload, *LARGER, "--amount", "200MiB", "--start", state)["write_amplification"]
            for state in ("steady", "filled")
        }
        later = worn(iolab, workload, *LARGER, "--amount", "3GiB", "--start", "steady")
        assert begun["steady"] == pytest.approx(later["write_amplification_last_quarter"], rel=0.04)
        assert begun["filled"] < 0.7 * begun["steady"]


@pytest.mark.parametrize(
    "job",
    [
        'pattern = "zoned"\nzones = "50/5%:30/15%:15/30%:5/50%"\nblock_size = "16KiB"',
        'pattern = "zoned"\nzones = "70/100MiB:30/300MiB"\nblock_size = "16KiB"',
        'pattern = "random"\nblock_size = "16KiB"\nrange_start = "100MiB"\nrange_length = "600MiB"',
        'pattern = "random"\nblock_size = { "16KiB" = 70, "128KiB" = 30 }',
        'pattern = "random"\nblock_size = { "16KiB" = 1, "32KiB" = 1, "48KiB" = 1 }\nrange_length = "700MiB"',
        'pattern = "random"\nblock_size = "64KiB"\nalign = "16KiB"',
    ],
)
def test_zones_ranges_and_several_sizes_start_where_their_long_runs_end(
    iolab: CommandLine, tmp_path: Path, job: str
) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f'[workloads.w]\n{job}\nfile_size = "1GiB"\nread_percent = 0\nqueue_depth = 32\n')
    common = ["wear", *DRIVE, str(path), *LARGER, "--json"]
    begun = iolab(*common, "--amount", "128MiB", "--start", "steady").json()["write_amplification"]
    # From the filled drive, not from the same start.
    later = iolab(*common, "--amount", "6GiB", "--start", "filled").json()["write_amplification_last_quarter"]
    assert begun == pytest.approx(later, rel=0.04)
    assert later > 1.2


@pytest.mark.parametrize("pattern", ['"strided"\nstride = "1MiB"', '"backward"'])
def test_what_is_written_in_order_is_invalid_in_order(iolab: CommandLine, tmp_path: Path, pattern: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f'[workloads.w]\npattern = {pattern}\nread_percent = 0\nblock_size = "64KiB"\nqueue_depth = 8\n')
    begun, from_sequence = (
        iolab("wear", *DRIVE, str(path), *LARGER, "--start", start, "--json").json()
        for start in ("steady", "steady-sequential")
    )
    assert begun["write_amplification"] == pytest.approx(1, abs=0.01)
    assert begun["erases"] > 0
    # A pass that goes on from slice to slice writes each unit once.
    assert begun["host_bytes"] == pytest.approx(begun["drive_bytes"], rel=0.03)
    assert (from_sequence["write_amplification"] > 1.05) == ("strided" in pattern)


def trace_of(path: Path, blocks: list[int], times: int = 1) -> str:
    """Writes of 64 KiB, one after the other, so many times over."""
    rows = (f"{number * 100} d write {block * 65536} 65536" for number, block in enumerate(blocks * times))
    path.write_text("\n".join(["fio version 3 iolog", "0 d add", "0 d open", *rows]) + "\n")
    return str(path)


@pytest.mark.parametrize("size", [9000, 400])
def test_a_trace_starts_where_it_ends_when_it_is_written_over_and_over(
    iolab: CommandLine, tmp_path: Path, size: int
) -> None:
    draws = random.Random(1)
    blocks = [draws.randrange(12_000) for _ in range(size)]
    asked = (*DRIVE, *LARGER)
    begun = iolab("wear", *asked, trace_of(tmp_path / "once.txt", blocks), "--start", "steady", "--json").json()
    times = 48 * 9000 // size // 8
    later = iolab("wear", *asked, trace_of(tmp_path / "often.txt", blocks, times), "--start", "filled", "--json").json()
    assert begun["host_bytes"] == size * 65536
    found = begun["write_amplification"]
    assert found == pytest.approx(later["write_amplification_last_quarter"], rel=0.03)
    assert (found > 1.2) == (size == 9000)


def test_a_pass_of_a_permutation_goes_on_from_slice_to_slice(iolab: CommandLine) -> None:
    begun = worn(iolab, "permutation", *LARGER, "--start", "steady")
    passes = 4
    later = worn(iolab, "permutation", *LARGER, "--start", "filled", "--amount", str(passes * begun["host_bytes"]))
    last = [one["write_amplification"] for one in later["slices"]][-len(later["slices"]) // passes :]
    # In the first quarter of a pass, what was written first in the pass before becomes invalid.
    assert begun["slices"][0]["write_amplification"] < 1.1
    assert begun["write_amplification"] == pytest.approx(sum(last) / len(last), rel=0.04)
    at_random = worn(iolab, "random", *LARGER, "--amount", "100MiB", "--start", "steady")
    assert begun["write_amplification"] < 0.7 * at_random["write_amplification"]


@pytest.mark.parametrize(
    "job",
    [
        'pattern = "strided"\nstride = "96KiB"\nblock_size = "64KiB"\nalign = "32KiB"',
        'pattern = "zipf"\nblock_size = { "16KiB" = 1, "64KiB" = 1 }',
        'pattern = "permutation"\nblock_size = "64KiB"\nrange_length = "128MiB"',
    ],
)
def test_what_a_long_run_leaves_is_not_known_of_each_job(iolab: CommandLine, tmp_path: Path, job: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(f"[workloads.w]\nread_percent = 0\n{job}\n")
    done = iolab("wear", *DRIVE, str(path), "--start", "steady", status=None)
    done.assert_one_clear_line(2, "--start steady", job.split('"')[1], "not known", "whole drive")


def test_collectors_differ_where_some_units_are_written_more_often(iolab: CommandLine) -> None:
    found = {
        name: worn(iolab, "zipf", "--amount", "300MiB", *changes)["write_amplification"]
        for name, changes in {
            "greedy": (),
            "cost_benefit": ("--set=firmware.collector=cost_benefit",),
            "windowed": ("--set=firmware.collector=windowed", "--set=firmware.collect_window_per_mille=20"),
        }.items()
    }
    assert len(set(found.values())) == 3
    assert found["greedy"] < found["windowed"]


def test_the_cliff_is_where_the_cache_of_one_bit_a_cell_is_full(iolab: CommandLine) -> None:
    keys = {"blocks_per_plane": 8, "bits_per_cell": 4, "page_program_ns": 200_000, "idle_ns": 10**9}
    cache = [f"--set=slc.{key}={value}" for key, value in keys.items()]
    slow = "--set=timing.page_program_ns=6000000"
    found = worn(iolab, "sequential", "--amount", "60MiB", slow, *cache)
    # Of 4 dies with 2 planes, 8 blocks with 8 pages of 16 KiB each; the write buffer is as large again.
    assert 8 * 2**20 <= found["cliff_bytes"] <= 26 * 2**20
    fill = [one["slc_percent"] for one in found["slices"]]
    assert fill == sorted(fill)
    assert fill[0] < 20
    assert fill[-1] == 100
    full_at = 60 * 2**20 * (fill.index(100) + 1) / len(fill)
    assert 8 * 2**20 <= full_at <= found["cliff_bytes"]


def test_a_drive_that_gets_warm_states_its_temperature(iolab: CommandLine) -> None:
    keys = {"idle_celsius": 40, "millikelvin_per_watt": 10_000, "time_constant_ns": 100_000_000}
    keys |= {"read_nanojoule": 0, "program_nanojoule": 600_000, "erase_nanojoule": 0}
    keys |= {"throttle_celsius": 80, "resume_celsius": 75, "throttle_per_mille": 4000}
    heat = [word for key, value in keys.items() for word in ("--set", f"thermal.{key}={value}")]
    asked = ("wear", "nvme_small_2020", "sequential", "--amount", "256MiB", *heat)
    warm = [one["celsius"] for one in iolab(*asked, "--json").json()["slices"]]
    assert warm[0] < warm[-1] and 75 < max(warm) < 82
    assert "degrees Celsius at most" in iolab(*asked).stdout


def slices(*rates: int) -> list[WearSlice]:
    """Of a second each."""
    return [WearSlice(rate, 10**9, 1, None, None, None, None) for rate in rates]


def test_a_rate_that_recovers_has_no_cliff() -> None:
    assert Wear(2**30, slices(100, 20, 90, 80), is_paced=False).cliff is None
    assert Wear(2**30, slices(100, 20, 90, 90, 90, 10, 60, 10), is_paced=False).cliff == (390, 5 * 10**9)
    assert Wear(2**30, slices(100, 10, 10), is_paced=True).cliff is None


def test_a_last_quarter_between_two_turns_of_the_collector_is_no_end() -> None:
    found = Wear(2**30, slices(100, 5, 5, 5, 5, 90, 90, 90), is_paced=False)
    assert found.cliff is None
    lines = [line for line in wear_tables(found) if isinstance(line, str)]
    assert any(line.startswith("! the last quarter is faster than the whole") for line in lines)
    settled = [line for line in wear_tables(replace(found, slices=slices(100, 50, 50, 50))) if isinstance(line, str)]
    assert not any("last quarter is faster" in line for line in settled)


def test_the_workload_of_an_experiment_and_a_trace_are_written_too(iolab: CommandLine) -> None:
    text = '[workloads.w]\nread_percent = 50\nblock_size = "16KiB"\nfile_size = "1MiB"\nqueue_depth = 8\n'
    path = iolab.write("half.toml", text)
    half = iolab("wear", *DRIVE, str(path), "--amount", "40MiB", "--json").json()
    assert 15 * 2**20 < half["host_bytes"] < 25 * 2**20
    traced = iolab("wear", *DRIVE, str(TRACES / "blkparse.txt"), "--json").json()
    assert len({one["host_bytes"] for one in traced["slices"]}) > 1, "each slice is a part of the trace"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no_such_drive", "random"], ["unknown drive"]),
        (["sata_7200_2008", "random"], ["only flash wears"]),
        ([*DRIVE, "rndom"], ["unknown pattern", "random"]),
        ([*DRIVE, "random", "--start", "old"], ["unknown state", "--start"]),
        ([*DRIVE, "random", "--set", "firmware.steady=skewed"], ["firmware.steady", "needs the table skew"]),
        (
            [*DRIVE, "random", "--set", "skew.block_bytes=4096", "--set", "skew.zipf_theta_per_mille=900"],
            ["skew", "only firmware.steady"],
        ),
        ([*DRIVE, "random", "--set", "skew.block_bytes=4096"], ["skew.zones", "zipf_theta_per_mille"]),
        (
            [
                *[*DRIVE, "random", "--set", "firmware.steady=skewed", "--set", "skew.block_bytes=16384"],
                *["--set", "skew.zones=[{ bytes = 4096, weight = 0 }]"],
            ],
            ["skew.zones", "weights"],
        ),
        (
            [
                *[*DRIVE, "random", "--set", "firmware.steady=skewed", "--set", "skew.block_bytes=16384"],
                *["--set", "skew.zones=[{ bytes = 512, weight = 1 }]"],
            ],
            ["skew.zones", "no zone that is written"],
        ),
        ([*DRIVE, "random", "--amount", "much"], ["--amount"]),
        ([*DRIVE, "random", "--set", "firmware.cores"], ["expected KEY=VALUE"]),
        ([*DRIVE, "random", "--set", "firmware.cores=0"], ["firmware.cores", "expected 1 to 1024"]),
        ([*DRIVE, "random", "--set", "firmware.collector=best"], ["firmware"]),
        ([*DRIVE, "random", "--set", "firmware.collector=windowed"], ["collect_window_per_mille", "must be given"]),
        ([*DRIVE, "random", "--start", "new", "--set", "firmware.steady=random"], ["firmware.steady", "filled"]),
    ],
)
def test_a_mistake_is_one_clear_line(iolab: CommandLine, arguments: list[str], words: list[str]) -> None:
    iolab("wear", *arguments, status=None).assert_one_clear_line(2, *words)
