"""`make attack`: kills, damages, plants and hangs, and counts what was not as it should be.

    attack/run.py [--count N] [--seed N] [--case N] [--quick] [FAMILY ...]

A family is a module of this directory with a `FAMILY`. Each of its cases follows from the seed and the case's number,
so that `--seed S --case N FAMILY` makes one again; its directory stays then. It drives the command line, as root on
loop devices, state directories and a mount namespace of its own. Exit status 1 when anything is wrong.
"""

import argparse
import importlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import FrameType

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(TESTS), str(HERE.parent / "tools")]

from family import Attack, Family, Lane, Outcome  # noqa: E402 (after the path)
from support.machine_lock import machine_alone  # noqa: E402

NAMES = [
    *("planted", "others", "devices", "hung", "stores", "kills"),
    *("inputs", "readback", "gits", "servers", "guests", "cluster"),
]
GROUND = Path("/var/tmp")
"""A disk: swap and loop devices over memory would wait for themselves."""
PRIVATE = "IOLAB_ATTACK_IS_PRIVATE"
"""Holds the mount namespace that was left."""
MOUNT_NAMESPACE = Path("/proc/self/ns/mnt")
PROGRESS_S = 60.0


@dataclass
class Tally:
    """What came of a family so far."""

    family: Family
    attacks: int = 0
    seconds: float = 0.0
    wrong: dict[int, list[str]] = field(default_factory=dict)


def main() -> int:
    arguments = parse()
    if os.geteuid() == 0 and PRIVATE not in os.environ:
        in_private_mount_namespace()
    if os.geteuid() == 0 and str(MOUNT_NAMESPACE.readlink()) != os.environ[PRIVATE]:
        let_go_of_others_mounts()
    # Cleaning up is in `finally` blocks, which SIGTERM would otherwise pass by.
    signal.signal(signal.SIGTERM, interrupt)
    families = [importlib.import_module(name).FAMILY for name in arguments.names]
    with (
        machine_alone() if not arguments.locked else nullcontext(),
        ground(keep=arguments.case is not None) as directory,
    ):
        mount_tracefs()
        tallies = [attack(family, arguments, directory) for family in families]
    print(table(tallies, arguments.seed))
    return 1 if any(tally.wrong for tally in tallies) else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Attack iolab and count what was not as it should be.")
    parser.add_argument("--count", type=int, help="so many attacks of each family, instead of all")
    parser.add_argument("--seed", type=int, help="of all that is random; drawn and printed by default")
    parser.add_argument("--case", type=int, help="this case alone; what it leaves stays to be looked at")
    parser.add_argument("--quick", action="store_true", help="a small part of each family, to see that the kit works")
    parser.add_argument("--locked", action="store_true", help="the caller has the lock of tests that need the machine")
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], metavar="FAMILY", help=f"of {', '.join(NAMES)}")
    arguments = parser.parse_args()
    arguments.names = arguments.names or NAMES
    if arguments.seed is None:
        arguments.seed = secrets.randbelow(10**6)
    return arguments


def attack(family: Family, arguments: argparse.Namespace, directory: Path) -> Tally:
    tally = Tally(family)
    if family.needs_root and os.geteuid() != 0:
        print(f"!! {family.name}: NOT MADE, it needs root", file=sys.stderr)
        return tally
    print(f"== {family.name}: {family.what}", file=sys.stderr)
    began = time.monotonic()
    wanted = arguments.count or (family.attacks_quick if arguments.quick else family.attacks)
    one = arguments.case is not None
    cases = iter([arguments.case]) if one else count()
    width = 1 if one else family.lanes
    lanes = [Lane(number, directory / f"{family.name}-{number}", arguments.seed) for number in range(width)]
    side_by_side(family, lanes, cases, wanted, tally)
    tally.seconds = time.monotonic() - began
    return tally


def side_by_side(family: Family, lanes: list[Lane], cases: Iterator[int], wanted: int, tally: Tally) -> None:
    lock, stop = threading.Lock(), threading.Event()
    last_told = time.monotonic()

    def next_case() -> int | None:
        with lock:
            return None if stop.is_set() or tally.attacks >= wanted else next(cases, None)

    def add(case: int, outcome: Outcome) -> None:
        nonlocal last_told
        with lock:
            tally.attacks += outcome.attacks
            if outcome.wrong:
                tally.wrong[case] = outcome.wrong
                report_failure(family, case, lanes[0].seed, outcome.wrong)
            if time.monotonic() > last_told + PROGRESS_S:
                last_told = time.monotonic()
                print(f"   {family.name}: {tally.attacks} so far, {len(tally.wrong)} wrong", file=sys.stderr)

    def work(lane: Lane) -> None:
        lane.directory.mkdir(parents=True)
        try:
            with family.lane(lane) as made:
                while (case := next_case()) is not None:
                    add(case, guarded(made, case))
        except Exception as error:
            add(-1 - lane.number, Outcome(0, [f"lane {lane.number} is not to be had: {error!r}"]))

    threads = [threading.Thread(target=work, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def guarded(made: Attack, case: int) -> Outcome:
    """The kit's own mistake counts as one, too."""
    try:
        return made(case)
    except Exception as error:
        traceback.print_exception(error)
        return Outcome(1, [f"the kit failed: {error!r}"])


def report_failure(family: Family, case: int, seed: int, wrong: list[str]) -> None:
    for line in wrong:
        print(f"WRONG {family.name} {case}: {line}", file=sys.stderr)
    print(f"      again: make attack ONLY={family.name} SEED={seed} CASE={case}", file=sys.stderr, flush=True)


def table(tallies: list[Tally], seed: int) -> str:
    lines = [f"{'family':<10} {'attacks':>9} {'seconds':>9} {'wrong':>7}"]
    lines += [
        f"{tally.family.name:<10} {tally.attacks:>9,} {tally.seconds:>9.1f} {len(tally.wrong):>7,}" for tally in tallies
    ]
    return "\n".join([*lines, f"seed {seed}"])


@contextmanager
def ground(*, keep: bool) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="iolab-attack-", dir=GROUND))
    # Ordinary users attack inside, and look at nothing of each other's.
    path.chmod(0o711)
    try:
        yield path
    finally:
        if keep:
            print(f"what was made stays in {path}", file=sys.stderr)
        else:
            shutil.rmtree(path, ignore_errors=True)


def in_private_mount_namespace() -> None:
    """Starts anew where what is mounted is seen by nobody else, and what others unmount goes."""
    os.environ[PRIVATE] = str(MOUNT_NAMESPACE.readlink())
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "slave", sys.executable, *sys.argv])


def let_go_of_others_mounts() -> None:
    """Unmounts loop devices that others have mounted, in this mount namespace alone: a copy of a mount here would keep
    its device busy."""
    needed = [Path(place).resolve() for place in (HERE, GROUND, sys.executable, sys.prefix, tempfile.gettempdir())]
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for fields in reversed(mounts):
        point, source = Path(fields[4]), fields[fields.index("-") + 2]
        if source.startswith("/dev/loop") and not any(place.is_relative_to(point) for place in needed):
            subprocess.run(["umount", "--lazy", point], capture_output=True, check=False)


def mount_tracefs() -> None:
    """Where probes trace: here it is seen by nobody else."""
    if os.geteuid() == 0 and not Path("/sys/kernel/tracing/instances").is_dir():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", "/sys/kernel/tracing"], capture_output=True, check=False)


def interrupt(signal_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(f"signal {signal_number}")


if __name__ == "__main__":
    sys.exit(main())
