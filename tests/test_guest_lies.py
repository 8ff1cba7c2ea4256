"""Guests that lie: a kernel from elsewhere may say anything in its agent's place, hang, or come with files that are
none. QEMU's place is taken by programs that say what such an agent would."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_machine import record_of
from iolab.base.errors import InputError, MachineError
from iolab.domain import control
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.files.experiment import loads
from iolab.machines.guest import guest, kernel, plan, programs, session, symbols
from iolab.machines.guest.modules import Modules
from iolab.machines.guest.reader import InvalidMessage, Reader
from iolab.studies.run.plan import Plan
from support.agents import answers, emulator, emulator_that_says, lines

EXPERIMENT = """
machine = "guest:{kernel}"
seed = 1
[target]
kind = "scratch"
size = "64MiB"
filesystem = "none"
[workloads.reads]
operations = 2000
engine = "psync"
file_size = "8MiB"
layout = false
[probes]
instructions = {counts}
"""


@pytest.fixture(autouse=True)
def _no_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "agent", lambda: Path("/dev/null"))
    monkeypatch.setattr(programs, "counter", lambda: Path("/dev/null"))
    monkeypatch.setattr(programs, "qemu", lambda: str(tmp_path / "qemu"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("IOLAB_STATE_DIR", str(tmp_path / "state"))


def trial_of(tmp_path: Path, *, counts: bool = False, limit_s: float = 60.0) -> Trial:
    (tmp_path / "kernel").write_bytes(b"a kernel")
    text = EXPERIMENT.format(kernel=tmp_path / "kernel", counts=str(counts).lower())
    (trial,) = Plan(loads(text, "guest.toml"), 1).round(0)
    assert trial.guest is not None
    return trial.model_copy(update={"guest": trial.guest.model_copy(update={"time_limit_ns": int(limit_s * 1e9)})})


def run(trial: Trial) -> Record:
    return guest.execute(trial, lambda _: None, lambda: False)


def honest(trial: Trial) -> list[dict[str, Any]]:
    made = plan.make(control.amend(trial), Modules(None))
    return json.loads(json.dumps(answers(made, record_of(trial).phases)))  # type: ignore[no-any-return]


def test_an_honest_guest_is_believed(tmp_path: Path) -> None:
    trial = trial_of(tmp_path)
    emulator_that_says(tmp_path / "qemu", lines(honest(trial)))
    record = run(trial)
    assert (record.status, [phase["phase"] for phase in record.phases]) == ("ok", ["main"])


def told(messages: list[dict[str, Any]]) -> Any:
    """What the phase's step told."""
    return next(one["value"] for one in messages if (one.get("value") or {}).get("record"))


def job(messages: list[dict[str, Any]]) -> Any:
    return told(messages)["record"]["groups"][0]["jobs"][0]


def nested(depth: int) -> Any:
    return [] if not depth else [nested(depth - 1)]


