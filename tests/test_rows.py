"""Rows of a CSV file in any order: which setting is the baseline, which numbers are names, which rows are rounds."""

from pathlib import Path
from random import Random

import pytest
from iolab.domain.baseline import baseline_of, earlier_of, how_chosen, oldest_of
from iolab.files.importer.csv_entries import is_id
from iolab.files.importer.run_import import open_files, open_run
from iolab.presentation.side_by_side import ComparisonRequest, ComparisonResult, compare_paths

OLD, NEW = 100_000.0, 103_000.0


def compared(path: Path, text: str) -> ComparisonResult:
    path.write_text(text)
    return compare_paths([path], ComparisonRequest(), group_by=None, from_=None)


@pytest.mark.parametrize(
    ("names", "oldest"),
    [
        (["6.9", "6.6", "6.10"], "6.6"),
        (["6.10", "6.9"], "6.9"),
        (["v6.9", "v6.9-rc2", "v6.9-rc1"], "v6.9-rc1"),
        (["6.12.6", "6.1.0-28"], "6.1.0-28"),
        (["linux-6.9", "linux-v6.8"], "linux-v6.8"),
        (["6.9", "6.9-patched"], None),
        (["6.9", "bfq"], None),
        (["fio-3.36", "linux-6.8"], None),
        (["1.0", "0.5"], None),
        (["64", "16"], None),
        (["6.9"], None),
    ],
)
def test_versions_are_ordered_as_versions(names: list[str], oldest: str | None) -> None:
    assert oldest_of(names) == oldest
    assert baseline_of(names) == (oldest or names[0])


def test_a_name_that_says_what_came_before_is_the_baseline_of_versions_too() -> None:
    assert earlier_of(["6.6", "6.9-stock"]) == "6.9-stock"
    assert baseline_of(["6.6", "6.9-stock"]) == "6.9-stock"
    assert how_chosen(["6.6", "6.9-stock"], "6.9-stock", in_any_order=True) is None


def test_the_baseline_of_shuffled_rows_is_the_oldest_version_and_it_is_said_how_it_was_chosen(tmp_path: Path) -> None:
    rows = [
        f"{kernel},{number},{100 + number + ten}"
        for number in range(6)
        for kernel, ten in ((("6.9", 10), ("6.6", 0)) if number % 2 else (("6.6", 0), ("6.9", 10)))[
            :: 1 - 2 * (not number)
        ]
    ]
    assert rows[0].startswith("6.9")
    found = compared(tmp_path / "kernels.csv", "\n".join(["kernel,round,iops", *rows]) + "\n")
    (one,) = found.comparisons
    assert (one.against, one.setting, one.judgement.verdict) == ("6.6", "6.9", "faster")
    assert found.read_as == "baseline: 6.6, the oldest version"
    named = [row.replace("6.9", "new").replace("6.6", "now") for row in rows]
    found = compared(tmp_path / "names.csv", "\n".join(["kernel,round,iops", *named]) + "\n")
    assert found.read_as == "baseline: new, the setting of the first row"
    in_turn = "".join(f"{name},{number},{100 + number}\n" for number in range(4) for name in ("new", "now"))
    assert compared(tmp_path / "turns.csv", "kernel,round,iops\n" + in_turn).read_as is None


def test_a_table_for_people_keeps_the_order_that_its_author_chose(tmp_path: Path) -> None:
    (tmp_path / "mail.md").write_text("| test | 6.9 | 6.6 |\n|---|---|---|\n| read IOPS | 110 | 100 |\n")
    assert open_files([tmp_path / "mail.md"]).experiment.compare.baseline == "6.9"


@pytest.mark.parametrize(
    ("name", "entries", "found"),
    [
        ("node", ["1", "2", "1", "2"], True),
        ("Node ID", ["11", "12", "11", "12"], True),
        ("host_id", ["7", "7", "9", "9"], True),
        ("cpu", ["0", "1", "0", "1"], True),
        ("cpu", ["35", "38", "35", "38"], False),
        ("node", ["1", "2", "3", "4"], False),
        ("node", ["1.5", "2", "1.5", "2"], False),
        ("errors", ["1", "2", "1", "2"], False),
    ],
)
def test_numbers_of_columns_that_tell_machines_apart_are_names(name: str, entries: list[str], found: bool) -> None:
    assert is_id(name, entries) == found


