"""The loop over trials: stopped, killed or failing anywhere, it goes on, and nothing is measured twice or lost."""

import os
import re
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import iolab.studies.run
import pytest
from fake_machine import EXPERIMENT, TRIALS_PER_ROUND, FakeExecutor, SilentDisplay, experiment
from iolab import _native
from iolab.base import beneath, durable
from iolab.base.errors import InputError, InterruptedRun, MachineError
from iolab.domain.record import packed_trace
from iolab.domain.trial import Trial
from iolab.files.store import read, trial_file
from iolab.files.store.directory import RunDirectory, create, take_back
from iolab.files.store.journal import Journal
from iolab.machines.system import session
from iolab.studies.run import Run
from support.runs import events, journal

pytestmark = pytest.mark.usefixtures("state_dir")
TRIALS = 2 * TRIALS_PER_ROUND


class Killed(BaseException):
    """A kill -9: nothing after it runs, nothing is cleaned up."""


def start(out: Path, executor: FakeExecutor | None = None, *, text: str = EXPERIMENT, **options: object) -> Run:
    return iolab.studies.run.run(
        experiment(text),
        out,
        executor=executor or FakeExecutor(),
        progress=SilentDisplay(),
        machine={"kernel": "k"},
        **options,  # type: ignore[arg-type]
    )


def go_on(out: Path, executor: FakeExecutor | None = None, **options: object) -> Run:
    return iolab.studies.run.resume(out, executor=executor or FakeExecutor(), progress=SilentDisplay(), **options)  # type: ignore[arg-type]


def at_trial(number: int, action: Callable[[], None]) -> Callable[[Trial], None]:
    def before(trial: Trial) -> None:
        if trial.trial == number:
            action()

    return before


def kill() -> None:
    raise Killed


def test_every_trial_runs_once_and_is_stored(tmp_path: Path) -> None:
    executor = FakeExecutor()
    result = start(tmp_path / "run", executor)
    assert executor.ran == list(range(TRIALS))
    assert (result.rounds, result.trials, result.trials_by_status) == (2, TRIALS, {"ok": TRIALS})
    assert journal(tmp_path / "run")[0]["event"] == "run_started"
    assert journal(tmp_path / "run")[-1]["event"] == "run_finished"
    data = read(tmp_path / "run")
    assert data.problems == []
    assert data.experiment_text == EXPERIMENT
    assert data.machine == {"kernel": "k"}
    assert data.trials["trial"].to_list() == list(range(TRIALS))


def test_a_file_is_durable_before_the_journal_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Journal.append

    def checked(self: Journal, event: str, **content: object) -> object:
        if event == "trial_finished":
            assert (tmp_path / "run" / "trials" / f"{content['trial']:06d}.parquet").is_file()
        return append(self, event, **content)

    monkeypatch.setattr(Journal, "append", checked)
    assert start(tmp_path / "run").trials == TRIALS


