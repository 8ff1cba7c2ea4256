"""Sweeps: matrices in which one number changes are an axis, with a knee, one table and one sentence."""

import json
import random
from pathlib import Path

import pytest
from conftest import CommandLine
from iolab import compare
from iolab.domain.comparison import Numbers
from iolab.domain.matrix_axis import knee, sweeps
from iolab.domain.summary import summarise
from iolab.files.importer.run_import import open_run
from iolab.presentation.cli.invoke import invoke
from iolab.presentation.report.page import render as page_of
from iolab.presentation.table import render
from support.stored import stored_run

DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
SIMULATED = """\
title = "How deep?"
machine = "model:one_disk"
rounds = 2
seed = 1
[workloads.reads]
pattern = "random"
queue_depth = [1, 4, 16]
file_size = "16MiB"
duration = "200ms"
[settings.none]
scheduler = "none"
[settings.mq-deadline]
scheduler = "mq-deadline"
[compare]
metrics = ["iops", "latency_ns_mean"]
"""


def swept(directory: Path, workload: str, settings: str = "[settings.a]\n[settings.b]\n") -> list[tuple[object, ...]]:
    text = (
        'rounds = 2\nseed = 7\n[target]\nkind = "directory"\npath = "."\n'
        f'[workloads.reads]\nfile_size = "1MiB"\nduration = "1s"\n{workload}\n{settings}'
    )
    found = sweeps(summarise(stored_run(directory / "run", text)))
    return [(one.name, one.parameter, one.along, one.texts, [line.name for line in one.lines]) for one in found]


def test_values_are_sorted_as_amounts_and_settings_are_lines(tmp_path: Path) -> None:
    found = swept(tmp_path, 'block_size = ["64KiB", "4KiB", "1MiB"]')
    assert found == [("reads", "block_size", "workload", ["4KiB", "64KiB", "1MiB"], ["a", "b"])]


def test_the_axis_with_the_most_values_is_the_sweep_and_others_tell_lines_apart(tmp_path: Path) -> None:
    found = swept(tmp_path, 'block_size = ["4KiB", "64KiB"]\nqueue_depth = [1, 2, 4]', "[settings.a]\n")
    assert found == [("reads", "queue_depth", "workload", ["1", "2", "4"], ["block_size=4KiB", "block_size=64KiB"])]


def test_a_matrix_of_settings_is_a_sweep_too(tmp_path: Path) -> None:
    found = swept(tmp_path, "", "[settings.ahead]\nread_ahead_kb = [128, 0, 1024]\n")
    assert found == [("ahead", "read_ahead_kb", "setting", ["0", "128", "1024"], [""])]


def test_settings_that_are_called_by_an_amount_are_a_sweep_too(tmp_path: Path) -> None:
    settings = "".join(f"[settings.depth{depth}]\nworkload = {{ queue_depth = {depth} }}\n" for depth in (16, 1, 4))
    assert swept(tmp_path, "", settings) == [("", "depth", "setting", ["1", "4", "16"], [""])]


@pytest.mark.parametrize(
    ("settings", "parameter", "texts"),
    [
        (("64k", "4k", "1M"), "size", ["4k", "64k", "1M"]),
        (("bs=64k", "bs=4k", "bs=1m"), "bs", ["4k", "64k", "1m"]),
        (("x bs=4k qd=8", "x bs=4k qd=1", "x bs=4k qd=32"), "qd", ["1", "8", "32"]),
    ],
)
def test_sizes_and_assignments_are_a_sweep_whose_rate_leads_over_sizes(
    tmp_path: Path, settings: tuple[str, ...], parameter: str, texts: list[str]
) -> None:
    heights = {name: 100 * (1 + texts.index(next(one for one in texts if name.endswith(one)))) for name in settings}
    rows = "".join(f"{name},{1000 - height},{height}\n" for name, height in heights.items())
    (tmp_path / "loop.csv").write_text(f"setting,iops,rate_bytes_per_s\n{rows}")
    shown = render(open_run(tmp_path / "loop.csv"), "plain").splitlines()
    best = f"rate is highest at {texts[-1]}, 300.0 B/s" if parameter != "qd" else "IOPS is highest at 1, 900"
    name = "x bs=4k " if parameter == "qd" else ""
    assert f"● {name}over {parameter}: {best}" in shown[2]
    assert [line.split()[0] for line in shown if line.split()[:1] and line.split()[0] in texts][-3:] == texts


