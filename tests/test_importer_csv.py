"""Any CSV: right, or one line that says what is wrong and where; the fast way and the slow way agree."""

import csv
import io
import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.domain.summary import summarise
from iolab.files.importer import csv_rows, pieces
from iolab.files.importer.csv_layout import Layout, layout_of
from iolab.files.importer.run_import import import_files, open_run
from iolab.files.importer.source import Source
from iolab.files.store import RunData


def written(tmp_path: Path, content: str | bytes, name: str = "x.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def iops(run: RunData) -> dict[tuple[str, int], float]:
    rows = run.metrics.filter(key="iops")
    return {(setting, number): value for setting, number, value in rows["setting", "round", "value"].iter_rows()}


ROUNDS = {("a", 0): 1.5, ("a", 1): 1.75, ("b", 0): 2.5, ("b", 1): 2.75}
TEXT = "setting,round,iops\na,1,1.5\na,2,1.75\nb,1,2.5\nb,2,2.75\n"


@pytest.mark.parametrize(
    "content",
    [
        TEXT,
        TEXT.rstrip("\n"),
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        "\n\n" + TEXT.replace("\n", "\n\n"),
        TEXT.replace(",", "\t"),
        TEXT.replace(",", ";").replace(".", ","),
        TEXT.replace("a", '"a"').replace("b", '"b"'),
        TEXT.replace(",", " , "),
        TEXT.replace("iops", 'iops,"a note"').replace("5\n", '5,"with, separator\nand ""line end"""\n'),
        TEXT + "b,2",
        "# measured in May\n# by hand\n" + TEXT,
        "# " + TEXT,
        "sep=;\n" + TEXT.replace(",", ";"),
        TEXT + TEXT.splitlines(keepends=True)[0],
        "".join(
            f"{number},{line}" for number, line in zip(("", *range(4)), TEXT.splitlines(keepends=True), strict=True)
        ),
        TEXT.replace("\n", ",\n"),
    ],
    ids=[
        "plain",
        "no end",
        "crlf",
        "bom",
        "blank",
        "tabs",
        "decimal commas",
        "quotes",
        "spaces",
        "quoted",
        "cut",
        "remarks",
        "header as a remark",
        "sep=",
        "header again",
        "index of pandas",
        "empty column",
    ],
)
def test_a_table_in_any_dress(tmp_path: Path, content: str) -> None:
    assert iops(open_run(written(tmp_path, content))) == ROUNDS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,1,10\n2,2,11\n", r"x\.csv:1: numbers where the header belongs"),
        ("a,1,10\na,2,11\nb,1,12\n", r"x\.csv:1: the header names columns by numbers, 1, 10"),
        ("setting,iops,iops\na,1,10\nb,2,11\n", r"x\.csv:1: two columns are called 'iops'"),
        ("setting,,iops\na,1,10\nb,2,11\n", r"x\.csv:1: column 2 has no name"),
        (TEXT + "b,3\nb,4,1\n", r"x\.csv:6: 2 fields, and the header names 3"),
        (TEXT + "b,3,1,5\n", r"x\.csv:6: 4 fields, and the header names 3"),
        (TEXT + '"b\nc",3,fast\n', r"x\.csv:7, column iops: 'fast' is not a number"),
        ("setting,note\na,x\nb,y\n", "no column with numbers"),
        ("> setting,iops\n> a,1\n", "quoted as in a mail"),
        ("setting\tiops\na\t1,234\nb\t2,345\n", r"column iops: '1,234' may be 1\.234 or 1234"),
        ("setting,iops\na,905 IOPS\nb,91 MB/s\n", r"column iops: '905 IOPS' is a number with something around it"),
        ('setting,bw\na,"1,234 MiB/s"\nb,"1,111 MiB/s"\n', r"column bw: '1,234 MiB/s' is a number with something"),
        ("setting,p99,iops\na,5,~1.2kX\nb,6,~1.3kX\n", r"column iops: '~1\.2kX' is a number with something"),
    ],
)
def test_one_line_names_the_place(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=message):
        open_run(path)
    with pytest.raises(InputError, match=message):
        import_files([path], tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("header", "case", "workloads"),
    [
        ("scheduler,QD,iops", ("1", "8"), ["x[QD=1]", "x[QD=8]"]),
        ("scheduler,Block Size (KiB),iops", ("4", "64"), ["x[Block Size (KiB)=4]", "x[Block Size (KiB)=64]"]),
        ("scheduler,bs,iops", ("4k", "64k"), ["x[bs=4k]", "x[bs=64k]"]),
        ("scheduler,what,iops", ("read", "write"), ["x[what=read]", "x[what=write]"]),
        ("fs,rw,iops", ("read", "write"), ["x[rw=read]", "x[rw=write]"]),
    ],
)
def test_what_was_measured_distinguishes_workloads_and_makes_no_rounds(
    tmp_path: Path, header: str, case: tuple[str, str], workloads: list[str]
) -> None:
    """Rows of other depths, sizes and operations are not the same again."""
    rows = [f"{setting},{one},{place + 1}" for place in range(2) for setting in ("none", "bfq") for one in case]
    run = open_run(written(tmp_path, "\n".join([header, *rows, ""])))
    assert sorted(run.workloads) == sorted(workloads)
    assert set(run.trials["setting"]) == {"none", "bfq"}
    assert run.trials["round"].to_list() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert set(run.metrics["key"]) == {"iops"}


