"""Damaged stores: whatever a file of a run holds, reading it, showing it and going on with it ends in numbers or in one
line, and what is damaged is named."""

import io
import json
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import iolab.studies.run
import polars as pl
import pytest
from fake_machine import FakeExecutor, SilentDisplay, experiment, record_of
from hypothesis import settings
from iolab.base import checked_lines
from iolab.base.errors import IolabError
from iolab.files.store import index, parquet, read, trial_file
from iolab.files.store.rows import TableRow, table_rows
from iolab.files.store.trial_file import table_schema
from iolab.presentation.cli.invoke import invoke
from iolab.studies.run import plan

pytestmark = pytest.mark.usefixtures("state_dir")

FILES = ("experiment.toml", "machine.json", "journal.jsonl", "trials/000001.parquet", "index/000000.parquet")
EXAMPLES = settings().max_examples
READS, SHOWS, RESUMES = EXAMPLES, EXAMPLES // 8, EXAMPLES // 8
"""How often each file is damaged anew, for each way to use it."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of two blocks of four trials, half of which the index covers."""
    state = tmp_path_factory.mktemp("state")
    path = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IOLAB_STATE_DIR", str(state))
        patch.setattr(index, "TRIALS_PER_FILE", 4)
        iolab.studies.run.run(
            experiment(),
            path,
            executor=FakeExecutor(faster={"pinned": 1.1}),
            progress=SilentDisplay(),
            machine={"kernel": {"release": "6.1"}, "cpu": {"count_online": 2}},
        )
        shutil.rmtree(path / "index", ignore_errors=False)
        (path / "index").mkdir()
        data = read(path)
        index.update(data.directory, data.state.sha256_of(), 0)
        yield path


@pytest.fixture
def run(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(index, "TRIALS_PER_FILE", 4)
    shutil.copytree(whole, tmp_path / "run", copy_function=shutil.copy2)
    return tmp_path / "run"


def flip(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 3))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def blank(content: bytes, chance: random.Random) -> bytes:
    """A block that never reached the disk."""
    start = chance.randrange(len(content))
    end = min(len(content), start + chance.choice((1, 64, 512)))
    return content[:start] + b"\0" * (end - start) + content[end:]