def test_a_size_is_one_value_however_it_is_spelled(tmp_path: Path) -> None:
    """In capitals and not, as people write: none is lost, and two rows of one are rounds."""
    rows = "4K | 1 | 6000\n8K | 1 | 7000\n1M | 1 | 300\n4k | 16 | 25000\n8k | 16 | 22000\n1M | 16 | 900\n"
    file = tmp_path / "a.txt"
    file.write_text(f"BS | IODEPTH | IOPS\n--- | --- | ---\n{rows}")
    run = open_run(file)
    (found,) = sweeps(summarise(run))
    assert found.texts == ["4K", "8K", "1M"]
    assert [[point.text for point in line.points] for line in found.lines] == [["4K", "8K", "1M"]] * 2
    assert all(figure in render(run, "plain") for figure in ("6,000", "25,000", "7,000", "22,000"))
    file.write_text(f"BS | IODEPTH | IOPS\n--- | --- | ---\n{rows}4K | 16 | 26000\n")
    run = open_run(file)
    assert len(sweeps(summarise(run))) == 1
    assert run.metrics.filter(key="iops", workload="table[BS=4K,IODEPTH=16]")["value"].to_list() == [25000, 26000]


def test_versions_and_mixed_names_are_none(tmp_path: Path) -> None:
    kernels = "".join(f"[settings.v{number}]\nnr_requests = {number}\n" for number in (16, 32, 64))
    assert swept(tmp_path, "", kernels) == []
    mixed = "[settings.depth1]\n[settings.depth2]\nnr_requests = 16\n[settings.deep]\nnr_requests = 32\n"
    assert swept(tmp_path / "mixed", "", mixed) == []


def test_what_an_axis_comes_to_is_the_first_sentence(tmp_path: Path) -> None:
    rows = "".join(f"{depth},{depth * 100 + round_}\n" for round_ in range(2) for depth in (1, 2, 4))
    (tmp_path / "depths.csv").write_text(f"iodepth,iops\n{rows}")
    for as_, line in (("plain", 2), ("markdown", 4)):
        shown = render(open_run(tmp_path / "depths.csv"), as_).splitlines()
        assert "csv over iodepth: IOPS is highest at 4" in shown[line]


def test_a_comparison_states_the_same_of_an_axis_as_a_table(tmp_path: Path, iolab: CommandLine) -> None:
    rates = {1: 1000, 2: 1900, 4: 3500, 8: 3510, 16: 3520}
    rows = "".join(f"depth{depth},{rate + round_}\n" for round_ in range(4) for depth, rate in rates.items())
    (tmp_path / "depths.csv").write_text(f"setting,iops\n{rows}")
    for depth, rate in rates.items():
        of_one = "".join(f"depth{depth},{rate + round_}\n" for round_ in range(4))
        (tmp_path / f"depth{depth}.csv").write_text(f"setting,iops\n{of_one}")
    stated = "over depth: more than 4 does not pay: IOPS 3,502, 99 % of the highest."
    found = iolab("show", "depths.csv").stdout
    assert f"● {stated}" in found
    assert f"● {stated}" in iolab("compare", "depths.csv", "-o", "depths.html").stdout
    assert f"<p>{stated}</p>" in (tmp_path / "depths.html").read_text()
    files = [f"depth{depth}.csv" for depth in rates]
    assert f"● {stated}" in iolab("compare", *files).stdout
    as_json = json.loads(iolab("compare", *files, "--json").stdout)
    assert [(one["parameter"], one["text"]) for one in as_json["sweeps"]] == [("depth", stated)]
    assert compare(*(tmp_path / name for name in files)).sweeps == [stated]