def test_dates_and_remarks_are_no_settings_and_versions_no_decimal_points(tmp_path: Path) -> None:
    text = "Date;Kernel;MB/s;note\n2024-01-02;6.1;123,4;x\n2024-01-03;6.1;124,5;y\n2024-01-02;6.6;133,4;z\n"
    run = open_run(written(tmp_path, text))
    assert set(run.trials["setting"]) == {"6.1", "6.6"}
    assert run.metrics["value"].to_list() == [123.4, 124.5, 133.4]
    assert set(run.workloads) == {"x"}


def test_what_is_guessed_or_left_out_is_said(tmp_path: Path) -> None:
    for content, said in (
        (TEXT + "b,2", "cut off, 2 of 3 fields"),
        (TEXT.replace(",", ";").replace(".", ","), "commas in numbers"),
        (TEXT.encode().replace(b"b,", b"\xe9,"), "not UTF-8"),
    ):
        assert any(said in problem for problem in open_run(written(tmp_path, content)).problems)


def test_numbers_that_are_none_are_absent_not_infinite(tmp_path: Path) -> None:
    run = open_run(written(tmp_path, "setting,iops,ns\na,inf,1\nb,1e400,2\n"))
    assert run.metrics.filter(key="iops")["value"].null_count() == 2


@pytest.mark.parametrize("head", ["setting,iops,bw", "setting,round,iops,bw"])
def test_an_entry_that_is_no_finite_number_is_named_by_its_place(tmp_path: Path, head: str) -> None:
    """The rest of its round counts."""
    of_round = "1," if "round" in head else ""
    rows = [f"a,{of_round}{iops},{bw}" for iops, bw in (("1e400", 5), (100, 6), (102, 7))]
    path = written(tmp_path, "\n".join([head, *rows, f"b,{of_round}90,-1e999", ""]))
    run = open_run(path)
    assert run.problems[:2] == [
        f"{path}:2: column iops: '1e400' is no finite number, left out",
        f"{path}:5: column bw: '-1e999' is no finite number, left out",
    ]
    values = run.metrics.filter(key="iops", setting="a")["value"].drop_nulls().to_list()
    assert values == ([101.0] if of_round else [100.0, 102.0])