def damages(run: Path, file: str, count: int, seed: int) -> Iterator[bytes]:
    """Damages the file again and again; each yield is one damaged content, on disk with the date of the whole file, as
    a failing disk leaves it."""
    path, chance = run / file, random.Random(f"{file} {seed}")
    content, stat = path.read_bytes(), path.stat()
    for number in range(count):
        damaged = (flip, flip, cut, blank)[number % 4](content, chance)
        if damaged == content:
            continue
        path.write_bytes(damaged)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        yield damaged
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_changes_no_number_that_is_read(run: Path, file: str) -> None:
    """A number is as it was written, or its trial is missing and the file is named."""
    truth = read(run).metrics
    histograms = read(run).histograms()
    cases = 0
    for _ in damages(run, file, READS, 1):
        cases += 1
        data = read(run)
        kept = pl.col("trial").is_in(data.trials["trial"].to_list())
        assert data.metrics.equals(truth.filter(kept))
        try:
            assert data.histograms().equals(histograms.filter(kept))
        except IolabError as error:
            assert Path(file).name in str(error)
        if len(data.trials) < 8:
            assert any(Path(file).name in problem for problem in data.problems)
    assert cases > READS * 0.9


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("as_", ["plain", "json", "report"])
def test_a_damaged_run_is_shown_or_refused_in_one_line(
    run: Path, file: str, as_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = str(tmp_path / "page.html")
    commands = {"plain": ["show"], "json": ["show", "--json"], "report": ["report", "-o", page]}
    for _ in damages(run, file, SHOWS, 2):
        status = invoke([*commands[as_], str(run)])
        said = capsys.readouterr()
        assert status in (0, 2), said.err
        assert "defect" not in said.err
        assert status == 0 or file.rpartition("/")[2] in said.err or "is not a run" in said.err


@pytest.mark.long
def test_a_damaged_file_without_its_journal_entry_is_read_or_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])
    for _ in damages(run, "trials/000001.parquet", 12, 7):
        for command in (["show"], ["report", "-o", str(tmp_path / "page.html")]):
            assert invoke([*command, str(run)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_run_goes_on_or_is_refused_in_one_line(run: Path, file: str) -> None:
    truth = read(run).metrics
    for number, damaged in enumerate(damages(run, file, RESUMES, 3)):
        copy = run.with_name(f"copy{number}")
        shutil.copytree(run, copy, copy_function=shutil.copy2)
        display = SilentDisplay()
        try:
            iolab.studies.run.resume(
                copy, executor=FakeExecutor(faster={"pinned": 1.1}), progress=display, consent=lambda _: None
            )
        except IolabError as error:
            assert "\n" not in str(error)
            assert file in ("experiment.toml", "journal.jsonl"), damaged
        else:
            assert read(copy).metrics.equals(truth)
            if file == "journal.jsonl" and read(run).problems:
                assert any("journal.jsonl:" in line for line in display.lines) or read(copy).problems == []


def test_every_flipped_bit_of_the_journal_is_named(run: Path) -> None:
    path = run / "journal.jsonl"
    content = path.read_bytes()
    chance = random.Random(4)
    for _ in range(4 * EXAMPLES):
        at = chance.randrange(len(content) - 1)
        changed = bytearray(content)
        changed[at] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        line = content.count(b"\n", 0, at) + 1
        assert any(problem.startswith(f"journal.jsonl:{line}: ") for problem in read(run).problems), at


WRONG = (None, True, -1, 10**30, 1.5, "x", [], {}, [1], {"a": 1})


def test_wrong_values_with_right_checksums_are_named_or_taken(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A journal that somebody wrote, not a disk."""
    path = run / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    entries = checked_lines.read(path.read_bytes()).entries
    chance = random.Random(5)
    for number, entry in enumerate(entries[:3]):
        for key in entry:
            for value in [*chance.sample(WRONG, max(1, EXAMPLES // 20)), "absent"]:
                changed = {**entry, key: value}
                if value == "absent":
                    del changed[key]
                path.write_bytes(b"".join([*lines[:number], checked_lines.encode(changed), *lines[number + 1 :]]))
                data = read(run)
                assert data.metrics.height > 0
                assert data.trials.height == len(data.found.trials)
                assert {*data.workloads, *data.settings} <= {"reads", "both", "plain", "pinned", "x"}
    for key in entries[0]:
        path.write_bytes(b"".join([checked_lines.encode({**entries[0], key: WRONG[3]}), *lines[1:]]))
        assert invoke(["show", str(run)]) in (0, 2), capsys.readouterr().err
        try:
            iolab.studies.run.resume(run, executor=FakeExecutor(), progress=SilentDisplay(), consent=lambda _: None)
        except IolabError:
            continue


def test_a_run_from_before_checksums_is_read_and_gone_on_with(run: Path) -> None:
    truth = read(run).metrics
    path = run / "journal.jsonl"
    entries = checked_lines.read(path.read_bytes()).entries
    for key in ("machine_sha256",):
        del entries[0][key]
    entries[0]["format"] = 1
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (run / "index" / "000000.sha256").unlink()
    data = read(run)
    assert data.problems == []
    assert data.metrics.equals(truth)
    iolab.studies.run.resume(run, executor=FakeExecutor(), progress=SilentDisplay(), rounds=3, consent=lambda _: None)
    assert read(run).problems == []
    assert read(run).trials.height == 12


def bomb(rows: int, **options: object) -> bytes:
    """A trial's file of very many equal rows: a few kilobytes."""
    trial = plan.trials(experiment(), 1, seed=7)[0]
    record = record_of(trial)
    columns = {name: [value] for name, value in zip(TableRow._fields, table_rows(record)[0], strict=True)}
    columns |= {name: [getattr(trial, name)] for name in ("trial", "round", "workload", "setting")}
    one = pl.DataFrame({name: columns[name] for name in table_schema()}, schema=table_schema())
    repeated = one.select(pl.all().repeat_by(rows).explode())
    buffer = io.BytesIO()
    repeated.write_parquet(
        buffer, metadata={"iolab.spec": "{}", "iolab.domain.record": trial_file.summary_of(record).model_dump_json()}
    )
    return buffer.getvalue()


LOOK = """
import resource, sys
from pathlib import Path
from iolab.files.store import read
data = read(Path(sys.argv[1]))
data.metrics, data.histograms()
print(data.problems)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.parametrize("place", ["journaled", "adopted"])
def test_a_small_file_that_claims_much_is_not_decoded(run: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "DECODED_BYTES_ALWAYS", 0)
    content = bomb(300_000)
    claims = parquet.read_claims(content)
    assert claims.rows == 300_000 and claims.decoded_bytes > 300 * len(content)
    shutil.rmtree(run / "index")
    if place == "adopted":
        (run / "trials" / "000009.parquet").write_bytes(content)
        (problem,) = read(run).problems
    else:
        stored = trial_file.TrialFileDigest.of(content)
        (run / "trials" / "000000.parquet").write_bytes(content)
        path = run / "journal.jsonl"
        entries = checked_lines.read(path.read_bytes()).entries
        for entry in entries:
            if entry["event"] == "trial_finished" and entry["trial"] == 0:
                entry |= {"size_bytes": stored.size_bytes, "sha256": stored.sha256}
        path.write_bytes(b"".join(map(checked_lines.encode, entries)))
        (problem,) = read(run).problems
    assert "claims 300,000 rows" in problem and "left out" in problem


def test_a_bomb_takes_no_memory(run: Path) -> None:
    """With the limits as they are, in a process of its own."""
    (run / "trials" / "000009.parquet").write_bytes(edited(bomb(100_000), rows=2_000_000_000))
    done = subprocess.run([sys.executable, "-c", LOOK, run], capture_output=True, text=True, check=True, timeout=60)
    problems, most_bytes = done.stdout.splitlines()
    assert "claims 2,000,000,000 rows" in problems
    assert int(most_bytes) < 700 * 2**20


def edited(content: bytes, *, rows: int) -> bytes:
    """The file with its footer's row counts changed, by way of pyarrow's own reading of them."""
    (length,) = struct.unpack("<I", content[-8:-4])
    footer = content[-8 - length : -8].replace(varint(2 * 100_000), varint(2 * rows))
    return content[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def test_claims_are_what_pyarrow_reads(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    for trial in plan.trials(experiment(), 1, seed=7):
        content = trial_file.encode(record_of(trial))
        (tmp_path / "one.parquet").write_bytes(content)
        metadata = pq.read_metadata(tmp_path / "one.parquet")
        claims = parquet.read_claims(content)
        assert (claims.rows, claims.columns) == (metadata.num_rows, metadata.num_columns)
        group = metadata.row_group(0)
        chunks = sum(group.column(number).total_uncompressed_size for number in range(metadata.num_columns))
        assert claims.page_bytes == chunks


def test_any_damaged_parquet_has_claims_or_is_none(run: Path) -> None:
    content = (run / "trials" / "000000.parquet").read_bytes()
    chance = random.Random(6)
    damage: list[Callable[[bytes, random.Random], bytes]] = [flip, cut, blank]
    for number in range(600):
        damaged = damage[number % 3](content, chance)
        if number % 2:  # most damage to the footer
            damaged = content[:-900] + damage[number % 3](content[-900:], chance)
        try:
            parquet.read_claims(damaged)
        except ValueError as error:
            assert str(error) == "no whole Parquet file"


def test_lists_in_lists_have_an_end() -> None:
    """A list of one list of one list: a byte for each level."""
    footer = b"\x49" + b"\x19" * 100_000
    content = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(ValueError, match="no whole Parquet file"):
        parquet.read_claims(content)


def test_an_unlisted_file_of_lists_in_lists_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    footer = b"\x49" + b"\x19" * 100_000
    content = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    (run / "trials" / "000009.parquet").write_bytes(content)
    assert invoke(["show", str(run)]) == 0
    assert "000009.parquet: not a whole trial file: no whole Parquet file; left out" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["a metric twice", "another trial's place"])
def test_an_unlisted_file_that_says_a_thing_twice_is_named(
    what: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = trial_file.read_record(run / "trials" / "000000.parquet")
    spec = record.spec.model_copy(update={"trial": 9, **({"round": 77} if what == "a metric twice" else {})})
    unlisted = record.model_copy(update={"spec": spec})
    rows = table_rows(unlisted)
    metrics = [row for row in rows if row.what == "metric"]
    twice = [*rows, metrics[0]] if what == "a metric twice" else rows
    (run / "trials" / "000009.parquet").write_bytes(trial_file.encode(unlisted, twice))
    assert invoke(["show", str(run)]) == 0
    told = {
        "a metric twice": "not a whole trial file: it has a metric twice",
        "another trial's place": "another trial is of the same round",
    }
    assert f"000009.parquet: {told[what]}" in " ".join(capsys.readouterr().out.split())


def test_chunks_that_share_their_pages_are_not_read_once_for_each(run: Path) -> None:
    """Each chunk says that the whole file is its pages."""
    import pyarrow.parquet as pq

    content = (run / "trials" / "000000.parquet").read_bytes()
    (length,) = struct.unpack("<I", content[-8:-4])
    footer = content[-8 - length : -8]
    for chunk in pq.ParquetFile(io.BytesIO(content)).metadata.to_dict()["row_groups"][0]["columns"]:
        footer = footer.replace(
            varint(2 * chunk["total_compressed_size"]) + b"\x26", varint(2 * len(content)) + b"\x26"
        )
    with pytest.raises(ValueError, match="no whole Parquet file"):
        parquet.read_claims(content[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1")


@pytest.mark.parametrize("place", ["trials", "index", "traces", "files"])
@pytest.mark.parametrize("kind", ["file", "link", "link to nowhere", "link to itself", "fifo", "device"])
def test_what_is_no_directory_is_named_and_not_written_through(
    run: Path, place: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, elsewhere = run / place, tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".somebodys.tmp").touch()
    if path.exists():
        shutil.rmtree(path)
    if kind == "file":
        path.write_bytes(b"mine")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to({"link": elsewhere, "link to itself": path, "device": "/dev/null"}.get(kind, "/nowhere"))
    before, journal = path.lstat(), (run / "journal.jsonl").read_bytes()
    assert invoke(["run", "--resume", str(run)]) == 2
    assert f"{path}: is " in capsys.readouterr().err
    shown = invoke(["show", str(run)])
    said = capsys.readouterr()
    assert shown == 0 or (place == "trials" and "no trial can be read under the baseline, plain" in said.err), said.err
    assert path.lstat().st_ino == before.st_ino and list(elsewhere.iterdir()) == [elsewhere / ".somebodys.tmp"]
    assert (run / "journal.jsonl").read_bytes() == journal


def test_no_line_is_cut_off_or_written_through_a_link(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("its last line has no end")
    (run / "journal.jsonl").unlink()
    (run / "journal.jsonl").symlink_to(precious)
    assert invoke(["run", "--resume", str(run)]) == 2
    assert "journal.jsonl: is a symbolic link" in capsys.readouterr().err
    assert precious.read_text() == "its last line has no end"


def test_what_stands_where_files_are_set_aside_or_half_written_stays(run: Path) -> None:
    trials = run / "trials"
    for name in ("000099.parquet.aside", ".000001.parquet.1.tmp", "000099.parquet"):
        (trials / name).mkdir()
        (trials / name / "mine").touch()
    iolab.studies.run.resume(
        run, executor=FakeExecutor(faster={"pinned": 1.1}), progress=SilentDisplay(), consent=lambda _: None
    )
    for name in ("000099.parquet.aside", ".000001.parquet.1.tmp", "000099.parquet.aside.2"):
        assert (trials / name / "mine").exists(), name


@pytest.mark.parametrize("file", [*FILES, "trials/000003.parquet"])
@pytest.mark.parametrize("kind", ["fifo", "zero", "directory", "link to nowhere", "unreadable"])
def test_what_is_no_regular_file_is_named(run: Path, file: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = run / file
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "zero" else "/nowhere" if kind == "link to nowhere" else "/proc/1/mem")
    status = invoke(["show", str(run)])
    said = capsys.readouterr()
    assert status in (0, 2, 3) and "defect" not in said.err
    assert status == 0 or file in said.err + str(run)
