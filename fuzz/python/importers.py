"""Coverage-guided fuzzing of the importers: any file ends in a run or in one clear error, in bounded time and memory.

    python fuzz/python/importers.py [--seconds N] [--work DIR]     fuzz
    python fuzz/python/importers.py INPUT...                       run these inputs once, to see what they do

Needs atheris (`pip install atheris`). An input is a byte that chooses the format and how much is asked of the run, then
the file's content. A finding is an exception other than InputError, an error of several lines, a metric that is not
finite, or an input that takes more than `SECONDS_MAX` of processor time; each is written once, by where it was raised,
to DIR/findings, and fuzzing goes on. What hangs or outgrows its memory ends libFuzzer, which leaves the input there too
and is started again for the time that is left. DIR/figures.json has the counts, renewed every 10 s.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEEDS = (ROOT / "tests/imported", ROOT / "docs/samples", ROOT / "fuzz/seeds/rows")
INPUT_BYTES_MAX = 1 << 16
SECONDS_MAX = 2.0
"""Of processor time, instrumented; without instrumentation it is about a third of that."""
HANG_S, MEMORY_MIB = 60, 4096
FIGURES_EVERY_S = 10
DEEPLY = 0x80
"""Set in the first byte: the run is shown and compared too, not only read."""
NAMES = {"fio-bw-log": "x_bw.1.log", "fio-iops-log": "x_iops.1.log", "fio-lat-log": "x_lat.1.log"}


class Figures:
    """What was tried and what was found, kept in a file that later processes go on from."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.path = work / "figures.json"
        self.counts = {"inputs": 0, "runs": 0, "errors": 0, "wrong": 0, "seconds": 0.0, "slowest_s": 0.0}
        if self.path.exists():
            self.counts |= json.loads(self.path.read_text())
        self.begun = time.monotonic() - self.counts["seconds"]
        self.next_write = 0.0

    def count(self, what: str, seconds: float) -> None:
        self.counts["inputs"] += 1
        self.counts[what] += 1
        self.counts["slowest_s"] = max(self.counts["slowest_s"], round(seconds, 3))
        if time.monotonic() > self.next_write:
            self.write()

    def write(self) -> None:
        self.next_write = time.monotonic() + FIGURES_EVERY_S
        self.counts["seconds"] = round(time.monotonic() - self.begun, 1)
        found = len([one for one in (self.work / "findings").iterdir() if one.suffix != ".txt"])
        self.path.write_text(json.dumps(self.counts | {"findings": found}, indent=1) + "\n")


class Target:
    """Reads one input."""

    def __init__(self, work: Path) -> None:
        from iolab.files.importer.formats import FORMATS

        self.formats = [None, *FORMATS]
        self.directory = Path(tempfile.mkdtemp(prefix="iolab-fuzz-", dir="/dev/shm"))
        self.findings = work / "findings"
        self.findings.mkdir(parents=True, exist_ok=True)
        self.figures = Figures(work)

    def __call__(self, data: bytes) -> None:
        if not data:
            return
        begun = time.process_time()
        try:
            what = self.read(data)
        except Exception as error:
            what = "wrong"
            frames = traceback.extract_tb(error.__traceback__)
            ours = next((one for one in reversed(frames) if "iolab" in one.filename), frames[-1])
            self.keep(f"{type(error).__name__}-{Path(ours.filename).stem}-{ours.lineno}", data, traceback.format_exc())
        seconds = time.process_time() - begun
        if seconds > SECONDS_MAX:
            name = self.formats[(data[0] & ~DEEPLY) % len(self.formats)]
            self.keep(f"slow-{name}", data, f"{seconds:.1f} s of processor time for {len(data)} bytes as {name}\n")
            what = "wrong"
        self.figures.count(what, seconds)

    def read(self, data: bytes) -> str:
        """`runs` or `errors`. Raises what is wrong."""
        from iolab.base.errors import InputError

        name = self.formats[(data[0] & ~DEEPLY) % len(self.formats)]
        path = self.directory / NAMES.get(name or "", "any.txt")
        path.write_bytes(data[1:])
        try:
            return show(path, name) if data[0] & DEEPLY else parse(path, name)
        except InputError as error:
            assert "\n" not in str(error), "an error of several lines"
            assert len(str(error)) < 2000, "an error longer than a line"
            return "errors"

    def keep(self, name: str, data: bytes, said: str) -> None:
        path = self.findings / re.sub(r"[^\w-]", "_", name)
        if not path.exists():
            path.write_bytes(data)
            path.with_suffix(".txt").write_text(said)
            print(f"finding: {path}\n{said}", flush=True)


