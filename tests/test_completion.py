"""What a real bash completes after `iolab`: commands, options, names, run directories."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import CommandLine
from support import prepared

ASK = r"""
source <(iolab --show-completion bash)
complete -p iolab >&2
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
COMP_LINE=$1 COMP_POINT=${#1}
_iolab_completion iolab
printf '%s\n' "${COMPREPLY[@]}"
"""


def completed(iolab: CommandLine, line: str) -> list[str]:
    """What bash would put in place of the line's last word."""
    done = subprocess.run(
        ["bash", "--norc", "-c", ASK, "bash", line],
        cwd=iolab.cwd,
        env={
            **os.environ,
            "PATH": f"{prepared.program().parent}:{os.environ['PATH']}",
            "IOLAB_STATE_DIR": str(iolab.state_dir),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "_iolab_completion iolab" in done.stderr, "bash knows whom to ask"
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("iolab rep", ["report", "reproduce"]),
        ("iolab run --until-", ["--until-decided"]),
        ("iolab run --machine ho", ["host"]),
        ("iolab run --machine mod", ["model:nvme", "model:one_disk"]),
        ("iolab run --machine model:nv", ["nvme"]),
        ("iolab run --probe swi", ["switches"]),
        ("iolab show x --as mark", ["markdown"]),
        ("iolab list exp", ["experiments"]),
        ("iolab reproduce group", ["group-idle"]),
        ("iolab bisect xfs-bisect --good 3.", ["3.0", "3.7"]),
        ("iolab replay x --on host --setting sched", ["scheduler="]),
        ("iolab compare --metric latency_ns_p99", ["latency_ns_p99", "latency_ns_p999"]),
    ],
)
def test_names_are_completed(line: str, expected: list[str], iolab: CommandLine) -> None:
    found = completed(iolab, line)
    assert set(expected) <= set(found)
    word = line.split()[-1].rpartition(":")[2]
    assert all(name.startswith(word) for name in found)


def test_run_directories_and_files_are_completed(iolab: CommandLine) -> None:
    for name in ("base", "iolab-runs/before", "iolab-runs/after"):
        (iolab.cwd / name).mkdir(parents=True)
        (iolab.cwd / name / "journal.jsonl").touch()
    for name in ("other", ".hidden"):
        (iolab.cwd / name).mkdir()
    iolab.write("numbers.csv", "a,b\n")
    everything = ["base", "iolab-runs/after", "iolab-runs/before", "numbers.csv"]
    assert completed(iolab, "iolab show ") == everything
    assert completed(iolab, "iolab compare base iolab-runs/b") == ["iolab-runs/before"]
    assert completed(iolab, "iolab run --resume ") == everything[:3]
    assert completed(iolab, "iolab show zzz") == []


def test_experiments_here_and_those_that_come_with_iolab_are_completed(iolab: CommandLine) -> None:
    iolab.write("mode.toml", "")
    iolab.write("mode.txt", "")
    assert completed(iolab, "iolab run mode") == ["mode.toml", "model"]


@pytest.mark.long
def test_settings_of_the_run_on_the_line_are_completed(iolab: CommandLine) -> None:
    iolab("run", "model", "--rounds", "1", "--out", "out")
    assert completed(iolab, "iolab compare out --baseline bf") == ["bfq", "bfq_no_idling"]
    assert completed(iolab, "iolab compare missing --baseline bf") == []


def test_installing_writes_the_script_and_no_start_up_file(iolab: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(iolab.cwd))
    for shell in ("bash", "zsh", "fish"):
        told = iolab("--install-completion", shell).stdout
        path = Path(told.splitlines()[0].removeprefix("Completion: "))
        assert path.is_relative_to(iolab.cwd)
        assert path.read_text() == iolab("--show-completion", shell).stdout
    assert not list(iolab.cwd.glob(".*rc")) and not list(iolab.cwd.glob(".*profile"))
    iolab("--show-completion", "bsh", status=None).assert_one_clear_line(2, "bsh: unknown shell; did you mean bash?")
