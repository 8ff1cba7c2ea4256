"""Directories of another user, who plants links and swaps names for them while root's commands work there: nothing of
root's is overwritten, removed or shown, no command runs unasked, and no output goes onto a device."""

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from family import Family, Outcome
from ground import Ground, detach_under, digest, ill_told, lane_on_ground, run_to_end
from support.command_line import NOBODY as AS_NOBODY
from support.command_line import Outcome as Told
from support.devices import MIB, attach, sparse_file

NOBODY = ("nobody", "nogroup")
TRACE = Path(__file__).parent.parent / "tests" / "traces" / "trace-cmd-7.dat"
FORMS = ("perfetto", "blktrace", "iolog", "parquet")
SECRET = "only root reads this\n"
MODEL = """\
machine = "model:dram-nvme"
rounds = 1
seed = 1
[workloads.x]
duration = "2ms"
"""
HOST = """\
rounds = 1
seed = 1
[target]
kind = "directory"
path = "."
[workloads.x]
file_size = "64KiB"
duration = "5ms"
[settings.a]
background = "touch {canary}; sleep 1"
"""
SWAPPER = """
use Time::HiRes qw(usleep);
my ($victim, $pause_us, @names) = @ARGV;
sub swap {
    my ($name) = @_;
    my $away = "$name.away";
    if (rename($name, $away)) {
        if (symlink($victim, $name)) { usleep($pause_us); unlink($name); }
        rename($away, $name);
    }
}
while (1) {
    for my $name (@names) { swap($name); }
    opendir(my $here, ".") or die;
    for my $made (grep { /^\\..*(tmp|new|old|removed)$/ } readdir $here) { swap($made); }
    closedir $here;
}
"""
PATIENCE_S = 60.0