def test_machines_that_are_called_by_numbers_are_not_averaged(tmp_path: Path) -> None:
    """Two machines three times apart, 5 % faster on both."""
    rows = [
        f"{node},{setting},{(90_000 if node == 1 else 30_000) * gain + number}"
        for number in range(8)
        for node in (1, 2)
        for setting, gain in (("old", 1.0), ("new", 1.05))
    ]
    found = compared(tmp_path / "nodes.csv", "\n".join(["node,setting,iops", *rows]) + "\n")
    assert [(one.metric, one.workload, one.judgement.verdict) for one in found.comparisons] == [
        ("iops", "nodes[node=1]", "faster"),
        ("iops", "nodes[node=2]", "faster"),
    ]
    assert all(one.judgement.ratio == pytest.approx(1.05, rel=1e-3) for one in found.comparisons)


def alternation() -> list[str]:
    """Twelve turns beside a drift that halves the rate: each pair differs by 3 %."""
    random = Random(1)
    level = [1 - 0.5 * (turn // 6) for turn in range(12)]
    return [
        f"{name},{value * level[turn] * random.gauss(1, 0.001):.0f}"
        for turn in range(12)
        for name, value in (("old", OLD), ("new", NEW))
    ]


def test_a_row_that_an_alternation_lost_shifts_no_pairs(tmp_path: Path) -> None:
    rows = alternation()
    whole = compared(tmp_path / "whole.csv", "\n".join(["setting,iops", *rows]) + "\n")
    assert (whole.comparisons[0].pairing, whole.problems) == ("round", [])
    lost = compared(tmp_path / "lost.csv", "\n".join(["setting,iops", rows[0], *rows[2:]]) + "\n")
    (one,) = lost.comparisons
    assert (one.pairing, one.unpaired_rounds) == ("none", 0)
    assert (one.judgement.n, one.judgement.n_baseline) == (11, 12)
    (problem,) = lost.problems
    assert "the settings do not take turns in the rows: rows are not paired" in problem
    # The last row may be missing: the turns before it are whole.
    ended = compared(tmp_path / "ended.csv", "\n".join(["setting,iops", *rows[:-1]]) + "\n")
    assert (ended.comparisons[0].pairing, ended.problems) == ("round", [])


def test_rows_in_no_order_are_no_pairs_and_neither_are_blocks(tmp_path: Path) -> None:
    rows = alternation()
    Random(3).shuffle(rows)
    found = compared(tmp_path / "shuffled.csv", "\n".join(["setting,iops", *rows]) + "\n")
    assert {one.pairing for one in found.comparisons} == {"none"}
    assert "the settings do not take turns" in found.problems[0]
    blocks = compared(tmp_path / "blocks.csv", "\n".join(["setting,iops", *sorted(rows)]) + "\n")
    assert {one.pairing for one in blocks.comparisons} == {"none"}
    assert "the settings do not take turns" in blocks.problems[0]
    # A column of rounds pairs rows in any order.
    numbered = [f"{row},{number // 2}" for number, row in enumerate(alternation())]
    Random(3).shuffle(numbered)
    (tmp_path / "rounds.csv").write_text("\n".join(["setting,iops,round", *numbered]) + "\n")
    run = open_run(tmp_path / "rounds.csv")
    assert run.pairing("old", "new") == "round"


def test_a_heading_of_a_shell_loop_names_its_round_and_its_setting(tmp_path: Path) -> None:
    text = "".join(
        f"=== round {number}: full_page_writes={name}\nlatency average = 8.0 ms\n"
        f"tps = {tps + number} (without initial connection time)\n"
        for number in range(1, 5)
        for name, tps in (("off", 4000), ("on", 4320))
    )
    begin = "transaction type: <builtin: TPC-B (sort of)>\nnumber of clients: 32\n"
    found = compared(tmp_path / "pg.log", text.replace("latency", f"{begin}latency"))
    (one,) = [one for one in found.comparisons if one.metric == "transactions_per_s"]
    assert (one.against, one.setting) == ("full_page_writes=off", "full_page_writes=on")
    assert one.judgement.n == 4
    assert one.judgement.ratio == pytest.approx(1.08, abs=0.001)