def synced_directories(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by the path of each directory that is made durable from now on, as it is called then."""
    synced: list[str] = []
    fsync = os.fsync

    def recorded(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        if path.is_dir():
            synced.append(str(path))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", recorded)
    return synced


def test_the_names_of_copies_and_traces_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = synced_directories(monkeypatch)
    first = {"event": "run_started"}
    made = create(
        tmp_path / "run", experiment_text="", machine={}, first_event=first, attachments={"depth.fio": "[job]\n"}
    )
    nursery = next(one for one in synced if re.fullmatch(r"\.run\.[0-9a-f]{16}\.tmp", Path(one).name))
    assert {nursery, f"{nursery}/trials", f"{nursery}/index", f"{nursery}/files", str(tmp_path)} <= set(synced)
    synced.clear()
    made.write_traces(3, {"main.ftrace.txt": packed_trace(b"events")})
    assert synced == [str(made.path), str(made.traces)]
    assert (made.traces / "000003.main.ftrace.txt").read_bytes() == b"events"


def test_an_empty_directory_keeps_its_mode_as_a_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o2750)
    made = create(tmp_path / "run", experiment_text="", machine={}, first_event={"event": "run_started"})
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o2750
    take_back(made, [])
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o2750
    assert not list((tmp_path / "run").iterdir())


def test_a_disk_that_refuses_traces_is_one_line(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "gone")
    with pytest.raises(MachineError, match="can't be written: No such file or directory"):
        run.write_traces(0, {"main.ftrace.txt": packed_trace(b"events")})


def test_the_seed_is_drawn_once_recorded_and_can_be_given(tmp_path: Path) -> None:
    unseeded = EXPERIMENT.replace("seed = 7\n", "")
    for name in ("a", "b"):
        start(tmp_path / name, text=unseeded)
    drawn = [journal(tmp_path / name)[0]["seed"] for name in ("a", "b")]
    assert drawn[0] != drawn[1]
    start(tmp_path / "c", text=unseeded, seed=drawn[0])
    assert read(tmp_path / "c").trials["seed"].to_list() == read(tmp_path / "a").trials["seed"].to_list()


@pytest.mark.parametrize("trial", [0, TRIALS // 2, TRIALS - 1])
def test_a_run_killed_in_a_trial_goes_on_there(tmp_path: Path, trial: int) -> None:
    with pytest.raises(Killed):
        start(tmp_path / "run", FakeExecutor(before=at_trial(trial, kill)))
    assert read(tmp_path / "run").trials.height == trial
    executor = FakeExecutor()
    assert go_on(tmp_path / "run", executor).trials == TRIALS
    assert executor.ran == list(range(trial, TRIALS))
    data = read(tmp_path / "run")
    assert data.problems == []
    assert data.trials["attempt"].to_list() == [1] * trial + [2] + [1] * (TRIALS - trial - 1)


def test_a_kill_at_every_step_of_storing_is_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills before each call that makes something durable, in turn; the resumed run always has every trial once."""
    whole = tmp_path / "whole"
    steps = _count_steps(monkeypatch, whole)
    expected = read(whole).metrics
    assert steps > 3 * TRIALS_PER_ROUND
    for step in range(steps):
        out = tmp_path / f"killed-{step}"
        with monkeypatch.context() as patch:
            counter = _Steps(kill_at=step)
            counter.install(patch)
            with pytest.raises(Killed):
                start(out, rounds=1)
        if not out.exists():
            continue
        executor = FakeExecutor()
        before = set(read(out).trials["trial"])
        go_on(out, executor)
        assert before.isdisjoint(executor.ran)
        data = read(out)
        assert data.problems == []
        assert data.trials["trial"].to_list() == list(range(TRIALS_PER_ROUND))
        assert data.metrics.equals(expected)
        assert not list(out.glob("**/*.tmp"))
        shutil.rmtree(out)


class _Steps:
    """Counts the calls that make something durable, and kills before a chosen one."""

    def __init__(self, kill_at: int | None = None) -> None:
        self.count = 0
        self._kill_at = kill_at

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for owner, name in ((os, "fsync"), (os, "write"), (os, "rename")):
            patch.setattr(owner, name, self._wrapped(getattr(owner, name)))
        # A killed process does not tidy its temporary files.
        patch.setattr(os, "unlink", self._unless_killed(os.unlink))
        patch.setattr(beneath, "remove_tree", self._unless_killed(beneath.remove_tree))

    def _wrapped(self, call: Callable[..., object]) -> Callable[..., object]:
        def counted(*args: object, **kwargs: object) -> object:
            if self.count == self._kill_at:
                raise Killed
            self.count += 1
            return call(*args, **kwargs)

        return counted

    def _unless_killed(self, call: Callable[..., object]) -> Callable[..., object]:
        return lambda *args, **kwargs: None if self.count == self._kill_at else call(*args, **kwargs)


def _count_steps(monkeypatch: pytest.MonkeyPatch, out: Path) -> int:
    counter = _Steps()
    with monkeypatch.context() as patch:
        counter.install(patch)
        start(out, rounds=1)
    return counter.count


def test_a_file_without_its_journal_entry_is_taken_over(tmp_path: Path) -> None:
    start(tmp_path / "run")
    path = tmp_path / "run" / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + lines[-2][:20])
    data = read(tmp_path / "run")
    assert data.trials.height == TRIALS
    assert any("torn last line" in problem for problem in data.problems)
    assert any("000007.parquet: is not in the journal" in problem for problem in data.problems)
    executor = FakeExecutor()
    go_on(tmp_path / "run", executor)
    assert executor.ran == []
    assert read(tmp_path / "run").problems == []


def test_a_file_that_is_not_of_this_run_is_set_aside(tmp_path: Path) -> None:
    start(tmp_path / "other", seed=8)
    with pytest.raises(Killed):
        start(tmp_path / "run", FakeExecutor(before=at_trial(5, kill)))
    shutil.copy(tmp_path / "other" / "trials" / "000005.parquet", tmp_path / "run" / "trials")
    (tmp_path / "run" / "trials" / "000006.parquet").write_bytes(b"PAR1 nonsense PAR1")
    executor = FakeExecutor()
    go_on(tmp_path / "run", executor)
    assert executor.ran == [5, 6, 7]
    assert len(list((tmp_path / "run" / "trials").glob("*.aside"))) == 2


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:99])])
def test_a_lost_file_is_measured_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    start(tmp_path / "run")
    damage(tmp_path / "run" / "trials" / "000003.parquet")
    executor = FakeExecutor()
    go_on(tmp_path / "run", executor)
    assert executor.ran == [3]
    assert read(tmp_path / "run").problems == []


