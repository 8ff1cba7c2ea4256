"""Traces that lie, and pipes that say nothing: one line, and an end when it is asked for."""

import os
import signal
import threading
from pathlib import Path

import pytest
from iolab.base import trace_files
from iolab.presentation.cli.invoke import invoke
from iolab.studies.trace import study, trace_of
from support.command_line import CommandLine

TRACES = Path(__file__).parent / "traces"
WINDOWS = [
    b"\x00\xa8",
    b"\x00\xff",
    b"\xe0" + (1 << 31).to_bytes(8, "little"),
    b"\xa0" + (1 << 31).to_bytes(4, "little"),
]


@pytest.mark.parametrize("head", WINDOWS, ids=lambda head: head.hex())
def test_a_window_of_gigabytes_is_refused(head: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + head + bytes(range(100)))
    assert invoke(["trace", str(path)]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert "a zstd frame with a window of" in line


@pytest.mark.parametrize("more", [[], ["--to", "parquet", "-o", "x.parquet"], ["--sector", "5"]], ids=" ".join)
def test_a_pipe_that_nobody_writes_to_is_said_and_ends_on_ctrl_c(iolab: CommandLine, more: list[str]) -> None:
    os.mkfifo(iolab.cwd / "pipe")
    with iolab.start("trace", "pipe", *more) as process:
        assert process.stderr is not None
        assert "pipe: waiting for data" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read() == "iolab: interrupted\n"


def test_what_a_pipe_says_late_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer writes when it is told that somebody waits."""
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(trace_files, "SPEAK_AFTER_S", 0.01)

    def write(message: str, **_: object) -> None:
        assert "pipe: waiting" in message
        if os.fork() == 0:
            (tmp_path / "pipe").write_bytes((TRACES / "blkparse.txt").read_bytes())
            os._exit(0)
        monkeypatch.setattr("warnings.warn", lambda *_, **__: None)

    monkeypatch.setattr("warnings.warn", write)
    assert study(trace_of([tmp_path / "pipe"])) == study(trace_of([TRACES / "blkparse.txt"]))
    os.wait()


def test_a_pipe_is_not_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert invoke(["replay", str(tmp_path / "pipe"), "--on", "model:quad-7200"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "pipe: is no regular file" in line
    (tmp_path / "e.toml").write_text('machine = "model:quad-7200"\n[workloads.w]\nkind = "trace"\nfile = "pipe"\n')
    assert invoke(["run", str(tmp_path / "e.toml")]) == 2
    assert "e.toml:4: workloads.w.file" in capsys.readouterr().err


def test_the_page_of_a_pipe_reads_it_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=lambda: (tmp_path / "pipe").write_bytes((TRACES / "blkparse.txt").read_bytes()), daemon=True
    )
    writer.start()
    assert invoke(["trace", str(tmp_path / "pipe"), "-o", str(tmp_path / "page.html")]) == 0
    writer.join(60)
    page = (tmp_path / "page.html").read_text()
    assert 'class="plot-requests"' not in page and "drawn down to single ones" not in page


@pytest.mark.parametrize("action", ["C", "Q", "G", "I", "D"])
def test_a_trace_with_one_kind_of_event_has_its_page(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (TRACES / "blkparse.txt").read_text().splitlines(keepends=True)
    (tmp_path / "odd.txt").write_text("".join(line for line in lines if f" {action} " in line))
    assert invoke(["trace", str(tmp_path / "odd.txt"), "-o", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().err == ""
