"""Names, directories and variables that nothing can be done with: one line, whichever command is given them."""

import os
from pathlib import Path

import pytest
from iolab.presentation.cli.invoke import invoke
from support.stored import stored_run

LONG = "n" * 256
NO_TEXT = os.fsdecode(b"odd\xff")
COMMANDS = [
    ["show"],
    ["compare"],
    ["explain"],
    ["history"],
    ["trace"],
    ["ls"],
    ["serve"],
    ["site"],
    ["rm"],
    ["tag"],
    ["run", "--resume"],
    ["tune", "--resume"],
    ["bisect", "--resume"],
]
TEXT = """\
machine = "model:quad-7200"
rounds = 1
[workloads.w]
file_size = "1MiB"
duration = "10ms"
"""


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert invoke(arguments) == 2, capsys.readouterr()
    (line,) = capsys.readouterr().err.splitlines()
    assert "defect" not in line
    for word in words:
        assert word in line
    return line


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", [LONG, NO_TEXT], ids=["long", "no text"])
def test_a_name_that_nothing_can_have(command: list[str], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused([*command, name], capsys)


@pytest.mark.parametrize("name", [LONG, NO_TEXT], ids=["long", "no text"])
@pytest.mark.parametrize("command", ["run", "import", "site", "report"])
def test_output_under_such_a_name(
    command: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text(TEXT)
    Path("a.csv").write_text("setting,round,elapsed_s\na,0,1\nb,0,2\n")
    Path("runs").mkdir()
    given = {"run": "e.toml", "import": "a.csv", "site": "runs", "report": "a.csv"}[command]
    refused([command, given, "-o" if command == "report" else "--out", name], capsys)


@pytest.mark.parametrize(
    "arguments",
    [["run", "{}/e.toml"], ["run", "{}/e.toml", "--out", "x"], ["ls", "."], ["site", "."], ["report", "{}/a.csv"]],
    ids=" ".join,
)
def test_in_a_directory_that_was_removed(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.toml").write_text(TEXT)
    (tmp_path / "a.csv").write_text("setting,round,elapsed_s\na,0,1\nb,0,2\n")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    refused([one.format(tmp_path) for one in arguments], capsys, "current directory has been removed")


@pytest.mark.parametrize("out", [".", "..", "../here"])
def test_a_site_does_not_replace_where_one_is(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("runs", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    refused(["site", "../runs", "--out", out], capsys, "the current directory")


def test_a_collection_below_a_directory_whose_name_is_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored_run(tmp_path / NO_TEXT / "run")
    monkeypatch.chdir(tmp_path / NO_TEXT)
    assert invoke(["site", ".", "--out", "../site"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("threads", ["0", "-1", "x", "1000000", "99999999999999999999"])
def test_threads_that_polars_can_not_have(
    threads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POLARS_MAX_THREADS", threads)
    refused(["show", str(tmp_path)], capsys, "POLARS_MAX_THREADS", "from 1 to")


def test_nothing_of_a_file_that_is_no_job_file_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:$6$hash:20228:0:99999:7:::\ndaemon:*:20228\n")
    experiment = tmp_path / "e.toml"
    experiment.write_text(f'machine = "model:quad-7200"\n[workloads.w]\nkind = "fio"\nfile = "{secret}"\n')
    assert "hash" not in refused(["run", str(experiment)], capsys, "e.toml:4", "no section")
