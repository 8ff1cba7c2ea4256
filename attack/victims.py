"""What is killed: each command that changes this machine, measures for long, or leaves something of its own behind."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ground import Ground, ill_told, run_to_end
from support.command_line import Outcome
from support.runs import events, faults, statuses, times_finished
from support.tiny_kernels import HANG, image

from experiments import LOAD, Experiment, drawn

TRACE = Path(__file__).parents[1] / "tests/traces/blkparse.txt"
SCRATCH = '[target]\nkind = "scratch"\nsize = "16MiB"\nfilesystem = "none"\n'
TUNE = """\
[settings.short]
nomerges = 0
[tune]
objectives = ["iops"]
trials = 6
per_round = 2
key_rounds = 2
confirm = 5
[tune.space]
nr_requests = [16, 64]
nomerges = [0, 2]
"""


@dataclass(frozen=True)
class Victim:
    name: str
    begin: list[str]
    """Arguments, of a start and of going on once `made` is there."""
    go_on: list[str]
    made: Path
    finished: Callable[[Outcome], list[str]]
    """What is wrong with how it came to its end."""
    left: Callable[[], list[str]] = list
    """What of its target is not as before."""
    clean: Callable[[], None] = field(default=lambda: None)
    lasts: bool = False
    """It has no end of its own: SIGINT ends it."""

    def end(self, arguments: list[str], own: Ground) -> Outcome:
        """Started anew, and not killed."""
        if not self.lasts:
            return run_to_end(own.iolab, *arguments, time_limit_s=240.0)
        with own.iolab.start_program(*arguments) as process:
            time.sleep(2.0)  # at its work by then, or not: it ends either way
            os.killpg(process.pid, signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        return Outcome(process.returncode, stdout, stderr)


def victim(rng: random.Random, own: Ground, place: Path, device: Path) -> Victim:
    """A victim; half of the victims are runs."""
    if rng.random() < 0.5:
        return a_run(rng, own, place, device)
    return rng.choice([a_search, a_search_of_commands, a_tuner, a_replay, a_recording, a_server, a_guest])(
        rng, own, place, device
    )


def a_run(rng: random.Random, own: Ground, place: Path, device: Path) -> Victim:
    experiment = drawn(rng, place=place, device=device, machine=own.lane.has_the_machine)
    experiment.prepare()
    go_on = ["run", "--resume", "run", "--retry-failed"]
    return _of_experiment("run", "run", go_on, experiment, own, device)


def a_tuner(rng: random.Random, own: Ground, place: Path, device: Path) -> Victim:
    text = f"seed = {rng.randrange(1000)}\n{SCRATCH}{LOAD.format(read_percent=100)}{TUNE}"
    return _of_experiment("tune", "tune", ["tune", "--resume", "run"], _scratch(text), own, device)


def a_search(rng: random.Random, own: Ground, place: Path, device: Path) -> Victim:
    settings = "".join(f"[settings.v{number}]\nnomerges = {0 if number < 4 else 2}\n" for number in range(6))
    text = f"seed = {rng.randrange(1000)}\nrounds = 1\n{SCRATCH}{LOAD.format(read_percent=100)}{settings}"
    go_on = ["bisect", "--resume", "run"]
    limits = ("--most", "8", "--confirm", "2")
    return _of_experiment("bisect", "bisect", go_on, _scratch(text), own, device, limits)


def a_search_of_commands(rng: random.Random, own: Ground, place: Path, device: Path) -> Victim:
    """Commands that leave a process behind, which ends with them."""
    (own.work / "versions").write_text("".join(f"v{number}\n" for number in range(9)))
    measure = "sleep 300 & read v < version; sleep 0.05; echo 1${v#v}"
    limits = ["--value", "printed", "--confirm", "2", "--most", "12", "--out", "run"]
    begin = ["bisect", "--versions", "versions", "--measure", measure, *limits]
    return Victim("bisect --measure", begin, ["bisect", "--resume", "run"], own.work / "run", _ended)


def a_replay(rng: random.Random, own: Ground, place: Path, device: Path) -> Victim:
    settings = [f"--setting=scheduler={name}" for name in ("none", rng.choice(["bfq", "mq-deadline"]))]
    begin = ["replay", str(TRACE), "--on", str(device), "--destroy", *settings, "--rounds", "3", "--out", "run"]

    def clean() -> None:
        subprocess.run(["blkdiscard", "--force", device], capture_output=True, check=False)

    def finished(outcome: Outcome) -> list[str]:
        return _ended(outcome) + measured_once(own.work / "run", 6)

    go_on = ["run", "--resume", "run", "--retry-failed"]
    return Victim("replay", begin, go_on, own.work / "run", finished, clean=clean)


def a_recording(rng: random.Random, own: Ground, place: Path, device: Path) -> Victim:
    out = own.work / "recorded.dat"
    begin = ["record", str(device), "-o", str(out), "--", "dd", f"if={device}", "of=/dev/null", "bs=64k"]

    def finished(outcome: Outcome) -> list[str]:
        return _ended(outcome) or ill_told(run_to_end(own.iolab, "trace", str(out)), statuses=(0,))

    return Victim("record", begin, begin, out, finished, clean=lambda: out.unlink(missing_ok=True))


def a_server(rng: random.Random, own: Ground, place: Path, device: Path) -> Victim:
    runs = own.work / "runs"
    runs.mkdir()
    begin = ["serve", str(runs), "--port", "0"]

    def finished(outcome: Outcome) -> list[str]:
        return ill_told(outcome, statuses=(0, 130))

    return Victim("serve", begin, begin, own.work / "none", finished, lasts=True)


def a_guest(rng: random.Random, own: Ground, place: Path, device: Path) -> Victim:
    """A guest whose kernel hangs: killed before, while and after it boots, and stopped in the end."""
    kernel = image(own.work / "vmlinuz", HANG)
    begin = ["guest", str(kernel), "--", "/bin/true"]

    def finished(outcome: Outcome) -> list[str]:
        return ill_told(outcome, statuses=(2, 3, 130))

    return Victim("guest", begin, begin, own.work / "none", finished, lasts=True)


def _scratch(text: str) -> Experiment:
    return Experiment(text, 0, lambda: None, list, lambda: None)


def _of_experiment(
    name: str,
    command: str,
    go_on: list[str],
    experiment: Experiment,
    own: Ground,
    device: Path,
    limits: tuple[str, ...] = (),
) -> Victim:
    (own.work / "experiment.toml").write_text(experiment.text)
    run = own.work / "run"

    def finished(outcome: Outcome) -> list[str]:
        runs = [path.parent for path in run.rglob("journal.jsonl")]
        wrong = [line for one in runs for line in measured_once(one, experiment.trials)]
        return _ended(outcome) + wrong + ["nothing was measured"] * (not runs)

    begin = [command, "experiment.toml", *limits, "--out", "run"]
    return Victim(name, begin, go_on, run, finished, experiment.left, experiment.clean)


def _ended(outcome: Outcome) -> list[str]:
    return [] if outcome.status == 0 else [f"to its end: exit status {outcome.status}: {outcome.text[-400:]!r}"]


def absent(run: Path) -> list[str]:
    """Why trials are impossible."""
    from iolab.files.store import read

    data = read(run)
    return [text for number in data.state.finished for text in data.record(number).controls_absent.values()]


def measured_once(run: Path, trials: int) -> list[str]:
    """`trials` 0: as many as there are, of which a search leaves out those that failed with their worker."""
    wrong = []
    counts = times_finished(run)
    expected = dict.fromkeys(range(trials) if trials else counts, 1)
    if counts != expected or not counts:
        wrong.append(f"trials finished: {dict(counts)}, expected each of {len(expected)} once")
    if len(list((run / "trials").glob("*.parquet"))) != len(expected):
        wrong.append("a trial's file is missing or too many")
    last = {event["trial"]: event["status"] for event in events(run, "trial_finished")}
    if set(last.values()) - ({"ok"} if trials else {"ok", "failed"}):
        wrong.append(f"trials are not well: {statuses(run)}, {faults(run)}, {absent(run)}")
    return wrong
