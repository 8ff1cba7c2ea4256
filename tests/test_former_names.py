"""Keys that had another name in the version before: they work, and a line says so."""

from pathlib import Path

import pytest
from iolab.base.errors import InputError, RenamedKeyWarning
from iolab.base.former_names import renewed
from iolab.base.toml import parse
from iolab.files import experiment
from iolab.files.machine_file import read
from iolab.presentation.cli.invoke import invoke

MACHINES = Path(__file__).parents[1] / "machines"
RENAMED = {
    "numa_nodes = ": "cells = ",
    "sockets_per_node": "sockets_per_cell",
    "latency_other_node_ns": "latency_other_cell_ns",
    "peek = true": "takes_one_ahead = true",
    'migrates_within = "node"': 'migrates_within = "cell"',
}
EXPERIMENT = """
machine = "model:old.toml"
rounds = 1
[workloads.reads]
file_size = "1MiB"
duration = "5ms"
[settings.as_is]
[settings.flat]
machine = { "completion.form" = "softirq" }
"""


def as_before(text: str) -> str:
    for new, old in RENAMED.items():
        assert new in text, new
        text = text.replace(new, old)
    return text


@pytest.fixture
def old_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    text = as_before((MACHINES / "ia64-32way.toml").read_text())
    (tmp_path / "old.toml").write_text(text)
    (tmp_path / "old.experiment.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "old.toml"


def test_old_names_mean_the_same_machine(old_machine: Path) -> None:
    with pytest.warns(RenamedKeyWarning) as told:
        old = read("model:old.toml", old_machine.parent)
    assert old.table == read("model:ia64-32way", old_machine.parent).table
    assert {str(one.message).split(": ")[1].split()[0] for one in told} >= {
        "cells",
        "sockets_per_cell",
        "migrates_within",
    }


def test_a_line_says_where_each_stands_and_what_it_is_called(
    old_machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["run", "old.experiment.toml", "--out", "run", "--seed", "1"]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    line = next(number for number, text in enumerate(old_machine.read_text().splitlines(), 1) if "cells = " in text)
    assert (
        f"iolab: warning: old.toml:{line}: cells is called numa_nodes now; the next version refuses the old name"
        in told
    )
    assert any("settings.flat: completion.form is called completion.variant now" in text for text in told)


def test_both_names_at_once_are_a_mistake(old_machine: Path) -> None:
    old_machine.write_text(old_machine.read_text().replace("cells = ", "numa_nodes = 8, cells = ", 1))
    (old_machine.parent / "both.toml").write_text(EXPERIMENT)
    with pytest.raises(InputError, match="cells"), pytest.warns(RenamedKeyWarning):
        experiment.load(old_machine.parent / "both.toml")


def test_lines_of_errors_stay_those_of_the_file() -> None:
    document = parse("a = 1\n[t]\nold = 2\n", "x.toml")
    with pytest.warns(RenamedKeyWarning, match=r"x\.toml:3: old is called new now"):
        present = renewed(document, {("t", "old"): "new"})
    assert present.values == {"a": 1, "t": {"new": 2}} and present.line(("t", "new")) == 3