texts = st.text('ab ,;"\n.1', max_size=4)
entries = st.one_of(st.integers(-999, 999).map(str), st.sampled_from(["", "n/a", "1e2", " 7", "2.5"]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(texts, st.integers(0, 3), entries), min_size=2, max_size=60),
    piece_bytes=st.integers(1, 200),
    cut=st.integers(0, 3),
)
def test_pieces_and_rows_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[str, int, str]], piece_bytes: int, cut: int
) -> None:
    """However the file is cut into pieces; where the fast way can't read a file, it says so."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("setting", "round", "iops"), ("s", 0, 1), *rows])
    path = written(tmp_path, text.getvalue()[: len(text.getvalue()) - cut])
    layout = Layout(",", ["setting", "round", "iops"], begin=19, rows_about=len(rows), name="x.csv")
    layout.setting, layout.round, layout.metrics = "setting", "round", ["iops"]
    monkeypatch.setattr(pieces, "PIECE_BYTES", piece_bytes)
    end = path.stat().st_size
    try:
        fast = csv_rows._read_in_pieces(path, layout, end)
    except ValueError:
        return
    slow = list(csv_rows._read_by_row(path, layout, end, []))
    assert [(group.key, group.rows, group.counts) for group in fast] == [
        (group.key, group.rows, group.counts) for group in slow
    ]
    for ours, theirs in zip(fast, slow, strict=True):
        assert math.isclose(ours.sums[0], theirs.sums[0], rel_tol=1e-12, abs_tol=1e-9)


def test_many_pieces_come_to_the_same_whatever_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"{number % 7},{number % 3},{number}\n" for number in range(1000))
    path = written(tmp_path, f"setting,round,iops\n{lines}")
    whole = iops(open_run(path))
    for piece_bytes in (1, 10, 4096):
        monkeypatch.setattr(pieces, "PIECE_BYTES", piece_bytes)
        assert iops(open_run(path)) == whole


def test_the_layout_knows_where_rows_begin(tmp_path: Path) -> None:
    layout = layout_of(Source(written(tmp_path, "\ufeff\r\nsetting,iops\r\na,1\r\nb,2\r\n")))
    assert (layout.begin, layout.columns, layout.metrics) == (19, ["setting", "iops"], ["iops"])


def test_a_first_row_of_figures_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("none: iodepth=32, 45000 IOPS, idle 93%\nbfq: iodepth=32, 30000 IOPS, idle 90%\n")
    with pytest.raises(InputError, match="2 lines with figures that no format reads, such as 1: 'none"):
        open_run(path)
    for name in ("4k IOPS", "10 ms"):
        path.write_text(f"fs,{name}\next4,5\nxfs,6\n")
        assert open_run(path).settings == ["ext4", "xfs"]


def imported(tmp_path: Path, content: str) -> RunData:
    (path := tmp_path / "measured.csv").write_text(content)
    return open_run(path)


def test_a_round_that_one_setting_lacks_moves_no_other(tmp_path: Path) -> None:
    """`new` is 0.9 of `old` in each round that both have."""
    rows = [(host, n, (100 if host == "old" else 90) * n) for n in range(1, 8) for host in ("old", "new")]
    kept = [row for row in rows if row[:2] not in (("old", 2), ("new", 4))]
    run = imported(tmp_path, "host,round,iops\n" + "".join(f"{host},{n},{value}\n" for host, n, value in kept))
    (found,) = summarise(run).comparisons
    assert found.judgement.ratio == pytest.approx(0.9)
    assert found.judgement.n == 5


def test_runs_that_are_counted_through_are_rounds_of_each_setting(tmp_path: Path) -> None:
    rows = "".join(f"{'old' if n < 6 else 'new'},{n},{100 + n % 5}\n" for n in range(1, 11))
    (found,) = summarise(imported(tmp_path, f"host,run,iops\n{rows}")).comparisons
    assert found.judgement.n == 5


@pytest.mark.parametrize(
    ("column", "remarks"),
    [
        ("remark", ("disk was hot", "cron ran")),
        ("remark", ("scrub", "scrub", "scrub")),
        ("what happened", ("disk was hot", "cron ran")),
        ("what happened", ("disk was hot",)),
    ],
)
def test_remarks_in_some_rows_part_no_rows(tmp_path: Path, column: str, remarks: tuple[str, ...]) -> None:
    texts = [*remarks, *[""] * (10 - len(remarks))]
    rows = "".join(f"{'old' if n % 2 else 'new'},{n // 2},{100 + n},{text}\n" for n, text in enumerate(texts))
    run = imported(tmp_path, f"host,round,iops,{column}\n{rows}")
    assert run.workloads == ["measured"] and run.trials.height == 10
    assert any(f"columns of text are left out: {column}" in problem for problem in run.problems)


@pytest.mark.parametrize(
    ("rows", "baseline"),
    [
        ("patched,90\nvanilla,100\n", "vanilla"),
        ("with cache,90\nwithout cache,100\n", "without cache"),
        ("old driver,1\nold kernel,2\n", "old driver"),
        ("6.1,90\n6.12,100\n", "6.1"),
    ],
)
def test_what_is_called_the_earlier_is_the_baseline_wherever_it_stands(
    tmp_path: Path, rows: str, baseline: str
) -> None:
    (found,) = summarise(imported(tmp_path, f"kernel,iops\n{rows}")).comparisons
    assert found.against == baseline


def test_a_remark_below_a_table_with_decimal_commas_is_none_of_its_rows(tmp_path: Path) -> None:
    text = "Speicher;Test;IOPS;MB/s\nA;read;966;1.012,6\nB;read;312.450;8,9\n# am 14.11.2026, je 120 s\n"
    run = open_run(written(tmp_path, text))
    assert sorted(run.metrics["value"].to_list()) == [8.9, 966, 1012.6, 312450]
