"""The state directory: others cannot plant what root undoes, nor keep it from undoing; nothing else is lost in it."""

import fcntl
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE

import pytest
from iolab.base import checked_lines
from iolab.machines.system import mounts, state, tracefs
from iolab.machines.system.identity import identity_at
from support.command_line import CommandLine, wait_until
from support.devices import fill, loops_backed_under, tmpfs
from support.experiments import SCRATCH, experiment, reads_for
from support.leftovers import look
from support.runs import events, statuses

DIRECTORY = 'kind = "directory"\npath = "."'
VM = Path("/proc/sys/vm")
BACKGROUND = ("dirty_background_ratio", "dirty_background_bytes")
UNSHARE = ("unshare", "--mount", "--propagation", "private")


def plant(undo: Path, *entries: dict[str, object]) -> Path:
    """An undo journal of a dead owner, as iolab would have written it."""
    undo.mkdir(parents=True, exist_ok=True)
    path = undo / "999999999-planted.jsonl"
    header = {"boot_id": state.boot_id()}
    path.write_bytes(b"".join(checked_lines.encode(entry) for entry in (header, *entries)))
    path.chmod(0o600)
    return path


def removal(number: int, path: Path) -> dict[str, object]:
    """The entry of an empty file that iolab made there."""
    return {"number": number, "action": "RemoveFile", "path": str(path), "identity": identity_at(path)}


@pytest.mark.parametrize("command", ["restore", "run"])
def test_nothing_is_undone_that_others_could_have_planted(iolab: CommandLine, tmp_path: Path, command: str) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    journal = plant(iolab.state_dir / "undo", removal(0, victim))
    journal.parent.chmod(0o777)
    iolab.write("experiment.toml", experiment(DIRECTORY))
    arguments = ("restore",) if command == "restore" else ("run", "experiment.toml")
    iolab(*arguments, status=None).assert_one_clear_line(3, str(journal.parent), "all users", "IOLAB_STATE_DIR")
    assert victim.exists() and journal.exists()
    leftovers = [finding for finding in iolab("doctor", "--json").json()["findings"] if finding["area"] == "leftovers"]
    assert [finding["state"] for finding in leftovers] == ["limited"]
    assert "all users" in leftovers[0]["detail"]


