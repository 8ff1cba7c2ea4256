"""State that somebody else planted: modules in the directory one stands in, state directories and locks, undo files,
names with escape sequences, outputs that are no files, directories that change under a run."""

import csv
import fcntl
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from family import Family, Outcome
from ground import Ground, detach_under, digest, ill_told, lane_on_ground, run_to_end
from support.command_line import NOBODY as AS_NOBODY
from support.command_line import CommandLine
from support.command_line import Outcome as Told
from support.devices import MIB, attach, sparse_file
from support.leftovers import kill_processes

NOBODY = ("nobody", "nogroup")
EXPERIMENT = """\
rounds = 1
seed = 1
[target]
kind = "{kind}"
path = "{path}"
[workloads.load]
pattern = "random"
read_percent = {read_percent}
file_size = "1MiB"
duration = "{duration}"
[settings.a]
"""
MODULES = (
    *("json", "select", "socket", "typing", "signal", "pathlib", "tempfile", "subprocess", "queue", "threading", "re"),
    *(
        "enum",
        "polars",
        "pydantic",
        "numpy",
        "typer",
        "rich",
        "jinja2",
        "plotly",
        "scipy",
        "sitecustomize",
        "usercustomize",
    ),
)
PATIENCE_S = 60.0
VICTIM = "somebody's own\n"
HOSTILE = {
    "escapes": ("\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "a\rb", "a\x08b", "\u202eevil"),
    "markup": (
        *("<attack onload=alert(1)>", "</script><attack>", "<b>bold</b>", '<a href="javascript:alert(1)">x</a>'),
        *("&lt;attack&gt;", "{{7*7}}", "%s%n", "|pipe|", "`x`", "[link](javascript:x)", "[bold]x[/bold]"),
    ),
    "formulas": ("=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", " =1+1"),
}


@dataclass
class Scene:
    own: Ground
    rng: random.Random
    wrong: list[str] = field(default_factory=list)

    @property
    def work(self) -> Path:
        return self.own.work

    def victim(self, name: str = "victim") -> Path:
        path = self.own.directory / name
        path.write_text(VICTIM)
        return path

    def untouched(self, path: Path, how: str) -> None:
        if not path.is_file() or path.is_symlink() or path.read_text() != VICTIM:
            self.wrong.append(f"{path.name} is not as it was: {how}")

    def experiment(
        self, kind: str = "directory", path: str | Path = ".", *, read_percent: int = 0, duration: str = "20ms"
    ) -> None:
        text = EXPERIMENT.format(kind=kind, path=path, read_percent=read_percent, duration=duration)
        (self.work / "experiment.toml").write_text(text)

    def iolab(
        self, *arguments: str | Path, statuses: tuple[int, ...] = (0, 1, 2, 3), state: Path | None = None
    ) -> Told:
        command_line = CommandLine(cwd=self.work, state_dir=state or self.own.state)
        outcome = run_to_end(command_line, *arguments, time_limit_s=PATIENCE_S)
        self.wrong += [f"{arguments[0]}: {line}" for line in ill_told(outcome, statuses)]
        return outcome


# Modules


def modules(scene: Scene) -> None:
    _planted_modules(scene, [scene.work / f"{name}.py" for name in MODULES])


def package(scene: Scene) -> None:
    _planted_modules(scene, [scene.work / "iolab" / "__init__.py"])


def _planted_modules(scene: Scene, paths: list[Path]) -> None:
    """Each writes down that it was imported, and by which program."""
    canary = scene.own.directory / "canary"
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"import sys\nopen({str(canary)!r}, 'a').write({path.name!r} + f' in {{sys.argv}}\\n')\n")
    scene.experiment()
    scene.iolab("run", "experiment.toml", "--out", "run", statuses=(0,))
    scene.iolab("report", "run", statuses=(0,))
    scene.iolab("restore", statuses=(0,))
    if canary.exists():
        scene.wrong += [f"ran out of the current directory: {line}" for line in canary.read_text().splitlines()]


# State directories


def _undo_lines(entries: list[dict[str, object]]) -> str:
    lines: list[dict[str, object]] = [
        {"boot_id": Path("/proc/sys/kernel/random/boot_id").read_text().strip(), "pid": 1}
    ]
    lines += [{"number": number, **entry} for number, entry in enumerate(entries)]
    return "".join(_with_sum(line) + "\n" for line in lines)