LIES: dict[str, Callable[[list[Any]], Any]] = {
    "infinity": lambda m: job(m)["read"]["latency"].update(mean_ns=float("inf")),
    "NaN": lambda m: job(m)["read"]["latency"].update(mean_ns=float("nan")),
    "a truth for a number": lambda m: told(m)["record"].update(elapsed_ns=True),
    "a text for a number": lambda m: told(m)["record"].update(elapsed_ns="1"),
    "a fraction for a count": lambda m: told(m)["record"].update(elapsed_ns=0.5),
    "a negative time": lambda m: told(m)["record"].update(elapsed_ns=-1),
    "a huge number": lambda m: told(m)["record"].update(elapsed_ns=10**30),
    "null for a number": lambda m: told(m)["record"].update(elapsed_ns=None),
    "operations that are a truth": lambda m: told(m).update(ops=True),
    "operations that are infinite": lambda m: told(m).update(ops=float("inf")),
    "negative operations": lambda m: told(m).update(ops=-1),
    "no operations": lambda m: told(m).pop("ops"),
    "a record that is a text": lambda m: told(m).update(record="x"),
    "a record that is empty": lambda m: told(m).update(record={}),
    "a record that is a list": lambda m: told(m).update(record=[]),
    "a record that is null": lambda m: told(m).update(record=None),
    "a record with more": lambda m: told(m)["record"].update(more=1),
    "a record with less": lambda m: told(m)["record"].pop("groups"),
    "another phase": lambda m: told(m)["record"].update(phase="other"),
    "no groups": lambda m: told(m)["record"].update(groups=[]),
    "groups that are a text": lambda m: told(m)["record"].update(groups="x"),
    "a group that is null": lambda m: told(m)["record"].update(groups=[None]),
    "an unknown job": lambda m: job(m).update(name="other"),
    "a job twice": lambda m: told(m)["record"]["groups"].append(told(m)["record"]["groups"][0]),
    "a name of two lines": lambda m: told(m)["record"]["groups"][0].update(notes=["x\nerror: y"]),
    "an escape to the terminal": lambda m: told(m)["record"]["groups"][0].update(notes=["\x1b[2J"]),
    "a long note": lambda m: told(m)["record"]["groups"][0].update(notes=["x" * 5000]),
    "an unknown clock": lambda m: told(m)["record"].update(clock="sundial"),
    "an end before the beginning": lambda m: told(m)["record"].update(measured_from_ns=5, measured_to_ns=4),
    "a latency of nothing": lambda m: job(m)["read"].update(count=0),
    "no latency of something": lambda m: job(m)["read"].update(latency=None),
    "a histogram of fours": lambda m: job(m)["read"]["latency"]["histogram"].append([1, 2, 3, 4]),
    "a histogram out of order": lambda m: job(m)["read"]["latency"]["histogram"].reverse(),
    "a histogram of more": lambda m: job(m)["read"]["latency"]["histogram"].append([10**9, 10**9, 1]),
    "a mean beyond the most": lambda m: job(m)["read"]["latency"].update(mean_ns=1e12),
    "an unknown step": lambda m: m.insert(2, {"step": 999, "value": None}),
    "a step that is a text": lambda m: m.insert(2, {"step": "1", "value": None}),
    "a step that is negative": lambda m: m.insert(2, {"step": -1, "value": None}),
    "a step twice": lambda m: m.insert(2, m[1]),
    "a step left out": lambda m: m.pop(2),
    "a step without an answer": lambda m: m[2].pop("value"),
    "a step of another kind": lambda m: m[1].update(told={"before": "", "after": ""}),
    "steps before it is up": lambda m: m.pop(0),
    "up twice": lambda m: m.insert(1, m[0]),
    "up as a list": lambda m: m[0].update(up=[]),
    "up of two lines": lambda m: m[0].update(up="6.1\n7.0"),
    "an early end": lambda m: m.insert(2, {"end": True}),
    "an end that is false": lambda m: m[-1].update(end=False),
    "more after the end": lambda m: m.append(m[-1]),
    "symbols unasked": lambda m: m.insert(1, {"bytes": 5}),
    "symbols twice": lambda m: m.insert(-2, {"bytes": 0}),
    "symbols that are infinite": lambda m: m.insert(-3, {"bytes": float("inf")}),
    "a failure that is a text": lambda m: m.insert(1, {"failed": "x"}),
    "a failure that is empty": lambda m: m.insert(1, {"failed": {}}),
    "a failure of another step": lambda m: m.insert(1, failed(step=7)),
    "a failure whose error is a text": lambda m: m.insert(1, failed(errno="ENOSPC")),
    "an unknown message": lambda m: m.insert(1, {"hello": 1}),
    "a list": lambda m: m.insert(1, [1]),
    "a number": lambda m: m.insert(1, 1),
    "null": lambda m: m.insert(1, None),
    "nested without end": lambda m: m.insert(1, {"up": nested(900)}),
}


def failed(**changes: object) -> dict[str, Any]:
    return {"failed": {"what": "no", "errno": None, "step": None, "of_plan": False} | changes}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_fails_its_trial_in_one_line_that_names_the_guest_and_quotes_it(tmp_path: Path, lie: str) -> None:
    trial = trial_of(tmp_path)
    messages = honest(trial)
    LIES[lie](messages)
    emulator_that_says(tmp_path / "qemu", lines(messages))
    assert_refused(run(trial), tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\n",
        b'{"up":"\xff"}\n',
        b'{"up":"\\ud800"}\n',
        b"\n",
        b"\0\n",
        b"{\n",
        b'{"up":"x"\n',
        b'{"up":1e999}\n',
    ],
)
def test_so_do_bytes_that_are_no_message(tmp_path: Path, line: bytes) -> None:
    emulator_that_says(tmp_path / "qemu", line)
    assert_refused(run(trial_of(tmp_path)), tmp_path)


@pytest.mark.parametrize(
    "commands",
    [
        'exec yes \'{"up":"x"}\'',
        "exec yes '{\"bytes\":0}'",
        'echo \'{"up":"x"}\'; exec yes \'{"step":0,"value":null}\'',
        "exec yes ''",
        "exec cat /dev/zero",
        "exec tr '\\\\0' '[' < /dev/zero",
    ],
)
def test_so_do_lines_and_steps_without_end(tmp_path: Path, commands: str) -> None:
    emulator(tmp_path / "qemu", commands)
    assert_refused(run(trial_of(tmp_path)), tmp_path)