@pytest.mark.root
@pytest.mark.machine
def test_another_user_s_journal_is_named_and_left_alone(iolab: CommandLine, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    journal = plant(iolab.state_dir / "undo", removal(0, victim))
    os.chown(journal, 65534, 65534)
    outcome = iolab("restore", status=None)
    outcome.assert_one_clear_line(3, "not put back")
    assert f"{journal}: not a file of iolab's: it belongs to the user nobody" in outcome.stdout
    assert victim.exists()


@pytest.mark.parametrize(
    "entry",
    [
        {"action": "WriteFile", "path": "{victim}", "previous": "evil"},
        {"action": "WriteFile", "path": "/proc/sys/vm/../../../{victim}", "previous": "evil"},
        {"action": "WriteFile", "path": "/proc/sys/kernel/core_pattern", "previous": "|{victim}"},
        {"action": "WriteLine", "path": "{victim}/io.cost.qos", "previous": "evil"},
        {"action": "Unmount", "mount_point": "{victim}"},
        {"action": "Unmount", "mount_point": "/iolab-0123456789abcdef/../proc"},
        {"action": "DetachLoop", "backing_file": "{victim}"},
        {"action": "RemoveCgroup", "path": "/sys/fs/cgroup/memory"},
        {"action": "RemoveCgroup", "path": "{victim}/iolab-a-01234567"},
        {"action": "LeaveCgroup", "path": "{victim}/iolab-a-01234567"},
        {"action": "DisableController", "subtree_control": "{victim}", "controller": "io"},
        {"action": "RemoveTraceInstance", "name": "../../theirs"},
    ],
    ids=lambda entry: f"{entry['action']}-{list(entry.values())[1]}",
)
def test_an_entry_that_iolab_would_never_have_written_is_told_and_kept(
    iolab: CommandLine, tmp_path: Path, entry: dict[str, str]
) -> None:
    victim, made = tmp_path / "victim", tmp_path / "made"
    victim.write_text("kept")
    made.touch()
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    planted = {name: value.format(victim=victim) for name, value in entry.items()}
    journal = plant(
        iolab.state_dir / "undo",
        {"number": 0, **planted},
        removal(1, made),
    )
    outcome = iolab("restore", status=None)
    outcome.assert_one_clear_line(3, "1 thing is not put back")
    assert f"{journal}:2: iolab itself never changes this" in outcome.stdout
    assert (victim.read_text(), made.exists()) == ("kept", False)
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert journal.exists()


def test_a_damaged_line_is_told_by_every_command_that_meets_it(iolab: CommandLine, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.touch()
    journal = plant(iolab.state_dir / "undo", removal(0, made), removal(1, made))
    content = journal.read_bytes()
    journal.write_bytes(content.replace(b'"number":0', b'"number":4'))
    for _ in range(2):
        outcome = iolab("restore", status=None)
        outcome.assert_one_clear_line(3, "1 thing is not put back")
        assert f"{journal}:2: damaged" in outcome.stdout
        assert not made.exists()
    assert iolab("restore", "--json", status=3).json()["problems"]
    iolab.write("experiment.toml", experiment(DIRECTORY, rounds=1, workload=reads_for("50ms")))
    assert f"{journal}:2: damaged" in iolab("run", "experiment.toml").text
    assert "dead runs left" in iolab("doctor").stdout.replace("\n", " ")


@pytest.mark.root
@pytest.mark.machine
def test_a_lock_of_another_user_s_on_the_undo_directory_blocks_nobody(iolab: CommandLine) -> None:
    """It could be read by all once, and so be locked by all."""
    undo = iolab.state_dir / "undo"
    undo.mkdir(mode=0o755)
    held = os.open(undo, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        iolab.write("experiment.toml", experiment(DIRECTORY, rounds=1, workload=reads_for("50ms")))
        iolab("run", "experiment.toml")
        assert "Nothing to restore" in iolab("restore").stdout
    finally:
        os.close(held)
    assert undo.stat().st_mode & 0o777 == 0o700


def test_who_still_has_something_to_undo_is_named(iolab: CommandLine) -> None:
    iolab.write("experiment.toml", experiment(DIRECTORY, workload=reads_for("60s")))
    with iolab.start("run", "experiment.toml", "--out", "run") as process:
        wait_until(lambda: bool(list((iolab.state_dir / "undo").glob("*.jsonl"))), "a journal")
        worker = next((iolab.state_dir / "undo").glob("*.jsonl")).name.partition("-")[0]
        assert re.search(rf"\({worker}\)(: .*,)? will put back what it changed itself", iolab("restore").stdout)
        details = [finding["detail"] for finding in iolab("doctor", "--json").json()["findings"]]
        assert any(f"({worker}) will undo what it changed" in detail for detail in details)
        os.killpg(process.pid, signal.SIGINT)
        process.ended()
    assert iolab("restore").stdout == "Nothing to restore.\n"


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.parametrize("filled", ["while it runs", "and it is killed"])
def test_a_state_filesystem_that_fills_up_costs_nothing(iolab: CommandLine, tmp_path: Path, filled: str) -> None:
    """The scratch file lies elsewhere: only the journal is on the full filesystem."""
    backing = tmp_path / "backing"
    backing.mkdir()
    settings = '[settings.deadline]\nscheduler = "mq-deadline"\n'
    target = f'{SCRATCH}\nbacking = "{backing}"'
    iolab.write("experiment.toml", experiment(target, rounds=1, workload=reads_for("2s"), settings=settings))
    with tmpfs(iolab.state_dir, size_kib=256):
        with iolab.start("run", "experiment.toml", "--out", "run") as process:
            wait_until(lambda: deadline_scheduler_under(backing), "the scheduler to be changed")
            fill(iolab.state_dir)
            if filled == "and it is killed":
                os.killpg(process.pid, signal.SIGKILL)
            _, stderr = process.ended()
        if filled == "and it is killed":
            assert loops_backed_under(tmp_path)
            assert "unmounted" in iolab("restore").stdout
        else:
            assert process.returncode == 0, stderr
            assert statuses(iolab.cwd / "run") == ["ok"]
            assert "not restored" not in stderr
        assert not loops_backed_under(tmp_path)
        assert list(backing.iterdir()) == []
        assert iolab("restore").stdout == "Nothing to restore.\n"


@pytest.mark.root
@pytest.mark.machine
@pytest.mark.parametrize(
    ("in_force", "value", "control", "killed"),
    [
        ("dirty_background_ratio", "0", 'dirty_background_bytes = "16MiB"', True),
        ("dirty_background_bytes", str(8 << 20), "dirty_background_ratio = 0", False),
    ],
)
def test_of_two_thresholds_the_one_that_was_in_force_is_put_back_also_when_it_was_0(
    iolab: CommandLine, in_force: str, value: str, control: str, killed: bool
) -> None:
    with thresholds_kept():
        (VM / in_force).write_text(value)
        before = thresholds()
        settings = f"[settings.a]\n{control}\n"
        iolab.write("experiment.toml", experiment(DIRECTORY, rounds=1, workload=reads_for("1s"), settings=settings))
        with iolab.start("run", "experiment.toml", "--out", "run") as process:
            wait_until(lambda: thresholds() != before, "the control")
            if killed:
                os.killpg(process.pid, signal.SIGKILL)
            _, stderr = process.ended()
        assert process.returncode == (-signal.SIGKILL if killed else 0), stderr
        iolab("restore")
        assert thresholds() == before


@pytest.mark.long
@pytest.mark.root
@pytest.mark.machine
def test_two_runs_with_different_state_directories_do_not_change_the_machine_at_once(
    iolab: CommandLine, tmp_path: Path
) -> None:
    with thresholds_kept():
        before = thresholds()
        text = experiment(DIRECTORY, rounds=1, workload=reads_for("60s"), settings="[settings.a]\ndirty_ratio = 7\n")
        iolab.write("experiment.toml", text)
        (tmp_path / "elsewhere").mkdir()
        iolab.write("elsewhere/experiment.toml", text)
        other = replace(iolab, cwd=tmp_path / "elsewhere", state_dir=tmp_path / "other")
        with iolab.start("run", "experiment.toml", "--out", "run") as first:
            wait_until(lambda: (VM / "dirty_ratio").read_text().strip() == "7", "the first")
            refused = other("run", "experiment.toml", "--out", "run", status=None)
            refused.assert_one_clear_line(3, "settings of the whole machine", "process ")
            journal = plant(
                other.state_dir / "undo",
                {"number": 0, "action": "WriteFile", "path": str(VM / "dirty_ratio"), "previous": "9"},
            )
            outcome = other("restore", status=None)
            outcome.assert_one_clear_line(3, "not put back")
            assert "another iolab run is using it" in outcome.stdout
            assert (VM / "dirty_ratio").read_text().strip() == "7"
            os.killpg(first.pid, signal.SIGINT)
            first.ended()
        assert thresholds() == before
        journal.unlink()


@pytest.mark.root
@pytest.mark.machine
def test_what_is_mounted_in_another_mount_namespace_is_kept_and_told(iolab: CommandLine, tmp_path: Path) -> None:
    iolab.write("experiment.toml", experiment(SCRATCH, workload=reads_for("60s")))
    inside = replace(iolab, prefix=(*UNSHARE, "sh", "-c", '"$@" & wait; sleep 60', "sh"))
    with inside.start("run", "experiment.toml", "--out", "run") as shell:
        wait_until(lambda: bool(events(iolab.cwd / "run", "trial_started")), "a trial")
        wait_until(lambda: mounted_inside(shell.pid, iolab), "the mount")
        # Stopped first: one that sees the other die puts everything back itself.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in processes_of(iolab, but=shell.pid):
                os.kill(pid, number)
        outcome = iolab("restore", status=None)
        outcome.assert_one_clear_line(3, "not put back")
        assert f"nsenter --mount --target {shell.pid} umount" in outcome.stdout
        assert loops_backed_under(tmp_path)
        subprocess.run(
            ["nsenter", "--mount", "--target", str(shell.pid), "umount", mounted_inside(shell.pid, iolab)], check=True
        )
        assert "detached" in iolab("restore").stdout
        assert not loops_backed_under(tmp_path)
        os.killpg(shell.pid, signal.SIGKILL)


@pytest.mark.root
@pytest.mark.machine
def test_a_copy_of_a_mount_that_soon_goes_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def elsewhere() -> str | None:
        found = mounts.seen_elsewhere(lambda mount: mount.mount_point == str(tmp_path))
        return found and found[0].name

    subprocess.run(["mount", "-t", "tmpfs", "iolab-test", str(tmp_path)], check=True)
    try:
        with subprocess.Popen([*UNSHARE, "sh", "-c", "echo; read line"], stdin=PIPE, stdout=PIPE) as holder:
            assert holder.stdin is not None and holder.stdout is not None
            holder.stdout.readline()
            monkeypatch.setattr(mounts, "NAMESPACE_PATIENCE_S", 0.0)
            assert elsewhere() == "sh"
            monkeypatch.setattr(mounts, "NAMESPACE_PATIENCE_S", 60.0)
            threading.Timer(0.2, holder.stdin.close).start()
            assert elsewhere() is None
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.root
@pytest.mark.machine
def test_a_tracing_instance_is_kept_in_the_journal_while_tracefs_is_not_mounted(iolab: CommandLine) -> None:
    """In a mount namespace that has tracefs, as the run had; `restore` is run where there is none."""
    if tracefs.root() is not None:
        pytest.skip("tracefs is mounted: a restore that does not find it cannot be had")
    name = f"iolab-{os.getpid():016x}"
    journal = plant(iolab.state_dir / "undo", {"number": 0, "action": "RemoveTraceInstance", "name": name})
    where = tracefs.ROOTS[0]
    made = f"mount -t tracefs nodev {where} && mkdir {where}/instances/{name}"
    subprocess.run([*UNSHARE, "sh", "-c", made], check=True)
    outcome = iolab("restore", status=None)
    outcome.assert_one_clear_line(3, "not put back")
    assert f"mount -t tracefs nodev {where}" in outcome.stdout and name in outcome.stdout
    assert journal.exists()
    inside = replace(iolab, prefix=(*UNSHARE, "sh", "-c", f'mount -t tracefs nodev {where} && exec "$@"', "sh"))
    assert f"removed the tracing instance {where}/instances/{name}" in inside("restore").stdout
    assert not journal.exists()


def deadline_scheduler_under(directory: Path) -> bool:
    return any(
        "[mq-deadline]" in Path("/sys/block", Path(node).name, "queue/scheduler").read_text()
        for node in loops_backed_under(directory)
    )


def mounted_inside(pid: int, iolab: CommandLine) -> str:
    """Where this test's run has mounted its scratch filesystem, if it has; others' mounts are in the namespace too."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
            if line.split()[4].startswith(f"{iolab.state_dir}/"):
                return line.split()[4]
    return ""


def processes_of(iolab: CommandLine, *, but: int) -> list[int]:
    found = [int(line.split()[0]) for line in look(iolab.cwd, iolab.state_dir).processes if "sleep" not in line]
    return [pid for pid in found if pid != but]


def thresholds() -> list[str]:
    return [(VM / name).read_text().strip() for name in (*BACKGROUND, "dirty_ratio", "dirty_bytes")]


@contextmanager
def thresholds_kept() -> Iterator[None]:
    """The machine's own are as before, whatever a failing test leaves."""
    names = (*BACKGROUND, "dirty_ratio", "dirty_bytes")
    before = dict(zip(names, thresholds(), strict=True))
    try:
        yield
    finally:
        for name, value in before.items():
            if value != "0":
                (VM / name).write_text(value)