def _with_sum(line: dict[str, object]) -> str:
    """As this version writes it, so that only who owns the file tells it from iolab's own."""
    from iolab.base import checked_lines

    return checked_lines.encode(line).decode().rstrip("\n")


def planted_undo(how: str) -> Callable[[Scene], None]:
    def plant(scene: Scene) -> None:
        victim, other = scene.victim(), scene.victim("other")
        state = scene.own.directory / "planted-state"
        undo = state / "undo"
        undo.mkdir(parents=True)
        for path in (state, undo):
            path.chmod(0o700)
        entries: list[dict[str, object]] = [
            {"action": "WriteFile", "path": str(victim), "previous": "owned"},
            {"action": "RemoveFile", "path": str(other)},
            {"action": "TruncateFile", "path": str(victim), "size_bytes": 0},
        ]
        journal = undo / "4000000-0badc0de.jsonl"
        journal.write_text(_undo_lines(entries))
        journal.chmod(0o600)
        if how == "file":
            shutil.chown(journal, *NOBODY)
        elif how == "directory":
            shutil.chown(undo, *NOBODY)
        elif how == "state":
            shutil.chown(state, *NOBODY)
        elif how == "all":
            for path in (state, undo, journal):
                shutil.chown(path, *NOBODY)
        elif how == "writable":
            undo.chmod(0o777)
        elif how == "group":
            shutil.chown(undo, "root", "nogroup")
            undo.chmod(0o770)
        elif how == "file-writable":
            journal.chmod(0o666)
        elif how == "symlink":
            elsewhere = scene.own.directory / "elsewhere"
            elsewhere.mkdir()
            shutil.chown(elsewhere, *NOBODY)
            journal.rename(elsewhere / journal.name)
            undo.rmdir()
            undo.symlink_to(elsewhere)
        elif how == "parent":
            # Others may put another directory in its place.
            outer = scene.own.directory / "outer"
            outer.mkdir()
            outer.chmod(0o777)
            state.rename(outer / "state")
            state = outer / "state"
        scene.experiment()
        scene.iolab("restore", state=state)
        scene.iolab("doctor", state=state)
        scene.iolab("run", "experiment.toml", "--out", "run", state=state)
        for path in (victim, other):
            scene.untouched(path, f"an undo file was planted ({how})")

    return plant


def own_undo(entries: Callable[[Path], list[dict[str, object]]]) -> Callable[[Scene], None]:
    """Root's own journal in root's own directory, but of paths that iolab never changes."""

    def plant(scene: Scene) -> None:
        victim = scene.victim()
        undo = scene.own.state / "undo"
        undo.mkdir(mode=0o700)
        journal = undo / "4000000-0badc0de.jsonl"
        journal.write_text(_undo_lines(entries(victim)))
        journal.chmod(0o600)
        outcome = scene.iolab("restore")
        if "iolab itself never changes this" not in outcome.text:
            scene.wrong.append(f"the entry is not refused for its path: {outcome.text[-300:]!r}")
        scene.untouched(victim, "the undo journal names a path that is none of iolab's")

    return plant


def symlinked_lock(scene: Scene) -> None:
    victim = scene.victim()
    scene.experiment()
    scene.iolab("run", "experiment.toml", "--out", "run", statuses=(0,))
    locks = scene.own.state / "locks"
    names = [path.name for path in locks.glob("*")] if locks.is_dir() else []
    for name in [*names, "machine.lock"]:
        locks.mkdir(exist_ok=True, mode=0o700)
        (locks / name).unlink(missing_ok=True)
        (locks / name).symlink_to(victim)
    scene.iolab("run", "experiment.toml", "--out", "again")
    scene.iolab("restore")
    scene.untouched(victim, "a lock was a symlink to it")


def held_by_another_user(scene: Scene) -> None:
    """An ordinary user locks what it can open."""
    for name in ("undo", "locks"):
        (scene.own.state / name).mkdir(exist_ok=True)
        (scene.own.state / name).chmod(0o755)
    scene.own.state.chmod(0o755)
    undo = scene.own.state / "undo"
    holder = subprocess.Popen([*AS_NOBODY, "flock", undo, "sleep", "100"], start_new_session=True)
    fd = os.open(undo, os.O_RDONLY)
    give_up = time.monotonic() + 10
    with suppress(BlockingIOError):
        while time.monotonic() < give_up:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_UN)
            time.sleep(0.01)
    os.close(fd)
    try:
        scene.iolab("restore")
        scene.experiment()
        scene.iolab("run", "experiment.toml", "--out", "run")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()


