"""`iolab run --part`: one run over several boots of two kernels, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from iolab.machines.host import describe
from iolab.presentation.cli.invoke import invoke
from support.runs import events

EXPERIMENT = """\
title = "Which kernel is faster?"
rounds = 4
rounds_per_boot = 2
seed = 1

[target]
kind = "directory"
path = "."

[workloads.reads]
engine = "null"
operations = 2000

[settings.old]
part = "old"

[settings.new]
part = "new"
workload = { block_size = "8KiB" }

[compare]
metrics = ["iops", "bytes"]
"""


class Machine:
    """What the kernel says of itself, as if the machine were booted again and again; all else is this machine."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.boots = 0
        self.release = ""
        self.more: dict[str, Any] = {}
        of_kernel, whole = describe._kernel, describe.describe
        patch.setattr(
            describe, "_kernel", lambda: {**of_kernel(), "release": self.release, "boot_id": f"boot-{self.boots}"}
        )
        patch.setattr(describe, "describe", lambda target=None: {**whole(target), **self.more})

    def boot(self, release: str) -> None:
        self.boots += 1
        self.release = release


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IOLAB_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "kernels.toml").write_text(EXPERIMENT)
    return Machine(monkeypatch)


def run(part: str, *more: str) -> int:
    return invoke(["run", "kernels.toml", "--part", part, "--out", "run", *more])