@dataclass
class Scene:
    own: Ground
    rng: Random
    wrong: list[str] = field(default_factory=list)

    @property
    def roots(self) -> Path:
        """What only root may read and write."""
        return self.own.directory / "roots"

    @property
    def theirs(self) -> Path:
        return self.own.work / "theirs"

    @property
    def canary(self) -> Path:
        return self.own.directory / "canary"

    def begin(self) -> None:
        self.roots.mkdir(mode=0o700)
        (self.roots / "secret").write_text(SECRET)
        (self.own.work / "x.toml").write_text(MODEL)
        self.iolab("run", "x.toml", "--out", self.roots / "run")
        self.theirs.mkdir()

    def made(self, name: str, text: str = MODEL) -> Path:
        """A run in their directory, as root's own would be."""
        (self.own.work / "made.toml").write_text(text)
        self.iolab("run", "made.toml", "--out", self.theirs / name)
        self.canary.unlink(missing_ok=True)
        return self.theirs / name

    def give(self) -> None:
        subprocess.run(["chown", "-hR", "nobody:nogroup", self.theirs], check=True)

    def iolab(self, *arguments: str | Path) -> Told:
        told = run_to_end(self.own.iolab, *arguments, time_limit_s=PATIENCE_S)
        self.wrong += [f"{arguments[0]}: {line}" for line in ill_told(told)]
        return told

    def victim(self) -> Path:
        return self.rng.choice([self.roots / "secret", self.roots / "run", self.roots / "nothing"])

    @contextmanager
    def swapping(self, victim: Path, *names: str, inside: str = ".") -> Iterator[None]:
        """Their process, which puts a link to the victim in the place of each name, again and again."""
        pause_us = str(self.rng.choice([0, 50, 500, 5000]))
        other = subprocess.Popen(
            [*AS_NOBODY, "perl", "-e", SWAPPER, victim, pause_us, *names],
            cwd=self.theirs / inside,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(other.pid, signal.SIGKILL)
            other.wait()

    def state(self) -> dict[str, str]:
        """The state of all that is root's."""
        return {
            str(path.relative_to(self.roots)): digest(path) if path.is_file() else oct(path.stat().st_mode)
            for path in sorted(self.roots.rglob("*"))
            if ".iolab-index" not in path.parts
        }


def goes_on(scene: Scene) -> None:
    scene.made("run")
    scene.give()
    part = scene.rng.choice(["trials", "index", "journal.jsonl", "machine.json", "run"])
    name, inside = (part, ".") if part == "run" else (part, "run")
    with scene.swapping(scene.victim(), name, inside=inside):
        scene.iolab("run", "--resume", scene.theirs / "run", "--rounds", "2", "--trust-run")


def begins(scene: Scene) -> None:
    scene.give()
    with scene.swapping(scene.victim(), "run", "new"):
        scene.iolab("run", "x.toml", "--out", scene.theirs / "run")


def labelled(scene: Scene) -> None:
    scene.made("run")
    (scene.theirs / "run" / "labels.json").symlink_to(scene.victim())
    scene.give()
    with scene.swapping(scene.victim(), "labels.json", inside="run"):
        scene.iolab("tag", scene.theirs / "run", "good")
        scene.iolab("note", scene.theirs / "run", "a note")


def listed(scene: Scene) -> None:
    scene.made("run")
    (scene.theirs / ".iolab-index").mkdir()
    for suffix in scene.rng.sample(["", "-wal", "-shm"], 2):
        (scene.theirs / ".iolab-index" / f"index.sqlite{suffix}").symlink_to(scene.victim())
    scene.give()
    with scene.swapping(scene.victim(), ".iolab-index", "run"):
        scene.iolab("ls", scene.theirs)


def removed(scene: Scene) -> None:
    scene.made("run")
    scene.give()
    with scene.swapping(scene.roots / "run", "run"):
        scene.iolab("rm", scene.theirs / "run", "--yes")


def shown(scene: Scene) -> None:
    """A site of root's, of their runs."""
    scene.made("run")
    part = scene.rng.choice(["experiment.toml", "machine.json", "trials/000000.parquet"])
    (scene.theirs / "run" / part).unlink()
    (scene.theirs / "run" / part).symlink_to(scene.roots / "secret")
    scene.give()
    out = scene.own.work / "site"
    scene.iolab("site", scene.theirs, "--out", out)
    for path in out.rglob("*"):
        if path.is_file() and SECRET.strip().encode() in path.read_bytes():
            scene.wrong.append(f"what only root reads is in {path.name}")
    scene.give()
    with scene.swapping(scene.victim(), "site"):
        scene.iolab("site", scene.roots, "--out", scene.theirs / "site")


def asked(scene: Scene) -> None:
    """A run or a search of theirs, in a directory of root's, would run a command."""
    if scene.rng.random() < 0.5:
        scene.made("run", HOST.format(canary=scene.canary))
        arguments: tuple[str | Path, ...] = ("run", "--resume", scene.theirs / "run", "--rounds", "2")
    else:
        (scene.own.work / "versions").write_text("a\nb\nc\n")
        found = ("bisect", "--versions", "versions", "--measure", f"touch {scene.canary}", "--most", "6")
        scene.iolab(*found, "--out", scene.theirs / "search")
        arguments = ("bisect", "--resume", scene.theirs / "search")
    scene.canary.unlink(missing_ok=True)
    (scene.own.state / "origin.key").unlink(missing_ok=True)  # as if another user had made it
    if scene.rng.random() < 0.5:
        scene.give()
    scene.iolab(*arguments)
    if scene.canary.exists():
        scene.wrong.append("a command ran unasked")


def exported(scene: Scene) -> None:
    scene.give()
    form = scene.rng.choice(FORMS)
    name = "out.blktrace.0" if form == "blktrace" else "out"
    (scene.theirs / name).symlink_to(scene.victim())
    os.lchown(scene.theirs / name, 65534, 65534)
    with scene.swapping(scene.victim(), name):
        scene.iolab("trace", TRACE, "--to", form, "-o", scene.theirs / "out")


def onto_a_device(scene: Scene) -> None:
    device = attach(sparse_file(scene.own.work / "disk", MIB))
    before = digest(device)
    form = scene.rng.choice([*FORMS, "report", "record"])
    place = scene.own.work / "node"
    node = place.with_name("node.blktrace.0") if form == "blktrace" else place
    os.mknod(node, stat.S_IFBLK | 0o600, device.stat().st_rdev)
    if form == "report":
        scene.iolab("report", scene.roots / "run", "-o", place)
    elif form == "record":
        scene.iolab("record", device, "-o", place, "--for", "10ms")
    else:
        scene.iolab("trace", TRACE, "--to", form, "-o", place)
    if digest(device) != before or not stat.S_ISBLK(node.stat().st_mode):
        scene.wrong.append(f"{form} was written onto a block device")


def onto_its_input(scene: Scene) -> None:
    source = scene.own.work / "source"
    shutil.copy(TRACE, source)
    link = scene.own.work / "link"
    scene.rng.choice([link.symlink_to, link.hardlink_to])(source)
    form = scene.rng.choice(["perfetto", "iolog", "parquet"])
    scene.iolab("trace", source, "--to", form, "-o", scene.rng.choice([source, link]))
    if digest(source) != digest(TRACE):
        scene.wrong.append(f"{form} was written over the trace that it was made of")


SCENES: tuple[Callable[[Scene], None], ...] = (
    *(goes_on, begins, labelled, listed, removed, shown, asked, exported, onto_a_device, onto_its_input),
)


class Others:
    def __init__(self, own: Ground) -> None:
        self.own = own

    def __call__(self, case: int) -> Outcome:
        attempt = SCENES[case % len(SCENES)]
        scene = Scene(self.own, self.own.lane.random("others", case))
        try:
            scene.begin()
            before = scene.state()
            attempt(scene)
            after = scene.state()
            changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
            scene.wrong += [f"{name} of root's is not as it was" for name in changed]
        finally:
            self.own.clear()
            detach_under(self.own.work)
            shutil.rmtree(scene.roots, ignore_errors=True)
            scene.canary.unlink(missing_ok=True)
        return Outcome(1, [f"{attempt.__name__}: {line}" for line in scene.wrong])


FAMILY = Family(
    name="others",
    what="directories of another user, who plants and swaps links; outputs onto devices and inputs",
    attacks=300,
    attacks_quick=len(SCENES),
    lane=lambda lane: lane_on_ground(Others, lane),
    needs_root=True,
)