# Identity of what is undone


def _killed_run(scene: Scene, kind: str, path: Path) -> None:
    scene.experiment(kind, path, duration="20s")
    with scene.own.iolab.start_program("run", "experiment.toml", "--out", "run") as process:
        give_up = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < give_up:
            if (path.is_file() and path.stat().st_size) or (path.is_dir() and any(path.glob("iolab-*/*"))):
                break
            time.sleep(0.01)
        kill_processes(scene.own.state)
        process.communicate()


def made_after_the_kill(scene: Scene) -> None:
    path = scene.work / "file"
    _killed_run(scene, "file", path)
    path.unlink(missing_ok=True)
    path.write_text(VICTIM)
    scene.iolab("restore")
    scene.untouched(path, "made by its user after iolab's was killed, then restored")


def renamed_over_after_the_kill(scene: Scene) -> None:
    path = scene.work / "file"
    path.touch()
    _killed_run(scene, "file", path)
    other = scene.work / "other"
    other.write_text(VICTIM)
    other.rename(path)
    scene.iolab("restore")
    scene.untouched(path, "renamed over an empty target after a kill, then restored")


def renamed_over_while_running(scene: Scene) -> None:
    path = scene.work / "file"
    scene.experiment("file", path, duration="500ms")
    with scene.own.iolab.start_program("run", "experiment.toml", "--out", "run") as process:
        give_up = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < give_up and not path.exists():
            time.sleep(0.005)
        other = scene.work / "other"
        other.write_text(VICTIM)
        other.rename(path)
        process.communicate(timeout=PATIENCE_S)
    scene.untouched(path, "renamed over the target in the middle of a run")


def dangling_link(scene: Scene) -> None:
    link = scene.work / "link"
    link.symlink_to(scene.own.directory / "nowhere")
    scene.experiment("file", link)
    scene.iolab("run", "experiment.toml", "--out", "run")
    if not link.is_symlink():
        scene.wrong.append("somebody's symlink is gone")
    (scene.own.directory / "nowhere").unlink(missing_ok=True)


SWAPPER = """
use Time::HiRes qw(usleep);
my ($victim, $delay_us) = @ARGV;
while (1) {
    opendir(my $here, ".") or die;
    for my $made (grep { /^iolab-/ && !-l && -d } readdir $here) {
        usleep($delay_us);
        rename($made, "away-$made") and symlink($victim, $made);
    }
    closedir $here;
}
"""


