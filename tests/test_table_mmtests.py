"""`show --as mmtests`: mmtests' layout, positive is better, stars where the verdict is sure; the importer reads it."""

import re
from pathlib import Path
from statistics import harmonic_mean

import pytest
from iolab.files.importer.run_import import open_run
from iolab.files.store import RunData
from iolab.presentation.table import render
from support.stored import TWO_SETTINGS, stored_run

POSTED = """\
                              tbench                 tbench
                             default                    pan
Hmean     1        436.89 (   0.00%)      432.73 *  -0.95%*
Hmean     128    16797.09 (   0.00%)    16506.14 *  -1.73%*
BHmean-50 1        437.13 (   0.00%)      433.01 (  -0.94%)
"""
"""As mmtests prints it today: where its columns stand."""
CELL = re.compile(r" +(-?[\d.]+) ([(*]) *(-?[\d.]+)%([)*])")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return stored_run(tmp_path_factory.mktemp("mmtests") / "run", TWO_SETTINGS, faster={"fast": 1.2})


def cells(text: str, statistic: str, metric: str) -> list[tuple[str, str, str, str]]:
    line = next(line for line in text.splitlines() if line.split()[:2] == [statistic, metric])
    return CELL.findall(line)


def ends(line: str) -> list[int]:
    """Where cells end, from the end of the label."""
    found = [match.end() for match in CELL.finditer(line)]
    return [end - found[0] for end in found]


def test_columns_stand_as_in_mmtests(run: RunData) -> None:
    posted = [ends(line) for line in POSTED.splitlines()[2:]]
    ours = [ends(line) for line in render(run, "mmtests").splitlines() if CELL.search(line)]
    assert {end[1] for end in posted} == {end[1] for end in ours} == {23}
    header, row = render(run, "mmtests").splitlines()[2:4]
    assert header.split() == ["plain", "fast", "alike"]
    assert [match.end() for match in re.finditer(r"\S+", header)] == [match.end() for match in CELL.finditer(row)]


def test_a_sure_difference_has_stars_and_a_positive_percentage_is_better(run: RunData) -> None:
    text = render(run, "mmtests")
    rate = next(line.split()[1] for line in text.splitlines() if line.startswith("Hmean") and "rate" in line)
    plain, fast, alike = cells(text, "Hmean", rate)
    assert (plain[1], plain[2]) == ("(", "0.00")
    assert (fast[1], fast[3]) == ("*", "*")
    assert float(fast[2]) == pytest.approx(20, abs=1)
    assert alike[1] == "("
    cost = next(line.split()[1] for line in text.splitlines() if line.startswith("Amean"))
    assert float(cells(text, "Amean", cost)[1][2]) > 0


def test_only_means_have_stars(run: RunData) -> None:
    starred = {line.split()[0] for line in render(run, "mmtests").splitlines() if "*" in line}
    assert starred == {"Hmean", "Amean"}


def test_means_of_rates_are_harmonic(run: RunData) -> None:
    text = render(run, "mmtests", ["read.iops"])
    values = run.values("read.iops", "both")["plain"].to_list()
    (name,) = {line.split()[1] for line in text.splitlines() if line.startswith("Hmean")}
    assert float(cells(text, "Hmean", name)[0][0]) == pytest.approx(harmonic_mean(values), abs=0.005)
    best = sorted(values)[len(values) // 2 :]
    assert float(cells(text, "BHmean-50", name)[0][0]) == pytest.approx(harmonic_mean(best), abs=0.005)
    assert [line.split()[0] for line in text.splitlines() if CELL.search(line)] == [
        *("Min", "Hmean", "Stddev", "CoeffVar", "Max"),
        *("BHmean-50", "BHmean-95", "BHmean-99"),
    ]


def test_the_importer_reads_it_back(run: RunData, tmp_path: Path) -> None:
    text = render(run, "mmtests")
    (tmp_path / "compared.txt").write_text(text)
    imported = open_run(tmp_path / "compared.txt")
    assert imported.settings == ["plain", "fast", "alike"]
    assert imported.workloads == ["both"]
    read = {key.rpartition("/")[2] for key in imported.keys}
    assert {"score_hmean", "cost_amean", "cost_stddev", "cost_coeffvar", "score_bhmean_50"} <= read