def parse(path: Path, name: str | None) -> str:
    from iolab.files.importer.formats import formats_of
    from iolab.files.importer.results import Results
    from iolab.files.importer.source import Source

    results, source = Results(), Source(path)
    formats = formats_of(source, name)
    results.begin_source(source.name, source.stem)
    for one in formats:
        one.parse(source, results)
    rows = [row for trial in results.finish() for row in trial.rows]
    assert all(row.value is None or math.isfinite(row.value) for row in rows), "a figure that is not finite"
    return "runs" if rows else "errors"


def show(path: Path, name: str | None) -> str:
    from iolab.files.importer.run_import import open_run
    from iolab.presentation.table import render

    run = open_run(path, name)
    assert set(run.experiment.workloads) == set(run.workloads)
    run.histograms(), run.intervals(), run.remarks()
    render(run, "json")
    return "runs"


def seeds_into(corpus: Path) -> None:
    """The samples of each format, recognised by themselves and named."""
    from iolab.base.errors import InputError
    from iolab.files.importer.formats import FORMATS, formats_of
    from iolab.files.importer.source import Source

    places = [None, *FORMATS]
    for path in sorted(one for directory in SEEDS for one in directory.iterdir() if one.is_file()):
        content = path.read_bytes()[:INPUT_BYTES_MAX]
        try:
            names = [one.name for one in formats_of(Source(path))]
        except InputError:
            names = []
        for place in {0, *map(places.index, names)}:
            for flag in (0, DEEPLY):
                data = bytes([place | flag]) + content
                (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)


def dictionary_into(path: Path) -> None:
    from iolab.files.importer.formats import FORMATS

    words = {word for one in FORMATS.values() for word in one.words}
    for source in (ROOT / "python/iolab/files/importer").glob("*.py"):
        words |= {word for word in re.findall(r"[A-Za-z%>()/_:-]{3,24}", source.read_text()) if not word.islower()}
    words |= {"1e308", "5e-324", "-1", "1e999", "9" * 30, "nan", "²", "\u00a0", "> ", "*** ", "%", "\n\n", "  "}
    escaped = ("".join(f"\\x{byte:02x}" for byte in word.encode()) for word in sorted(words))
    path.write_text("".join(f'"{word}"\n' for word in escaped))


def fuzz(work: Path, seconds: int) -> None:
    """In this process, until the time is over. libFuzzer ends the process itself."""
    import atheris

    with atheris.instrument_imports(
        include=["iolab.files.importer", "iolab.base.mountstats", "iolab.base.histogram", "iolab.domain.verdict"]
    ):
        pass
    corpus, words = work / "corpus", work / "words.dict"
    corpus.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        seeds_into(corpus)
    dictionary_into(words)
    target = Target(work)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-dict={words}",
        f"-timeout={HANG_S}",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-artifact_prefix={work / 'findings'}/",
        "-print_final_stats=1",
        "-len_control=20",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], target)
    atheris.Fuzz()


def fuzz_for(work: Path, seconds: int) -> int:
    """In processes of its own, as many as it takes; how many ways in which the importers are wrong were found."""
    end = time.monotonic() + seconds
    while (left := int(end - time.monotonic())) > 0:
        command = [sys.executable, __file__, "--work", str(work), "--seconds", str(left), "--here"]
        status = subprocess.run(command, env=os.environ | {"PYTHONUNBUFFERED": "1"}).returncode
        print(f"libFuzzer ended with status {status}", flush=True)
        if status and not (work / "figures.json").exists():
            return 1
    print((work / "figures.json").read_text())
    return len([one for one in (work / "findings").iterdir() if one.suffix != ".txt"])


def once(inputs: Sequence[Path]) -> int:
    with tempfile.TemporaryDirectory() as work:
        target = Target(Path(work))
        for path in inputs:
            begun = time.process_time()
            target(path.read_bytes())
            print(f"{path}: {time.process_time() - begun:.2f} s")
        return target.figures.counts["wrong"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="*", type=Path, metavar="INPUT")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--work", type=Path, default=ROOT / "fuzz/corpus/importers")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inputs:
        return min(once(given.inputs), 1)
    given.work.mkdir(parents=True, exist_ok=True)
    if given.here:
        fuzz(given.work, given.seconds)
        return 0
    return min(fuzz_for(given.work, given.seconds), 1)


if __name__ == "__main__":
    sys.exit(main())
