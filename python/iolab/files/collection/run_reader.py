"""Reads a run for the index: its entry and its extract. In several processes, if many are new."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path

from pydantic import TypeAdapter

from iolab.base.bounded_file import read_start
from iolab.base.errors import InputError, IolabError
from iolab.base.plain_text import one_line
from iolab.base.schema import checked_json
from iolab.domain.collection.benchmark import benchmark_id
from iolab.domain.collection.entry import ID_LENGTH, Entry, Labels, Main
from iolab.domain.collection.extract import Extract, extract_of
from iolab.domain.collection.hardware import hardware_id, hardware_of, in_words
from iolab.domain.definition import Verdict
from iolab.files.collection import labels
from iolab.files.store import RunData, read

ALONE_MAX = 64
"""So many runs are read sooner than other processes are started."""
PER_TASK = 8
FIRST_LINE_BYTES_MAX = 1 << 20
_ENTRY, _EXTRACT = TypeAdapter(Entry), TypeAdapter(Extract)


@dataclass(frozen=True)
class Read:
    """What was read of a run. `ended`: it is complete; `extract`: None if nothing could be read."""

    entry: Entry
    ended: bool
    extract: Extract | None


def read_runs(directory: Path, names: Sequence[str], on_read: Callable[[int], None]) -> Iterator[Read]:
    """Reads the runs of these names below the directory, in their order; `on_read` gets how many were read."""
    tasks = [(str(directory), name) for name in names]
    if len(tasks) <= ALONE_MAX or (os.cpu_count() or 1) == 1:
        for count, task in enumerate(tasks, start=1):
            yield read_one(task)
            on_read(count)
        return
    # Not forked: threads of this process may hold locks. Each has one thread for frames.
    context = multiprocessing.get_context("spawn")
    threads_before = os.environ.get("POLARS_MAX_THREADS")
    os.environ["POLARS_MAX_THREADS"] = "1"
    try:
        workers = min(os.cpu_count() or 1, -(-len(tasks) // PER_TASK))
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            for count, found in enumerate(pool.map(read_one, tasks, chunksize=PER_TASK), start=1):
                yield found
                on_read(count)
    finally:
        os.environ.pop("POLARS_MAX_THREADS")
        if threads_before is not None:
            os.environ["POLARS_MAX_THREADS"] = threads_before


def read_one(task: tuple[str, str]) -> Read:
    """A run by the collection's directory and its name below. What can't be read is an entry that states why."""
    directory, name = task
    path = Path(directory, name)
    try:
        given, wrong = labels.read(path, Path(directory)), ""
    except InputError as error:
        given, wrong = Labels(), str(error)
    try:
        run = read(path, Path(directory))
        extract = extract_of(run)
        entry = _entry(run, extract, name)
        _check(entry, extract)
    except IolabError as error:
        return _unreadable(path, name, given, str(error))
    except OSError as error:  # removed, or changed, while it is read
        return _unreadable(path, name, given, f"can't be read: {error.strerror}")
    except Exception as error:  # one run must not keep the others from being listed
        return _unreadable(path, name, given, f"a defect in iolab: {type(error).__name__}: {error}")
    problems = (*entry.problems, wrong) if wrong else entry.problems
    return Read(replace(entry, labels=given, problems=problems), run.state.ended, extract)


def _entry(run: RunData, extract: Extract, name: str) -> Entry:
    counts: dict[Verdict, int] = {}
    for one in extract.judged:
        counts[one.verdict] = counts.get(one.verdict, 0) + 1
    starts = run.trials["started_unix_ns"].drop_nulls()
    began = min((start for start in starts if start > 0), default=None)
    if began is None and run.state.sessions:
        began = run.state.sessions[0].get("wall_unix_ns")
    title = run.experiment.title
    hardware = hardware_of(run.machine_name, extract.facts)
    return Entry(
        id=run_id(run.path),
        name=name,
        title=title,
        started_unix_ns=began,
        machine=run.machine_name or "",
        hostname=extract.facts.get("machine", ""),
        kernel=_kernel(run, extract),
        settings=tuple(run.settings),
        workloads=tuple(run.workloads),
        rounds=run.trials["round"].n_unique(),
        trials=run.trials.height,
        trials_not_ok=int((~run.trials["status"].is_in(["ok", "impossible"])).sum()),
        verdicts=counts,
        problems=tuple(one_line(problem) for problem in extract.problems),
        benchmark=benchmark_id(title, run.workloads),
        hardware=hardware_id(hardware),
        hardware_in_words=in_words(hardware),
        state="done" if run.state.ended else "unfinished",
        main=_main(extract),
    )


def _check(entry: Entry, extract: Extract) -> None:
    """InputError for what the index could not be read back with: it would be made anew each time."""
    try:
        checked_json(_ENTRY, json.dumps(asdict(entry)))
        checked_json(_EXTRACT, extract.model_dump_json())
    except ValueError as error:
        raise InputError(f"has a value that no list can show: {error}", where=entry.name) from None


def _main(extract: Extract) -> Main | None:
    for one in extract.measured:
        if one.setting == extract.baseline and one.typical is not None and one.metric in extract.compared[:1]:
            return Main(one.workload, one.setting, one.metric, one.typical, one.spread)
    return None


def _kernel(run: RunData, extract: Extract) -> str:
    """Each that the settings asked for, or that was booted for them; else the host's."""
    if asked := run.experiment.machine.kernels:
        return ", ".join(Path(kernel).name for kernel in asked)
    releases = [
        release
        for session in run.state.sessions
        if session.get("part") and (release := session.get("fingerprint", {}).get("kernel", "").partition(" ")[0])
    ]
    return ", ".join(dict.fromkeys(releases)) or extract.facts.get("kernel", "")


def _unreadable(path: Path, name: str, given: Labels, why: str) -> Read:
    entry = Entry(
        id=run_id(path),
        name=name,
        title="",
        started_unix_ns=None,
        machine="",
        hostname="",
        kernel="",
        settings=(),
        workloads=(),
        rounds=0,
        trials=0,
        trials_not_ok=0,
        verdicts={},
        problems=(one_line(why),),
        benchmark="",
        hardware="",
        hardware_in_words="",
        state="unreadable",
        labels=given,
    )
    return Read(entry, False, None)


def run_id(path: Path) -> str:
    """The digest of the journal's first line, which holds when the run began, and its seed."""
    try:
        first = (
            read_start(path / "journal.jsonl", FIRST_LINE_BYTES_MAX, "a journal", within=path).partition(b"\n")[0]
            + b"\n"
        )
    except InputError:
        first = str(path).encode()
    return blake2b(first, digest_size=ID_LENGTH // 2).hexdigest()