def directory_swapped(delay_ms: float) -> Callable[[Scene], None]:
    """Another user owns the target, and so long after iolab's directory is made there is a symlink in its place."""

    def swapped(scene: Scene) -> None:
        victim_directory = scene.own.directory / "root-only"
        victim_directory.mkdir(mode=0o700)
        place = scene.work / "place"
        place.mkdir()
        shutil.chown(place, *NOBODY)
        victims = [victim_directory / name for name in ("job.0", "job.1")]
        for path in victims:
            path.write_text(VICTIM)
        other = subprocess.Popen(
            [*AS_NOBODY, "perl", "-e", SWAPPER, victim_directory, str(int(delay_ms * 1000))],
            cwd=place,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        scene.experiment("directory", place, duration="100ms")
        try:
            scene.iolab("run", "experiment.toml", "--out", "run")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(other.pid, signal.SIGKILL)
            other.wait()
        scene.iolab("restore")
        for path in victims:
            scene.untouched(path, "below a directory that another user swapped for a symlink")
        if extra := sorted(path.name for path in victim_directory.iterdir() if path not in victims):
            scene.wrong.append(f"files were made in somebody's directory: {extra}")

    return swapped


# Runs and job files that somebody else wrote


def foreign_run(scene: Scene) -> None:
    """Another user's run directory, whose experiment has fio run a command."""
    canary = scene.own.directory / "canary"
    (scene.work / "experiment.toml").write_text(_fio(canary, "direct"))
    outcome = scene.iolab("run", "experiment.toml", "--out", "run")
    if outcome.status == 0:
        subprocess.run(["chown", "-R", "nobody:nogroup", scene.work / "run"], check=True)
        scene.iolab("run", "--resume", "run", "--rounds", "2")
    if canary.exists():
        scene.wrong.append("a job file of somebody else ran a command")
        canary.unlink()


def _fio(canary: Path, how: str) -> str:
    """An experiment whose job file would make the canary."""
    option = {
        "direct": f'options = {{ exec_prerun = "touch {canary}" }}',
        "newline": f'options = {{ iodepth = "1\\nexec_prerun=touch {canary}" }}',
        "carriage": f'options = {{ iodepth = "1\\rexec_prerun=touch {canary}" }}',
        "key": f'options = {{ "iodepth=1\\nexec_prerun" = "touch {canary}" }}',
        "section": f'options = {{ iodepth = "1\\n[x]\\nexec_postrun=touch {canary}" }}',
        "unicode": f'options = {{ iodepth = "1\\u2028exec_prerun=touch {canary}" }}',
        "job": "",
    }[how]
    job = f"[j]\nrw=read\nsize=64k\nbs=4k\nioengine=psync\n{f'exec_prerun=touch {canary}' if how == 'job' else ''}\n"
    return (
        'rounds = 1\nseed = 1\n[target]\nkind = "directory"\n[workloads.w]\nkind = "fio"\nrunner = "fio"\n'
        f"job = '''\n{job}'''\n{option}\n[settings.a]\n"
    )


def fio_command(how: str) -> Callable[[Scene], None]:
    def command_in_options(scene: Scene) -> None:
        canary = scene.own.directory / "canary"
        (scene.work / "experiment.toml").write_text(_fio(canary, how))
        scene.iolab("run", "experiment.toml", "--out", "run")
        if canary.exists():
            scene.wrong.append(f"a command ran by an option of a job file ({how})")
            canary.unlink()

    return command_in_options


# Names


def names_of_a_table(kind: str) -> Callable[[Scene], None]:
    def shown(scene: Scene) -> None:
        table = scene.work / "names.csv"
        with table.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["setting", "round", "iops", "latency_ns_p99"])
            for round_number in range(3):
                for number, name in enumerate(["base", *HOSTILE[kind]]):
                    writer.writerow([name, round_number, 1000 + number, 5000 - number])
        for arguments in ("show", "show --as markdown", "compare", "compare --json"):
            command, *options = arguments.split()
            scene.iolab(command, table, *options)
        cells = scene.iolab("show", table, "--as", "csv")
        scene.wrong += formulas(cells.stdout) if cells.status == 0 else []
        if scene.iolab("report", table, "-o", "report.html").status == 0:
            scene.wrong += active(scene.work / "report.html")

    return shown


def names_of_a_run(kind: str) -> Callable[[Scene], None]:
    """As title, workload and settings of a run of iolab's own."""

    def shown(scene: Scene) -> None:
        names = [json.dumps(name) for name in HOSTILE[kind]]
        text = EXPERIMENT.format(kind="directory", path=".", read_percent=50, duration="5ms")
        text = text.replace("[workloads.load]", f"[workloads.{names[0]}]")
        text = text.replace("[settings.a]", "".join(f"[settings.{name}]\n" for name in names))
        (scene.work / "experiment.toml").write_text(f"title = {names[1]}\n{text}")
        if scene.iolab("run", "experiment.toml", "--out", "run").status != 0:
            return
        scene.iolab("show", "run")
        scene.wrong += formulas(scene.iolab("show", "run", "--as", "csv").stdout)
        scene.iolab("report", "run", "-o", "report.html")
        scene.wrong += active(scene.work / "report.html")

    return shown


def formulas(text: str) -> list[str]:
    """Cells that a spreadsheet would run: text that begins like a formula, and numbers do not count."""
    found = []
    for row in csv.reader(text.splitlines()):
        found += [cell for cell in row if re.match(r"\s*[=+@-]", cell) and not re.fullmatch(r"[+-]?[\d.eE+-]+", cell)]
    return [f"a formula in CSV: {cell!r}" for cell in found[:3]]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "attack" or any(
            name.startswith("on") or "javascript:" in (value or "") for name, value in attributes
        ):
            self.wrong.append(f"active in the page: <{tag}> {attributes}"[:200])


def active(page: Path) -> list[str]:
    parser = Tags()
    parser.feed(page.read_text())
    return parser.wrong


# Outputs


