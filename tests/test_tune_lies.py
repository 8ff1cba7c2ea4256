"""A tuner's directory that lies: what is wrong with it is one line with file and key, and what was lost is measured."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from iolab.presentation.cli.invoke import invoke

pytestmark = pytest.mark.usefixtures("state_dir")
EXPERIMENT = """
machine = "model:quad-7200"
seed = 1

[workloads.reads]
pattern = "sequential"
direct = false
file_size = "8MiB"
duration = "20ms"

[settings.short]
read_ahead_kb = 8

[tune]
objectives = ["rate_bytes_per_s"]
trials = 16
per_round = 3
key_rounds = 4
confirm = 5

[tune.space]
read_ahead_kb = { low = 8, high = 512, log = true }
nr_requests = [64, 128]
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search that is over."""
    path = tmp_path_factory.mktemp("tune")
    (path / "e.toml").write_text(EXPERIMENT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IOLAB_STATE_DIR", str(path))
        assert invoke(["tune", str(path / "e.toml"), "--out", str(path / "tuned")]) == 0
    for part in ("search/0001", "search/0002", "confirm"):
        assert (path / "tuned" / part / "journal.jsonl").is_file(), part
    return path / "tuned"


@pytest.fixture
def tuned(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "tuned")
    return tmp_path / "tuned"


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], *words: str) -> None:
    capsys.readouterr()
    assert invoke(arguments) == 2, capsys.readouterr().err
    said = capsys.readouterr().err
    assert "defect" not in said
    for line in said.splitlines():
        for word in words:
            assert word in line, line


WRONG: list[Any] = [None, "x", -1, 1.5, True, [], {}, 10**30, "\ud800"]


def test_each_key_of_the_note(tuned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = json.loads((tuned / "tune.json").read_text())
    assert set(whole) == {"format", "seed", "machine"}
    for key in whole:
        for value in WRONG:
            (tuned / "tune.json").write_text(json.dumps({**whole, key: value}))
            if (key, value) not in (("machine", "x"), ("format", True)):
                refused(["tune", str(tuned)], capsys, "tune.json", "JSON" if value == "\ud800" else key)
        (tuned / "tune.json").write_text(json.dumps({name: value for name, value in whole.items() if name != key}))
        refused(["tune", "--resume", str(tuned)], capsys, "tune.json", key)
    for text in ("", "[]", "{", "[" * 100_000, "\xff"):
        (tuned / "tune.json").write_bytes(text.encode("latin-1"))
        refused(["tune", str(tuned)], capsys, "tune.json")


@pytest.mark.parametrize("part", [".", "search/0001", "confirm"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "rounds =",
        lambda text: "",
        lambda text: "settings = 3\n",
        lambda text: text.replace("read_ahead_kb = 8", 'read_ahead_kb = "none"'),
        lambda text: text.replace("[settings.", "[other."),
        lambda text: text + "\0",
    ],
)
def test_an_experiment_that_is_another(
    tuned: Path, part: str, damage: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = tuned / part / "experiment.toml"
    path.write_text(damage(path.read_text()))
    refused(["tune", str(tuned)], capsys, "experiment.toml")
    refused(["tune", "--resume", str(tuned)], capsys, "experiment.toml")


@pytest.mark.parametrize("part", ["search/0001", "search/0002"])
@pytest.mark.parametrize("damage", ["removed", "cut", "changed"])
def test_a_lost_trial_is_named_and_measured_again(
    tuned: Path, part: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["tune", str(tuned), "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    path = sorted((tuned / part / "trials").glob("*.parquet"))[1]
    content = path.read_bytes()
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(content[:500] if damage == "cut" else content[:-40] + b"\0" * 40)
    refused(["tune", str(tuned)], capsys, f"{part}: trials/{path.name}")
    assert invoke(["tune", "--resume", str(tuned), "--json"]) == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out) == before
