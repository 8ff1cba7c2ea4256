"""From which run on: dates and versions as they are written, and rows that differ in more than the time."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.domain.history.dates import dates_in_names, dates_of
from iolab.domain.versions import are_versions, version_order
from iolab.files.importer.history import read_history
from iolab.presentation.cli.invoke import invoke

NIGHT = datetime(2026, 9, 24, tzinfo=UTC)
NIGHT_NS = int(NIGHT.timestamp()) * 10**9
HOUR_NS = 3600 * 10**9


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        *((text, 0) for text in ("2026-09-24", "2026/09/24", "2026/9/24", "2026.09.24", "20260924")),
        *((text, 0) for text in ("24.09.2026", "24.9.2026", "09/24/2026", "9/24/26", "24/09/2026", "24-09-2026")),
        *((text, 0) for text in ("Sep 24 2026", "Sep 24, 2026", "24 Sep 2026", "24-Sep-2026", "September 24th, 2026")),
        *((text, 3) for text in ("2026-09-24T03:00:00Z", "2026-09-24 03:00", "20260924T030000Z", "202609240300")),
        *((text, 3) for text in ("2026-09-24_03-00-00", "2026-09-24 05:00:00+02:00", "2026-09-23T22:00:00-05")),
        *((text, 3) for text in ("Thu, 24 Sep 2026 03:00:00 +0000", "Thu, 24 Sep 2026 05:00:00 +0200 (CEST)")),
        *((text, 3) for text in ("Thu Sep 24 03:00:00 2026", "Thu Sep 24 03:00:00 UTC 2026", "03:00 Sep 24 2026")),
        *((text, 3) for text in ("1790218800", "1790218800.0", "1790218800000", "1790218800000000")),
        ("24.09.2026 15:00", 15),
        ("09/24/2026 3:00 PM", 15),
        ("09/24/2026 12:00 AM", 0),
    ],
)
def test_dates_as_people_and_programs_write_them(text: str, hours: int) -> None:
    found = dates_of([text])
    assert found is not None
    assert (found.unix_ns, found.ambiguous) == ([NIGHT_NS + hours * HOUR_NS], None)


@pytest.mark.parametrize(
    "text",
    ["", "6.1.10", "v6.1", "12", "2026-02-30", "31/02/2026", "13/13/2026", "Sep 24", "12:00", "abc 24 2026", "n1"],
)
def test_what_is_no_date(text: str) -> None:
    assert dates_of([text]) is None


@given(st.dates(datetime(2001, 9, 10).date(), datetime(2090, 1, 1).date()), st.integers(13, 400), st.booleans())
def test_day_and_month_are_told_apart_by_the_whole_column(first: date, days: int, falling: bool) -> None:
    """A row a night, for longer than any month has days that may be months."""
    nights = [first + timedelta(days=day) for day in range(days)]
    nights = nights[::-1] if falling else nights
    for form in ("%d/%m/%Y", "%m/%d/%Y"):
        found = dates_of([night.strftime(form) for night in nights])
        assert found is not None and found.ambiguous is None
        assert [datetime.fromtimestamp(one / 1e9, UTC).date() for one in found.unix_ns] == nights


def test_day_and_month_that_nothing_tells_apart_span_the_shorter_time_and_are_named() -> None:
    found = dates_of(["05/09/2026", "05/10/2026", "05/11/2026"])
    assert found is not None and found.ambiguous == "05/09/2026"
    assert found.unix_ns[-1] - found.unix_ns[0] == 48 * HOUR_NS


def test_dates_in_names() -> None:
    names = [
        "fio-2026-09-24.json",
        "20260924",
        "fio_24.09.2026.json",
        "24-Sep-2026.txt",
        "Sep-24-2026",
        "x",
        "r12345678",
    ]
    assert dates_in_names(names) == [*5 * [NIGHT_NS], None, None]


def test_versions_in_the_order_of_their_releases() -> None:
    order = ["v5.19", "v6.1-rc2", "v6.1-rc10", "v6.1", "v6.1.1", "v6.1.2", "v6.1.10", "v6.9", "v6.12"]
    assert sorted(sorted(order), key=version_order) == order
    assert version_order("6.1.0-9-amd64") < version_order("6.1.0-10-amd64")
    assert are_versions(order, called_so=False)
    for none in (["1a2b3c4", "2b3c4d5"], ["old", "new"], ["v1", "n2"], ["01 Sep", "02 Oct"], ["09/24", "09/25"]):
        assert not are_versions(none, called_so=False)
    assert not are_versions(["1a2b3c4", "2b3c4d5"], called_so=True)
    assert are_versions(["6.1.0-9-amd64", "6.1.0-10-amd64"], called_so=True)


def falls(path: Path, column: str, entries: list[str]) -> Path:
    """A metric that falls by a tenth at the 24th of 36 entries, the newest of which stands first."""
    levels = 500 - 50.0 * (np.arange(len(entries)) >= 24) + np.random.default_rng(2).normal(size=len(entries))
    rows = [f"{entry};{level:.2f}\n" for entry, level in zip(entries, levels, strict=True)]
    path.write_text(f"{column};MB/s\n" + "".join(reversed(rows)))
    return path


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%d",
        "%m/%d/%Y",
        "%d/%m/%Y",
        "%d.%m.%Y",
        "%Y/%m/%d",
        "%Y%m%d",
        "%b %d %Y",
        "%a, %d %b %Y 03:00 +0000",
        "%s",
    ],
)
def test_a_table_with_its_newest_row_first_has_the_sign_of_its_change(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nights = [NIGHT - timedelta(days=35 - day) for day in range(36)]
    entries = [str(int(one.timestamp())) if form == "%s" else one.strftime(form) for one in nights]
    path = falls(tmp_path / "nights.csv", "date", entries)
    assert invoke(["history", str(path), "--fail-on", "regressed"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("MB/s: slower since 2026-09-13")
    assert "36 runs in the order of their date, 2026-08-20" in shown and "!" not in shown


def test_versions_that_were_sorted_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = falls(tmp_path / "a.csv", "version", [f"v6.1.{n}" for n in range(1, 37)]).read_text().splitlines()
    (path := tmp_path / "versions.csv").write_text("\n".join([rows[0], *sorted(rows[1:])]) + "\n")
    assert invoke(["history", str(path), "--fail-on", "regressed"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("MB/s: slower since v6.1.25")
    assert "in the order of their version, v6.1.1 to v6.1.36" in shown and "!" not in shown


@pytest.mark.parametrize(
    ("column", "entries", "words"),
    [
        ("date", [f"night {n}a" for n in range(36)], "date: 'night 35a' is read neither as a date nor as a version"),
        ("commit", [f"{n:02}c0ffee" for n in range(36)], "commit: '35c0ffee' is read neither as a date"),
        ("date", [*(f"2026-09-{n:02}" for n in range(1, 31)), *6 * ["?"]], "date: '?' is read neither as a date"),
    ],
)
def test_a_column_of_times_that_is_not_read_is_named(
    column: str, entries: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["history", str(falls(tmp_path / "nights.csv", column, entries))]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"! {words}" in shown and "the rows are taken as they stand, the oldest first" in shown


def test_versions_of_several_branches_in_turn_have_a_doubt(tmp_path: Path) -> None:
    versions = [f"{branch}.{n}" for n in range(18) for branch in ("6.1", "5.10")]
    read = read_history([falls(tmp_path / "branches.csv", "version", versions)])
    assert read.ordered_by == "version" and read.moments[0].name == "5.10.0"
    assert read.problems == ["version: taken in the order of versions, though 5.10.16 stands below 6.1.17"]


def hosts(path: Path, text: str = "host") -> Path:
    """Two hosts a night at 10 and at 30; that at 30 steps by a fifth at the 23rd night, and one night has no `a`."""
    noise = np.random.default_rng(3).normal(size=(40, 2))
    rows = [
        f"2026-{9 + night // 30:02}-{1 + night % 30:02},{host},{level * (1 + noise[night][place] / 50):.3f}\n"
        for night in range(40)
        for place, (host, level) in enumerate((("a", 10.0), ("b", 30.0 * (1.2 if night >= 22 else 1))))
        if (night, host) != (30, "a")
    ]
    path.write_text(f"date,{text},p99 (ms)\n" + "".join(rows))
    return path


@pytest.mark.parametrize("column", ["host", "mount options"])
def test_rows_of_a_night_that_differ_in_a_text_are_series_apart(
    column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["history", str(hosts(tmp_path / "hosts.csv", column))]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"p99 (ms) of {column}=b: slower since 2026-09-23")
    assert f"p99 (ms) of {column}=a: none found" in shown and "2 series" in shown


def test_a_text_that_says_no_more_than_another_is_a_fact(tmp_path: Path) -> None:
    """Each host has a kernel of its own, and one is updated: that is what may have changed the metric."""
    lines = hosts(tmp_path / "hosts.csv").read_text().splitlines()
    new = [f"{line},{'6.1' if ',a,' in line else '6.9' if line >= '2026-09-23' else '6.8'}" for line in lines[1:]]
    (path := tmp_path / "kernels.csv").write_text("\n".join([lines[0] + ",kernel", *new]) + "\n")
    read = read_history([path])
    assert [one.workload for one in read.series] == ["host=a", "host=b"]
    assert read.moments[21].facts == {"kernel": "6.1, 6.8"} and read.moments[22].facts == {"kernel": "6.1, 6.9"}


def test_depths_are_series_and_remarks_are_not(tmp_path: Path) -> None:
    rows = [f"2026-09-{n:02},{depth},r{n}{depth},{100 * depth + n}\n" for n in range(1, 21) for depth in (1, 32)]
    (path := tmp_path / "depths.csv").write_text("date,queue depth,log,iops\n" + "".join(rows))
    read = read_history([path], metrics=["iops"])
    assert [(one.workload, one.metric) for one in read.series] == [
        ("queue depth=1", "iops"),
        ("queue depth=32", "iops"),
    ]
    assert list(read.series[1].values[:2]) == [3201.0, 3202.0]


def test_rows_that_differ_in_nothing_are_rounds_of_one_run(tmp_path: Path) -> None:
    rows = [f"2026-09-{n:02},6.1,{100 + n + round_}\n" for n in range(1, 21) for round_ in (-1, 0, 1)]
    (path := tmp_path / "rounds.csv").write_text("date,kernel,iops\n" + "".join(rows))
    (one,) = read_history([path]).series
    assert list(one.values[:2]) == [101.0, 102.0]


def test_numbers_of_times_by_their_size_and_of_versions_by_their_parts(tmp_path: Path) -> None:
    for column, entries in (("time", ["9", "10", "10.25", "10.5"]), ("release", ["9", "10", "10.5", "10.25"])):
        read = read_history([falls(tmp_path / "few.csv", column, entries)])
        assert ([one.name for one in read.moments], read.problems) == (entries, [])


def test_files_without_dates_in_the_order_of_versions(tmp_path: Path) -> None:
    names = ["fio-v6.1-rc2.txt", "fio-v6.1.txt", "fio-v6.2.txt", "fio-v6.10.txt"]
    for name in names:
        (tmp_path / name).write_text("iops\n100\n101\n")
    read = read_history([tmp_path / name for name in sorted(names)])
    assert [one.name for one in read.moments] == names
