"""`make bench`: runs the benches, or those named, and writes docs/reference/benchmarks.json and
docs/reference/benchmarks.md.

    benches/run.py [--quick] [--seed SEED] [--count COUNT] [NAME ...]
    benches/run.py --page

A bench is a module of this directory with a docstring, the page's text about it, and `measure(quick) -> list[Result]`.
`--quick` checks that the benches work, in seconds and with too few rounds to believe; it writes nothing. `--seed` and
`--count` go to a bench whose `measure` takes them too. `--page` measures nothing: it writes the known results again,
after a change of causes.toml or of a bench's docstring.
"""

import argparse
import fcntl
import importlib
import inspect
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import page
import result
from iolab import _native

BENCHES = [
    "null_engine",
    "loop_reads",
    "t_io_uring",
    "t_io_uring_counts",
    "cached_reads",
    "fs_mark",
    "iozone",
    "tiobench",
    "startup",
    "memory",
    "import_speed",
    "collection",
    "trace_speed",
    "trace_truth",
    "replay_fidelity",
    "probe_overhead",
    "statistics_simulation",
    "history_simulation",
    "bisect_simulation",
    "attribution_simulation",
    "tune_simulation",
    "model_speed",
    "model_scale",
    "planted_causes",
    "model_against_kernel",
    "guest_counts",
    "planted_kernels",
    "model_against_guest",
    "commits_against_guest",
    "sweep_scale",
]
LOCK = Path("/dev/shm/iolab-bench.lock")
DOCS = Path(__file__).parents[1] / "docs" / "reference"


def main() -> int:
    arguments = parse()
    if arguments.page:
        write(result.load(DOCS / "benchmarks.json"), page.machine_in((DOCS / "benchmarks.md").read_text()))
        return 0
    # A bench cleans up in `finally` blocks, which SIGTERM would otherwise skip; after SIGKILL the next bench cleans up.
    signal.signal(signal.SIGTERM, interrupt)
    given = {key: value for key in ("seed", "count") if (value := getattr(arguments, key)) is not None}
    for name in arguments.names:
        module = importlib.import_module(name)
        if _native.build_profile() != "release" and not getattr(module, "COUNTS_ONLY", False):
            sys.exit("the extension is a debug build, which is not worth measuring: run `make bench`")
        if missing := given.keys() - inspect.signature(module.measure).parameters.keys():
            sys.exit(f"{name} takes no --{min(missing)}")
    with alone():
        for name in arguments.names:
            bench(name, quick=arguments.quick, given=given)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure iolab against its peers.")
    parser.add_argument("--quick", action="store_true", help="seconds; no figures to believe, nothing written")
    parser.add_argument("--page", action="store_true", help="write the known results again, with their causes")
    parser.add_argument("--seed", type=int, help="that a bench draws from")
    parser.add_argument("--count", type=int, help="how many histories a bench draws")
    parser.add_argument("names", nargs="*", choices=[*BENCHES, []], metavar="NAME", help=f"of {', '.join(BENCHES)}")
    arguments = parser.parse_args()
    arguments.names = arguments.names or BENCHES
    return arguments


@contextmanager
def alone() -> Iterator[None]:
    """Two at once would measure each other, and clear each other's devices away."""
    with LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another `make bench` is running on this machine: wait for it")
        yield


def bench(name: str, *, quick: bool, given: Mapping[str, int]) -> None:
    print(f"== {name}", file=sys.stderr)
    module = importlib.import_module(name)
    today = datetime.now(UTC).date().isoformat()
    known = result.load(DOCS / "benchmarks.json")
    try:
        measured = module.measure(quick, **given)
    except result.NotMeasured as why:
        earlier = [one for one in known if one.bench == name]
        kept = "its earlier results stay" if earlier else "it has no earlier results"
        print(f"!! {name}: NOT MEASURED, {kept}: {why}", file=sys.stderr)
        measured = earlier or [result.unmeasured(why)]
        today = earlier[0].measured_on if earlier else today
    fresh = [replace(one, bench=name, measured_on=today) for one in measured]
    print(page.table(fresh))
    if not quick:
        write(result.merge(known, name, fresh))


def write(results: Sequence[result.Result], known_machine: str | None = None) -> None:
    """Both files, with the causes of what misses its target."""
    told = result.explained(results, result.causes())
    for one in result.unexplained(told):
        print(f"!! {one.bench}: {one.name}: misses its target: add its cause to {result.CAUSES}", file=sys.stderr)
    result.save(DOCS / "benchmarks.json", told)
    (DOCS / "benchmarks.md").write_text(page.render(told, BENCHES, known_machine))


def interrupt(signal_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(f"signal {signal_number}")


if __name__ == "__main__":
    sys.exit(main())