def output(kind: str) -> Callable[[Scene], None]:
    def reported(scene: Scene) -> None:
        table = scene.work / "table.csv"
        table.write_text("setting,round,iops\na,0,1000\nb,0,1100\na,1,1001\nb,1,1102\n")
        place, victim = scene.work / "out.html", scene.victim()
        before: tuple[int, int] | None = None
        if kind in ("null", "full"):
            os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 3 if kind == "null" else 7))
        elif kind == "block":
            backing = scene.work / "disk.img"
            device = attach(sparse_file(backing, MIB))
            os.mknod(place, stat.S_IFBLK | 0o600, device.stat().st_rdev)
            contents = digest(device)
        elif kind == "fifo":
            os.mkfifo(place)
            os.close(os.open(place, os.O_RDONLY | os.O_NONBLOCK))
        elif kind == "directory":
            place.mkdir()
        elif kind == "link-to-device":
            node = scene.work / "node"
            os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            place.symlink_to(node)
        elif kind == "loop":
            place.symlink_to(place)
        if kind not in ("loop",):
            status = place.stat()
            before = (stat.S_IFMT(status.st_mode), status.st_rdev)
        reader = subprocess.Popen(["cat", place], stdout=subprocess.DEVNULL) if kind == "fifo" else None
        scene.iolab("report", table, "-o", place)
        scene.iolab("import", table, "--out", place)
        if reader is not None:
            reader.kill()
            reader.wait()
        if before is not None:
            status = place.stat()
            if before != (stat.S_IFMT(status.st_mode), status.st_rdev):
                scene.wrong.append(f"the {kind} was replaced by the report")
        if kind == "block" and digest(device) != contents:
            scene.wrong.append("the report was written over a block device")
        scene.untouched(victim, "beside the output")

    return reported


SCENES: list[tuple[str, Callable[[Scene], None]]] = [
    ("modules", modules),
    ("undo all", planted_undo("all")),
    ("undo symlink", planted_undo("symlink")),
    ("symlinked lock", symlinked_lock),
    ("made after the kill", made_after_the_kill),
    ("renamed over while running", renamed_over_while_running),
    ("directory swapped at once", directory_swapped(0.0)),
    ("fio newline", fio_command("newline")),
    ("output onto null", output("null")),
    ("output onto block", output("block")),
    *((f"names of a table, {kind}", names_of_a_table(kind)) for kind in HOSTILE),
    # So far in the quick part.
    ("package iolab", package),
    ("lock held", held_by_another_user),
    *(
        (f"undo {how}", planted_undo(how))
        for how in ("file", "directory", "state", "writable", "group", "file-writable", "parent")
    ),
    ("undo of a file outside", own_undo(lambda path: [{"action": "WriteFile", "path": str(path), "previous": "x"}])),
    (
        "undo through dots",
        own_undo(lambda path: [{"action": "WriteFile", "path": f"/sys/../{path}", "previous": "x"}]),
    ),
    ("renamed over after the kill", renamed_over_after_the_kill),
    ("dangling link", dangling_link),
    *((f"directory swapped after {delay:g} ms", directory_swapped(delay)) for delay in (0.2, 1.0, 3.0, 10.0, 30.0)),
    ("foreign run", foreign_run),
    *((f"fio {how}", fio_command(how)) for how in ("direct", "carriage", "key", "section", "unicode", "job")),
    *((f"output onto {kind}", output(kind)) for kind in ("full", "fifo", "directory", "link-to-device", "loop")),
    *((f"names of a run, {kind}", names_of_a_run(kind)) for kind in HOSTILE),
]
QUICK = 8


class Planted:
    def __init__(self, own: Ground) -> None:
        self.own = own

    def __call__(self, case: int) -> Outcome:
        name, attempt = SCENES[case % len(SCENES)]
        scene = Scene(self.own, self.own.lane.random("planted", case))
        try:
            attempt(scene)
        finally:
            self.own.clear()
            detach_under(self.own.work)
            for path in self.own.directory.iterdir():
                if path not in (self.own.work, self.own.state):
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            self.own.directory.chmod(0o711)
        return Outcome(1, [f"{name}: {line}" for line in scene.wrong])


FAMILY = Family(
    name="planted",
    what="modules, state, undo files, links, names and outputs that somebody else planted",
    attacks=len(SCENES),
    attacks_quick=QUICK,
    lane=lambda lane: lane_on_ground(Planted, lane),
    needs_root=True,
)