def test_an_axis_of_workloads_is_stated_though_nothing_is_compared(tmp_path: Path, iolab: CommandLine) -> None:
    rows = "".join(f"{depth},{depth * 100 + round_}\n" for round_ in range(2) for depth in (1, 2, 4))
    (tmp_path / "depths.csv").write_text(f"iodepth,iops\n{rows}")
    found = iolab("compare", "depths.csv").stdout
    assert found.startswith("● csv over iodepth: IOPS is highest at 4") and "Nothing to compare" not in found


@pytest.mark.parametrize(
    ("workload", "settings"),
    [
        ("queue_depth = [1, 2]", "[settings.a]\n"),
        ('pattern = ["random", "sequential", "backward"]', "[settings.a]\n"),
        ("", "[settings.a]\nnomerges = [0, 1, 2]\n"),
    ],
)
def test_two_values_words_and_numbers_that_are_names_are_no_axis(tmp_path: Path, workload: str, settings: str) -> None:
    assert swept(tmp_path, workload, settings) == []


def by_round(curve: list[float], noise: float = 0.002) -> list[Numbers]:
    """The curve as six rounds would have measured it."""
    draw = random.Random(1)
    return [[height * draw.gauss(1, noise) for _ in range(6)] for height in curve]


def test_the_knee_is_where_more_stops_paying() -> None:
    saturating = [min(depth, 32) * 1000.0 for depth in DEPTHS]
    found = knee(by_round(saturating))
    assert found is not None and DEPTHS[found] == 32


def test_where_more_still_pays_is_no_knee() -> None:
    """128 KiB bends the curve, and 1 MiB gives 2.35 times as much as 128 KiB."""
    assert knee(by_round([100.0, 180, 300, 430, 480, 560, 705])) is None
    assert knee(by_round([100.0, 180, 300, 430, 480, 560, 705, 706, 704])) == 6


@pytest.mark.parametrize(
    "curve",
    [
        [1000.0 * depth for depth in DEPTHS],
        [1000.0 / depth for depth in DEPTHS],
        [5.0 for _ in DEPTHS],
        [float(depth**2) for depth in DEPTHS],
    ],
)
def test_rising_falling_and_flat_curves_have_no_knee(curve: list[float]) -> None:
    assert knee(by_round(curve)) is None


def test_rounds_that_cannot_tell_have_no_knee() -> None:
    saturating = [min(depth, 32) * 1000.0 for depth in DEPTHS]
    assert knee([[height] for height in saturating]) is None
    assert knee(by_round(saturating, noise=0.2)) is None


