"""A device is known by more than its name: what else is found under the name later is not written to."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.command_line import CommandLine, wait_until
from support.devices import MIB, attach, command, detach, reattach, sparse_file
from support.experiments import experiment
from support.leftovers import has_files, processes_with
from support.runs import events

pytestmark = pytest.mark.root
SLOW = '[workloads.writes]\npattern = "random"\nduration = "1500ms"\nfile_size = "8MiB"\nread_percent = 0\n'


def device(tmp_path: Path, stack: ExitStack, name: str = "image") -> Path:
    found = attach(sparse_file(tmp_path / name, 64 * MIB))
    stack.callback(lambda: Path(f"/sys/block/{found.name}/loop").exists() and detach(found))
    return found


def write(iolab: CommandLine, path: Path, rounds: int = 2, *, destroy: bool = False) -> None:
    target = f'kind = "device"\npath = "{path}"\ndestroy = {str(destroy).lower()}'
    iolab.write("x.toml", experiment(target, workload=SLOW, rounds=rounds))


def kill_in_the_second_trial(iolab: CommandLine) -> None:
    """With the trial's own process; what it wrote stays on the device."""
    process = iolab.start("run", "x.toml", "--out", "run")
    journal = iolab.cwd / "run" / "journal.jsonl"
    wait_until(lambda: journal.exists() and journal.read_text().count('"trial_started"') == 2, "the second trial")
    running = processes_with(iolab.state_dir)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    # A killed process ends, and lets go of the device, when its I/O in flight has ended: after its memory, with which
    # goes what shows whose it is.
    wait_until(lambda: not any(map(has_files, running)), "the trial's process to be gone")


@pytest.mark.long
def test_trials_of_a_run_go_on_with_what_they_wrote(iolab: CommandLine, tmp_path: Path, stack: ExitStack) -> None:
    """Also after a kill, though what is on the device is no longer nothing; the journal says which device it is."""
    node = device(tmp_path, stack)
    write(iolab, node, rounds=3)
    kill_in_the_second_trial(iolab)
    iolab("run", "--resume", "run")
    admitted = [event["devices"][0] for event in events(tmp_path / "run", "devices_admitted")]
    assert len(admitted) == 2 and admitted[0] == admitted[1]
    assert admitted[0]["path"] == str(node) and admitted[0]["size_bytes"] == 64 * MIB
    assert admitted[0]["sequence"] == int((Path("/sys/block") / node.name / "diskseq").read_text())


@pytest.mark.parametrize("destroy", [False, True])
def test_another_device_under_the_name_is_not_resumed_on(
    iolab: CommandLine, tmp_path: Path, stack: ExitStack, destroy: bool
) -> None:
    node = device(tmp_path, stack)
    write(iolab, node, rounds=3, destroy=destroy)
    kill_in_the_second_trial(iolab)
    reattach(node, sparse_file(tmp_path / "precious", 64 * MIB))
    with node.open("r+b") as opened:
        opened.write(b"precious")
    before = command("sha256sum", node)
    iolab("run", "--resume", "run", status=None).assert_one_clear_line(2, str(node), "another was attached")
    assert command("sha256sum", node) == before


def test_a_link_that_was_moved_is_not_resumed_through(iolab: CommandLine, tmp_path: Path, stack: ExitStack) -> None:
    first, other = device(tmp_path, stack), device(tmp_path, stack, "precious")
    link = tmp_path / "link"
    link.symlink_to(first)
    write(iolab, link, rounds=3, destroy=True)
    kill_in_the_second_trial(iolab)
    link.unlink()
    link.symlink_to(other)
    before = command("sha256sum", other)
    iolab("run", "--resume", "run", status=None).assert_one_clear_line(2, str(link), f"led to {first.name}")
    assert command("sha256sum", other) == before


def test_a_link_that_is_moved_in_a_run_ends_it(iolab: CommandLine, tmp_path: Path, stack: ExitStack) -> None:
    first, other = device(tmp_path, stack), device(tmp_path, stack, "precious")
    link, moved = tmp_path / "link", tmp_path / "moved"
    link.symlink_to(first)
    write(iolab, link, rounds=4)
    process = iolab.start("run", "x.toml", "--out", "run")
    journal = tmp_path / "run" / "journal.jsonl"
    wait_until(lambda: journal.exists() and '"devices_admitted"' in journal.read_text(), "the first trial")
    moved.symlink_to(other)
    moved.rename(link)
    _, stderr = process.ended()
    assert process.returncode == 2 and f"led to {first.name}" in stderr
    assert not any(other.read_bytes())


def test_a_filesystem_made_since_is_not_overwritten(iolab: CommandLine, tmp_path: Path, stack: ExitStack) -> None:
    """Not even by a run that was told to destroy what was on the device before."""
    node = device(tmp_path, stack)
    write(iolab, node, rounds=3, destroy=True)
    kill_in_the_second_trial(iolab)
    command("mkfs.ext4", "-q", "-F", node)
    before = command("sha256sum", node)
    iolab("run", "--resume", "run", status=None).assert_one_clear_line(2, str(node), "since this run began", "ext4")
    assert command("sha256sum", node) == before