def assert_refused(record: Record, tmp_path: Path) -> None:
    assert (record.status, record.phases) == ("failed", [])
    (fault,) = record.faults
    assert fault.what.startswith(f"guest {tmp_path}/kernel: the guest sent what iolab's agent never sends, in line ")
    assert "\n" not in fault.what and len(fault.what) < 600


def test_a_line_of_many_mistakes_is_refused_at_the_first() -> None:
    """Each would take some hundred bytes to list."""
    reader = Reader([{"do": "load", "phase": {"name": "main", "groups": []}}])
    reader.take(b'{"up":"x"}\n')
    many = b",".join([b'"x"'] * 100_000)
    with pytest.raises(InvalidMessage, match=r"line 2: value\.record\.build_profile: Field required"):
        reader.take(b'{"step":0,"value":{"record":{"groups":[' + many + b']},"ops":1}}\n')


def test_lines_may_come_in_any_pieces() -> None:
    content = b'{"up":"x"}\n{"bytes":3}\na\nb{"step":0,"value":null}\n{"end":true}\n'
    for size in (1, 2, 7, len(content)):
        reader = Reader([{"do": "symbols"}])
        for at in range(0, len(content), size):
            reader.take(content[at : at + size])
        assert (reader.report.up, reader.report.symbols, reader.report.ended) == ("x", b"a\nb", True)


def test_the_limit_of_wall_time_holds_while_symbols_are_learnt(tmp_path: Path) -> None:
    emulator(tmp_path / "qemu", "exec tail -f /dev/null")
    (fault,) = run(trial_of(tmp_path, counts=True, limit_s=0.3)).faults
    assert fault.what == f"guest {tmp_path}/kernel: the guest did not end within 0.3 s, without a message"


def test_a_trial_that_is_stopped_while_symbols_are_learnt_is_interrupted(tmp_path: Path) -> None:
    emulator(tmp_path / "qemu", "exec tail -f /dev/null")
    record = guest.execute(trial_of(tmp_path, counts=True), lambda _: None, lambda: True)
    assert record.status == "interrupted"


def test_it_holds_for_what_comes_before_the_machine(tmp_path: Path) -> None:
    emulator(tmp_path / "qemu", "exec tail -f /dev/null")
    (fault,) = run(trial_of(tmp_path, limit_s=1e-9)).faults
    what = "the guest did not end within 1e-09 s, making it included; raise guest.time_limit"
    assert fault.what == f"guest {tmp_path}/kernel: {what}"


def test_symbols_that_are_none_are_not_kept(tmp_path: Path) -> None:
    trial = trial_of(tmp_path, counts=True)
    text = b"\x1b[2J no symbols\n0000 T x\n"
    said = lines([{"up": "x"}, {"bytes": len(text)}]) + text + lines([{"step": 0, "value": None}, {"end": True}])
    emulator_that_says(tmp_path / "qemu", said)
    with pytest.raises(MachineError, match="does not list its symbols"):
        run(trial)
    assert trial.guest is not None
    assert symbols.known(kernel.find(trial.guest.kernel).identity()) is None


def test_a_command_in_a_guest_that_lies_ends_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "kernel").write_bytes(b"a kernel")
    wanted: dict[str, Any] = {"memory_bytes": 2**28, "cpus": 1, "modules": []}
    name = str(tmp_path / "kernel")
    emulator_that_says(tmp_path / "qemu", lines([{"up": "x"}, {"step": 0, "value": {"status": 7}}, {"end": True}]))
    assert session.run(name, ["true"], **wanted) == 7
    for lie in (b"\xff\n", lines([{"up": "x"}, {"step": 0, "value": {"status": "0"}}]), lines([{"failed": "x"}])):
        emulator_that_says(tmp_path / "qemu", lie)
        with pytest.raises(MachineError, match="sent what iolab's agent never sends"):
            session.run(name, ["true"], **wanted)
    emulator_that_says(tmp_path / "qemu", b"")
    with pytest.raises(MachineError, match="it ended before its command did"):
        session.run(name, ["true"], **wanted)


def test_a_kernel_of_100_gib_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(100 << 30)
    with pytest.raises(InputError, match="longer than 512MiB, the most for a kernel's image"):
        kernel.find(str(tmp_path / "large"))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("/" + "x" * 5000, "no such kernel image"),
        ("/dev/zero", "no such kernel image"),
        ("~nobody-of-this-name/vmlinuz", "~nobody-of-this-name is the home of no user"),
        ("~nobody-of-this-name/linux@v6.1", "~nobody-of-this-name is the home of no user"),
    ],
)
def test_a_path_that_is_none_is_refused(name: str, what: str) -> None:
    with pytest.raises(InputError, match=what):
        kernel.find(name)
