"""An index that lies: it is derived, so that whatever is wrong with it is named, and everything is read anew."""

import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from iolab.files.collection import index
from iolab.files.collection.collection import Collection
from iolab.presentation.cli.invoke import invoke
from support.stored import stored_run

SMALL = """\
title = "Small"
rounds = 2
seed = 7
[target]
kind = "directory"
path = "."
[workloads.reads]
engine = "psync"
file_size = "1MiB"
duration = "1s"
[settings.plain]
[settings.fast]
cpus = [0]
"""
ABSENT = object()
WRONG: list[object] = [ABSENT, None, [], {"a": 1}, "x" * 70_000, 10**400, -1, True, "\ud800", 1.5]


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and the index of it."""
    parent = tmp_path_factory.mktemp("listed") / "runs"
    stored_run(parent / "old", SMALL, faster={"fast": 0.7})
    collection = Collection(parent)
    collection.refresh()
    with sqlite3.connect(collection.index_file) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    return parent


@pytest.fixture
def runs(listed: Path, tmp_path: Path) -> Path:
    shutil.copytree(listed, tmp_path / "runs", copy_function=shutil.copy2)
    # A copy's journal is another file: what is known of it would be read again for that alone.
    collection = Collection(tmp_path / "runs")
    collection.refresh()
    return tmp_path / "runs"


def change(runs: Path, *statements: str, given: tuple[object, ...] = ()) -> None:
    with sqlite3.connect(runs / index.FOLDER / index.FILE) as db:
        for statement in statements:
            db.execute(statement, given)


def is_made_anew(runs: Path, capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """One line says so; what is listed is what the runs say; the next command finds a whole index."""
    assert invoke(["ls", str(runs), "--json"]) == 0
    said = capsys.readouterr()
    (run,) = json.loads(said.out)["runs"]
    assert (run["run"], run["title"]) == ("old", "Small")
    (line,) = said.err.splitlines()
    assert str(Collection(runs).index_file) in line and "is made anew" in line, line
    for word in words:
        assert word in line
    assert invoke(["ls", str(runs)]) == 0
    assert capsys.readouterr().err == ""


def keys_of(runs: Path) -> dict[str, Any]:
    with sqlite3.connect(runs / index.FOLDER / index.FILE) as db:
        (text,) = db.execute("select entry from run").fetchone()
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.long
def test_an_entry_of_wrong_type_is_named_by_its_key(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = keys_of(runs)
    for number, key in enumerate(whole):
        for value in WRONG[number % 3 :: 3]:
            changed = {**whole, key: value}
            if value is ABSENT:
                del changed[key]
            change(runs, "update run set entry = ?", given=(json.dumps(changed),))
            assert invoke(["ls", str(runs), "--json"]) == 0
            said = capsys.readouterr()
            assert "defect" not in said.err and len(said.err.splitlines()) <= 1
            if said.err:
                assert f"run old: entry: {key}" in said.err or "JSON" in said.err, said.err
                (run,) = json.loads(said.out)["runs"]
                assert run["title"] == "Small"
            else:
                assert value is not ABSENT or key in ("labels", "main")
                change(runs, "update run set entry = ?", given=(json.dumps(whole),))


@pytest.mark.parametrize(
    ("statement", "given", "word"),
    [
        ("update run set entry = ?", (b"\xff\xfe",), "run old"),
        ("update run set entry = ?", ("",), "run old"),
        ("update run set entry = ?", ("[" * 100_000,), "run old"),
        ("update run set entry = ?", ("{}, {}",), "run old"),
        ("update run set entry = cast(x'ff' as text)", (), ""),
        ("update run set key = x'00ff'", (), "run: "),
        ("update run set name = x'00ff'", (), "run: "),
        ("update run set ended = 'yes'", (), "ended"),
    ],
)
def test_a_row_that_lies_is_named(
    runs: Path, statement: str, given: tuple[object, ...], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(runs, statement, given=given)
    is_made_anew(runs, capsys, word)


BOMB = zlib.compress(b" " * (index.EXTRACT_BYTES_MAX + 1), 1)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"no zlib", "run old: extract"),
        ("a text", "run old: extract"),
        (7, "run old: extract"),
        (BOMB, "unpacks to more than"),
        (zlib.compress(b"{}")[:-3], "run old: extract"),
        (zlib.compress(b"\xff"), "run old: extract"),
        (zlib.compress(b"{}"), "run old: extract: facts"),
        (zlib.compress(b"[" * 100_000), "run old: extract"),
    ],
)
def test_an_extract_that_lies_is_named_and_read_anew(
    runs: Path, content: object, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(runs, "update extract set content = ?", given=(content,))
    assert invoke(["site", str(runs), "-o", str(tmp_path / "site")]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert word in line and "is made anew" in line
    assert len(list((tmp_path / "site" / "api" / "run").glob("*.json"))) == 1
    assert invoke(["site", str(runs), "--out", str(tmp_path / "site")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("content", ["", "[", "{}", "[{}]", "[" * 100_000, b"\xff", None])
def test_changes_that_lie_are_named_and_everything_is_read_anew(
    runs: Path, content: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(runs, "insert into changes values ('b', 'h', 's', ?)", given=(content or "null",))
    assert invoke(["site", str(runs), "--out", str(tmp_path / "site")]) == 0
    # A history of so few runs is not looked at.
    again = Collection(runs, report_line=print)
    again.refresh()
    assert again._known() == {} and len(again.entries) == 1
    assert "changes" in capsys.readouterr().out


ENDLESS = "with recursive n(x) as (select 1 union all select x + 1 from n) select x, x from n"


@pytest.mark.parametrize(
    "statements",
    [
        ("drop table run", f"create view run (name, key) as {ENDLESS}"),
        ("drop table about", f"create view about (format, version) as {ENDLESS}"),
        ("create view more as select 1",),
        ("create trigger t after insert on run begin delete from run; end",),
        ("create index i on run (key)",),
        ("drop table changes",),
        ("alter table run add column more text",),
    ],
)
def test_a_schema_that_is_not_ours_is_never_asked(
    runs: Path, statements: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    change(runs, *statements)
    is_made_anew(runs, capsys, "is not laid out as this iolab does")


def test_a_question_that_takes_too_long_is_given_up(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collection = Collection(runs)
    monkeypatch.setattr(index, "QUESTION_S", 0.0)
    monkeypatch.setattr(index, "STEPS", 1)
    with pytest.raises(index.DamagedIndex, match="interrupted"):
        collection._index.entries()


@pytest.fixture
def in_cache(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The index of runs beside which there is no place for it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.rmtree(runs / index.FOLDER)
    (runs / index.FOLDER).touch()
    collection = Collection(runs)
    collection.refresh()
    assert collection.index_file.is_relative_to(tmp_path / "cache")
    return collection.index_file


ODD = pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
SUFFIX = pytest.mark.parametrize("suffix", index.SUFFIXES)


@SUFFIX
@ODD
def test_what_is_no_regular_file_is_left_and_the_index_is_in_the_cache(
    runs: Path,
    suffix: str,
    make: Callable[[Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = runs / index.FOLDER / f"{index.FILE}{suffix}"
    path.unlink(missing_ok=True)
    make(path)
    assert invoke(["ls", str(runs), "--json"]) == 0
    said = capsys.readouterr()
    assert [run["run"] for run in json.loads(said.out)["runs"]] == ["old"] and said.err == ""
    assert os.path.lexists(path) and not path.is_file()
    assert list((tmp_path / "cache").rglob(index.FILE))


@SUFFIX
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_not_opened(
    runs: Path, in_cache: Path, suffix: str, make: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    path = in_cache.with_name(f"{in_cache.name}{suffix}")
    path.unlink(missing_ok=True)
    make(path)
    is_made_anew(runs, capsys, "no regular file")


def test_a_directory_in_its_place_is_one_line(runs: Path, in_cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    in_cache.unlink()
    (in_cache / "somebodys").mkdir(parents=True)
    assert invoke(["ls", str(runs)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert str(in_cache) in line and (in_cache / "somebodys").is_dir()


def test_a_run_whose_name_is_no_text_is_named_and_the_others_are_listed(
    runs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "old", runs / os.fsdecode(b"odd\xff"))
    assert invoke(["ls", str(runs)]) == 0
    said = capfd.readouterr()
    assert "1 run," in said.out
    (line,) = said.err.splitlines()
    assert "odd" in line and "UTF-8" in line


@pytest.mark.parametrize("file", ["journal.jsonl", "experiment.toml", "machine.json", "labels.json"])
def test_a_pipe_in_the_place_of_a_run_s_file_is_not_waited_for(
    runs: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs / "old" / file).unlink(missing_ok=True)
    os.mkfifo(runs / "old" / file)
    shutil.rmtree(runs / index.FOLDER)
    assert invoke(["ls", str(runs), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert any(file in problem for problem in run["problems"]), run["problems"]