def test_one_round_is_stated_to_show_no_knee(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{depth},{1000 * min(depth, 32)}" for depth in DEPTHS]
    (tmp_path / "depths.csv").write_text("\n".join(["queue_depth,iops", *rows]))
    assert invoke(["show", str(tmp_path / "depths.csv")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "; one round shows no knee." in shown and "without a knee" not in shown


def test_a_value_that_a_table_of_a_sweep_lacks_has_its_reason(iolab: CommandLine) -> None:
    experiment = iolab.write(
        "few.toml",
        'machine = "model:consumer-nvme"\nrounds = 1\n[workloads.reads]\nduration = "20ms"\nfile_size = "8MiB"\n'
        "queue_depth = [1, 4, 32]\n",
    )
    shown = iolab("run", experiment, "--out", "few").stdout
    assert " - [1]" in shown and "[1] of fewer than 1,000 values, fewer than 10 lie beyond it" in shown


def test_a_metric_that_no_point_of_a_sweep_has_is_named_with_its_reason(iolab: CommandLine) -> None:
    """Below the table of the others, and instead of a table without values."""
    experiment = iolab.write(
        "few.toml",
        'machine = "model:consumer-nvme"\nrounds = 1\n[workloads.reads]\noperations = 50\nfile_size = "8MiB"\n'
        "queue_depth = [1, 4, 32]\n",
    )
    iolab("run", experiment, "--out", "few")
    absent = "No value of latency p99: of fewer than 1,000 values, fewer than 10 lie beyond it"
    both = iolab("show", "few", "--metric", "latency_ns_p99", "--metric", "iops").stdout.splitlines()
    assert absent in both and any("queue_depth" in line and "IOPS" in line for line in both)
    alone = iolab("show", "few", "--metric", "latency_ns_p99").stdout.splitlines()
    assert absent in alone and not any(line.strip() == "32" for line in alone)


@pytest.mark.parametrize(
    ("heading", "best"),
    [
        ("bs,MB/s,iops", "rate"),
        ("bs,iops,MB/s", "rate"),
        ("clients,tps,latency ms", "tps"),
        ("threads,MB/s,iops", "IOPS"),
    ],
)
def test_a_rate_in_a_file_s_own_words_has_a_knee(tmp_path: Path, heading: str, best: str) -> None:
    """Bytes where blocks differ in size, also if the file has IOPS."""
    rises = {"MB/s": (50, 190, 700, 701, 702), "tps": (50, 190, 700, 701, 702), "iops": (12, 12, 11, 3, 1)}
    rises |= {"latency ms": (1, 1, 1, 4, 8)} | ({"iops": (50, 190, 700, 701, 702)} if "threads" in heading else {})
    axis, *metrics = heading.split(",")
    values = ("4k", "16k", "64k", "256k", "1M") if axis == "bs" else ("1", "4", "16", "64", "256")
    rows = [
        ",".join([value, *(f"{rises[metric][place] * (1 + number / 1000)}" for metric in metrics)])
        for number in range(5)
        for place, value in enumerate(values)
    ]
    (tmp_path / "rates.csv").write_text("\n".join([heading, *rows]))
    shown = " ".join(render(open_run(tmp_path / "rates.csv"), "plain").split())
    assert f"● csv over {axis}: more than {values[2]} does not pay: {best} " in shown


def test_a_sweep_is_one_table_and_one_sentence(iolab: CommandLine) -> None:
    experiment = iolab.write("sweep.toml", SIMULATED)
    shown = iolab("run", experiment, "--out", "sweep").stdout.splitlines()
    assert sum(line.startswith("● reads over queue_depth: ") for line in shown) == 1
    assert shown.count("reads over queue_depth") == 1 and not any(line.startswith("reads[") for line in shown)
    rows = [line.split()[0] for line in shown if line.split() and line.split()[0] in ("1", "4", "16")]
    assert rows == ["1", "4", "16"]
    (said,) = iolab("show", "sweep", "--json").json()["sweeps"]
    assert said["parameter"] == "queue_depth" and said["values"] == ["1", "4", "16"] and "queue_depth" in said["text"]


def test_formats_that_know_no_sweep_keep_every_workload(tmp_path: Path) -> None:
    text = (
        'rounds = 2\nseed = 7\n[target]\nkind = "directory"\npath = "."\n'
        '[workloads.reads]\nfile_size = "1MiB"\nduration = "1s"\nqueue_depth = [1, 2, 4]\n[settings.a]\n'
    )
    run = stored_run(tmp_path / "run", text)
    assert render(run, "csv").count("queue_depth=") == 6


def test_without_a_knee_the_latency_tells_what_the_highest_rate_costs(tmp_path: Path) -> None:
    """A load of more than a drive can do gives the most, after a queue as long as the run."""
    rows = "".join(
        f"{offered},{given + round_},{latency}\n"
        for round_ in range(2)
        for offered, given, latency in ((20_000, 20_000, 101e3), (80_000, 80_000, 112e3), (120_000, 98_000, 100.4e6))
    )
    (tmp_path / "offered.csv").write_text(f"queue depth,iops,latency_ns_mean\n{rows}")
    (stated,) = (
        line for line in render(open_run(tmp_path / "offered.csv"), "markdown").splitlines() if " over " in line
    )
    assert stated.endswith("without a knee, at a latency mean of 100.4 ms (112.0 µs at 80000).")
    page = page_of(open_run(tmp_path / "offered.csv"))
    assert "csv over queue depth: IOPS" in page
    assert "csv[queue depth=20000]: " not in page, "a sentence per point pushes the plot out of sight"