def test_one_run_over_four_boots(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for release, part in (("6.1.0", "old"), ("6.8.0", "new"), ("6.8.0", "new"), ("6.1.0", "old")):
        machine.boot(release)
        assert run(part) == 0
        told.append(capsys.readouterr().out)
    assert "Boots:  old 1 of 2, new 0 of 2" in told[0]
    assert "Next:   boot part new, then: iolab run kernels.toml --out run --part new" in told[0]
    assert "Next:   boot part new (kernel 6.8.0), then: " in told[1]
    assert "Next:   boot part old (kernel 6.1.0), then: " in told[2]
    assert "Enough: every part has all its boots." in told[3]
    finished = events(Path("run"), "trial_finished")
    assert [(one["setting"], one["round"]) for one in finished] == [
        ("old", 0), ("old", 1), ("new", 0), ("new", 1), ("new", 2), ("new", 3), ("old", 2), ("old", 3),
    ]  # fmt: skip
    assert len(events(Path("run"), "run_finished")) == 1

    assert invoke(["compare", "run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for one in found["comparisons"]:
        assert (one["pairing"], one["against"], one["setting"]) == ("boot", "old", "new")
        if one["metric"] == "iops":  # tails have a value only if there were enough operations
            assert one["n"] == 2
        assert one["notes"] == ["paired by boot: what changed between two boots is in this difference"]
    assert not [problem for problem in found["problems"] if "kernel" in problem]
    machine.boot("6.1.0")
    assert run("old") == 2
    assert "complete: 2 boots of each part are measured; for more, add --rounds 6" in capsys.readouterr().err
    assert run("old", "--rounds", "6") == 0
    assert "Boots:  old 3 of 3, new 2 of 3" in capsys.readouterr().out


def test_json_says_what_to_boot_next(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.boot("6.8.0")
    assert run("new", "--json", "--fail-on", "slower") == 0
    printed = capsys.readouterr()
    assert "--fail-on is judged when each part has a trial, and not yet" in printed.err
    assert json.loads(printed.out)["parts"] == {
        "decided": None,
        "boots_measured": {"old": 0, "new": 1},
        "boots_of_each": 2,
        "next": "old",
        "kernels": {"new": "6.8.0"},
        "differs": [],
    }
    machine.boot("6.1.0")
    assert invoke(["run", "--resume", "run", "--part", "old", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["parts"]["boots_measured"] == {"old": 1, "new": 1} and document["comparisons"]


def refused(capsys: pytest.CaptureFixture[str], part: str, status: int, *more: str) -> str:
    before = Path("run/journal.jsonl").read_text() if Path("run").exists() else None
    assert run(part, *more) == status
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("iolab:")]
    assert len(lines) == 1
    if before is not None:
        assert "trial_started" not in Path("run/journal.jsonl").read_text()[len(before) :]
    return lines[0]


def test_what_is_not_another_boot_of_another_kernel_is_refused(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.boot("6.1.0")
    assert run("old") == 0
    capsys.readouterr()
    line = refused(capsys, "new", 3)
    assert "this boot has measured boot 1 of part old already; boot part new first" in line
    machine.boot("6.1.0")
    assert "part new has the kernel of part old, 6.1.0" in refused(capsys, "new", 3)
    assert "part old is a boot ahead; boot part new next" in refused(capsys, "old", 3)
    machine.boot("6.8.0")
    assert run("new") == 0
    capsys.readouterr()
    machine.boot("6.2.0")
    assert "part old was measured with kernel 6.1.0, and this is kernel 6.2.0" in refused(capsys, "old", 3)


def test_nothing_but_the_kernel_may_differ(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.boot("6.1.0")
    machine.more = {"hostname": "here", "clock": {"source": "tsc"}}
    assert run("old") == 0
    machine.boot("6.8.0")
    machine.more = {"hostname": "elsewhere", "clock": {"source": "tsc"}}
    capsys.readouterr()
    line = refused(capsys, "new", 3)
    assert "more than the kernel differs from the boot of part old: machine here is now elsewhere" in line
    machine.more = {"hostname": "here", "clock": {"source": "hpet"}}
    assert run("new") == 0
    assert "differs between the parts, beside the kernel: clock: tsc (old), hpet (new)" in capsys.readouterr().out


def test_a_boot_that_was_cut_short_is_gone_on_with(
    machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from iolab.base.errors import MachineError
    from iolab.studies.run.machine_executor import MachineExecutor

    machine.boot("6.1.0")
    whole, ran = MachineExecutor.run, []

    def once(self: MachineExecutor, trial: Any, *more: Any) -> Any:
        if ran:
            raise MachineError("the power went")
        ran.append(trial)
        return whole(self, trial, *more)

    monkeypatch.setattr(MachineExecutor, "run", once)
    assert run("old") == 3
    monkeypatch.setattr(MachineExecutor, "run", whole)
    assert run("old") == 0
    assert "Boots:  old 1 of 2, new 0 of 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "part", "more", "words"),
    [
        (EXPERIMENT, "older", (), "older: unknown part; did you mean old?"),
        (EXPERIMENT, "old", ("--until-decided",), "5 or more"),
        (EXPERIMENT, "old", ("--rounds", "3"), "3 given; expected a multiple of rounds_per_boot = 2"),
        (EXPERIMENT.replace('part = "new"', ""), "old", (), "no part, and other settings have one: old"),
        (EXPERIMENT.replace('part = "new"', "part = 5"), "old", (), 'expected a name such as "old"'),
        (EXPERIMENT.replace("rounds = 4", "rounds = 5"), "old", (), "5 given, which is no multiple"),
        (EXPERIMENT.replace('"new"', '"old"'), "old", (), "all are of part old"),
        (EXPERIMENT.replace('part = "old"', "").replace('part = "new"', ""), "old", (), "no setting has a part"),
    ],
)
def test_mistakes_are_one_clear_line(
    machine: Machine,
    capsys: pytest.CaptureFixture[str],
    text: str,
    part: str,
    more: tuple[str, ...],
    words: str,
) -> None:
    machine.boot("6.1.0")
    Path("kernels.toml").write_text(text)
    assert run(part, *more) == 2
    error = capsys.readouterr().err
    assert words in error and "Traceback" not in error
    assert not Path("run").exists()


def test_a_run_with_parts_needs_one_and_a_directory(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.boot("6.1.0")
    assert invoke(["run", "kernels.toml", "--out", "run"]) == 2
    assert "the settings need several boots: old, new; name this one" in capsys.readouterr().err
    assert invoke(["run", "kernels.toml", "--part", "old"]) == 2
    assert "--out DIR" in capsys.readouterr().err
    assert run("old") == 0
    Path("kernels.toml").write_text(EXPERIMENT.replace("2000", "3000"))
    machine.boot("6.8.0")
    capsys.readouterr()
    assert "is not the experiment that the run was started with" in refused(capsys, "new", 2)


@pytest.mark.long
def test_until_decided_looks_after_each_pair_of_boots_and_then_asks_for_no_more(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    text = EXPERIMENT.replace("2000", "100")
    text = text.replace('workload = { block_size = "8KiB" }', "workload = { operations = 200 }")
    Path("kernels.toml").write_text(text.replace('["iops", "bytes"]', '["ops"]'))
    machine.boot("6.1.0")
    assert run("old", "--until-decided", "--rounds", "8") == 2
    assert (
        "--until-decided: 4 boots of each part are the most, and the first look is after 5; "
        "allow more: --rounds 10 or above"
    ) in capsys.readouterr().err
    kernels = {"old": "6.1.0", "new": "6.8.0"}
    part, boots = "old", 0
    more = ("--until-decided", "--rounds", "40")
    while part is not None and boots < 40:
        machine.boot(kernels[part])
        assert run(part, *more, "--json") == 0
        state = json.loads(capsys.readouterr().out)["parts"]
        part, more, boots = state["next"], (), boots + 1
        assert state["decided"] is (part is None)
    looks = events(Path("run"), "look")
    assert state["boots_measured"] == {"old": boots // 2, "new": boots // 2}
    assert [look["rounds"] for look in looks] == list(range(10, boots + 1, 2))
    assert boots < 40
    assert [bool(look["undecided"]) for look in looks] == [True] * (len(looks) - 1) + [False]
    assert len(events(Path("run"), "run_finished")) == 1

    machine.boot("6.1.0")
    assert run("old") == 2
    said = capsys.readouterr().err
    assert f"complete: {boots // 2} boots of each part are measured, and everything is decided" in said
    assert "start a new run" in said
    assert invoke(["compare", "run", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert (one["pairing"], one["n"], one["verdict"]) == ("boot", boots // 2, "higher")