def test_ctrl_c_stops_restores_and_says_how_to_go_on(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    interrupt = FakeExecutor(before=at_trial(3, lambda: signal.raise_signal(signal.SIGINT)))
    with pytest.raises(InterruptedRun) as caught:
        start(tmp_path / "run", interrupt)
    assert caught.value.exit_status == 130
    assert f"iolab run --resume {tmp_path / 'run'}" in str(caught.value)
    assert [event["event"] for event in journal(tmp_path / "run")[-2:]] == ["trial_abandoned", "run_interrupted"]
    assert signal.getsignal(signal.SIGINT) is before
    executor = FakeExecutor()
    go_on(tmp_path / "run", executor)
    assert executor.ran == [3, 4, 5, 6, 7]


def test_a_trial_that_finished_as_ctrl_c_came_is_kept(tmp_path: Path) -> None:
    def interrupt_after(trial: Trial) -> str:
        if trial.trial == 3:
            signal.raise_signal(signal.SIGINT)
        return "ok"

    with pytest.raises(InterruptedRun):
        start(tmp_path / "run", FakeExecutor(status_of=interrupt_after))
    assert read(tmp_path / "run").trials.height == 4


def test_a_trial_that_ctrl_c_killed_did_not_fail(tmp_path: Path) -> None:
    def killed_by_interrupt(trial: Trial) -> str:
        if trial.trial == 3:
            signal.raise_signal(signal.SIGINT)
        return "failed" if trial.trial == 3 else "ok"

    with pytest.raises(InterruptedRun):
        start(tmp_path / "run", FakeExecutor(status_of=killed_by_interrupt))
    executor = FakeExecutor()
    assert go_on(tmp_path / "run", executor).trials_by_status == {"ok": TRIALS}
    assert executor.ran == [3, 4, 5, 6, 7]


def test_what_the_machine_refuses_ends_the_run_resumably(tmp_path: Path) -> None:
    def refuse() -> None:
        raise MachineError("the device is in use", where="/dev/x")

    with pytest.raises(MachineError, match="the device is in use"):
        start(tmp_path / "run", FakeExecutor(before=at_trial(2, refuse)))
    assert journal(tmp_path / "run")[-1]["event"] == "run_failed"
    assert go_on(tmp_path / "run").trials == TRIALS


@pytest.mark.parametrize("error", [InputError, MachineError])
def test_what_is_refused_before_anything_is_measured_leaves_nothing(
    tmp_path: Path, error: type[InputError | MachineError]
) -> None:
    def refuse() -> None:
        raise error("not written to", where="/dev/x")

    (tmp_path / "empty").mkdir()
    for out in ("empty", "run", "deep/run", "deep/run"):
        with pytest.raises(error, match="not written to"):
            start(tmp_path / out, FakeExecutor(before=at_trial(0, refuse)))
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == ["empty"]
    assert not list((tmp_path / "empty").iterdir())
    assert start(tmp_path / "empty").trials == TRIALS


def test_a_setting_without_a_meaning_for_the_target_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    executor = FakeExecutor()
    scratch = 'kind = "scratch"\nsize = "1GiB"\nfilesystem = "none"'
    text = EXPERIMENT.replace('kind = "directory"\npath = "."', scratch).replace("cpus = [0]", 'mkfs_options = "-q"')
    with pytest.raises(InputError, match="needs a filesystem"):
        start(tmp_path / "run", executor, text=text)
    assert executor.ran == []
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_one_clear_error_and_the_run_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = durable._write

    def full(name: str, content: bytes, parent: int) -> None:
        if ".parquet" in name:
            raise OSError(28, "No space left on device")
        write(name, content, parent)

    with monkeypatch.context() as patch:
        patch.setattr(durable, "_write", full)
        with pytest.raises(MachineError, match=r"000000.parquet: can't be written: No space left"):
            start(tmp_path / "run")
    assert go_on(tmp_path / "run").trials == TRIALS


def test_failed_trials_count_unless_they_are_to_be_retried(tmp_path: Path) -> None:
    failing = FakeExecutor(status_of=lambda trial: "failed" if trial.trial in (1, 5) else "ok")
    assert start(tmp_path / "run", failing).trials_by_status == {"ok": 6, "failed": 2}
    assert "2 of 8 trials failed: 1, 5" in read(tmp_path / "run").problems
    executor = FakeExecutor()
    go_on(tmp_path / "run", executor)
    assert executor.ran == []
    assert go_on(tmp_path / "run", executor, retry_failed=True).trials_by_status == {"ok": 8}
    assert executor.ran == [1, 5]
    assert read(tmp_path / "run").problems == []


def test_more_rounds_can_be_added(tmp_path: Path) -> None:
    start(tmp_path / "run")
    executor = FakeExecutor()
    assert go_on(tmp_path / "run", executor, rounds=3).rounds == 3
    assert executor.ran == list(range(TRIALS, TRIALS + TRIALS_PER_ROUND))
    start(tmp_path / "at-once", rounds=3)
    assert read(tmp_path / "at-once").metrics.equals(read(tmp_path / "run").metrics)


def test_two_at_once_in_one_directory_are_refused(tmp_path: Path) -> None:
    def second() -> None:
        with pytest.raises(InputError, match="another iolab is running here"):
            go_on(tmp_path / "run")

    assert start(tmp_path / "run", FakeExecutor(before=at_trial(4, second))).trials == TRIALS


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    start(tmp_path / "run")
    with pytest.raises(InputError, match=r"not empty.*--resume"):
        start(tmp_path / "run")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="not a directory"):
        start(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    start(tmp_path / "empty")
    assert (tmp_path / "file").read_text() == "mine"


def test_what_is_no_run_or_was_changed_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="does not exist"):
        go_on(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no experiment\.toml"):
        go_on(tmp_path)
    start(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(session, "fingerprint", lambda: {"kernel": "another"})
        with pytest.raises(MachineError, match=r"kernel was .* and is another"):
            go_on(tmp_path / "run")
        go_on(tmp_path / "run", accept_other_machine=True)
    assert any("several kernels" in problem for problem in read(tmp_path / "run").problems)
    (tmp_path / "run" / "experiment.toml").write_text(EXPERIMENT + "\n# changed\n")
    with pytest.raises(InputError, match="was changed since"):
        go_on(tmp_path / "run")


def test_a_debug_build_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "build_profile", lambda: "debug")
    start(tmp_path / "run")
    data = read(tmp_path / "run")
    assert data.build_profile == "debug"
    assert any("debug build" in problem for problem in data.problems)


def test_until_decided_stops_when_a_difference_is_clear(tmp_path: Path) -> None:
    result = start(tmp_path / "run", FakeExecutor(faster={"pinned": 1.5}), text=RATE_ONLY, until_decided=True)
    assert result.undecided == []
    assert 5 <= result.rounds < 20
    looks = events(tmp_path / "run", "look")
    assert looks[-1]["rounds"] == result.rounds
    assert [bool(look["undecided"]) for look in looks] == [True] * (len(looks) - 1) + [False]


RATE_ONLY = EXPERIMENT.replace(', "latency_ns_p99"]', "]").replace("rounds = 2\n", "")


def test_until_decided_ends_at_the_most_rounds_and_says_what_is_open(tmp_path: Path) -> None:
    noisy = EXPERIMENT.replace('["rate_bytes_per_s", "latency_ns_p99"]', '["latency_ns_mean"]')
    display = SilentDisplay()
    result = iolab.studies.run.run(
        experiment(noisy),
        tmp_path / "run",
        executor=FakeExecutor(),
        progress=display,
        rounds=6,
        until_decided=True,
        machine={},
    )
    assert result.rounds == 6
    assert "reads: latency_ns_mean, pinned" in (result.undecided or [])
    assert any("after 6 rounds of at most 6: " in line and "undecided" in line for line in display.lines)


def test_until_decided_takes_the_same_looks_after_a_kill(tmp_path: Path) -> None:
    whole = start(tmp_path / "whole", text=RATE_ONLY, until_decided=True)
    with pytest.raises(Killed):
        start(
            tmp_path / "run",
            FakeExecutor(before=at_trial(4 * TRIALS_PER_ROUND + 2, kill)),
            text=RATE_ONLY,
            until_decided=True,
        )
    assert go_on(tmp_path / "run").rounds == whole.rounds
    executor = FakeExecutor()
    assert go_on(tmp_path / "run", executor).rounds == whole.rounds
    assert executor.ran == []
    with pytest.raises(InputError, match="can't be changed once it has begun"):
        go_on(tmp_path / "run", rounds=60)


def test_too_few_rounds_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--rounds: 0 given; expected 1 or more"):
        start(tmp_path / "run", rounds=0)
    with pytest.raises(InputError, match="--rounds: 2 given; expected 5 or more"):
        start(tmp_path / "run", rounds=2, until_decided=True)
    assert not (tmp_path / "run").exists()


def test_trial_files_are_a_function_of_the_record(tmp_path: Path) -> None:
    start(tmp_path / "a")
    start(tmp_path / "b")
    for trial in range(TRIALS):
        name = f"trials/{trial:06d}.parquet"
        assert trial_file.read_record(tmp_path / "a" / name) == trial_file.read_record(tmp_path / "b" / name)
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_no_run_goes_on_to_fewer_rounds_than_it_has(tmp_path: Path) -> None:
    start(tmp_path / "run")
    before = (tmp_path / "run" / "journal.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"^--rounds: 1 given, and the run has 2; expected 2 or more"):
        go_on(tmp_path / "run", rounds=1)
    assert (tmp_path / "run" / "journal.jsonl").read_bytes() == before
