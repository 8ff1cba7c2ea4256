"""Compares the journal with the files in the run directory, so that the reader takes only whole files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from iolab.base.errors import InputError
from iolab.files.store import event as events
from iolab.files.store import index, trial_file
from iolab.files.store.directory import RunDirectory, trial_file_name
from iolab.files.store.event import TrialFinished
from iolab.files.store.state import RunState, describe_finished
from iolab.files.store.trial_file import TrialFileDigest

READ_BUT_NOT_IN_JOURNAL = "is not in the journal (read all the same; a resumed run takes it over)"


@dataclass
class Examination:
    """What a look at a run directory found to be whole."""

    trials: dict[int, TrialFinished] = field(default_factory=dict)
    """`trial_finished` by trial, for those whose file is whole, in order."""
    index_files: list[Path] = field(default_factory=list)
    trial_files: list[Path] = field(default_factory=list)
    """Whole, and not covered by an index file."""
    problems: list[str] = field(default_factory=list)


def examine(directory: RunDirectory, state: RunState) -> Examination:
    """Every trial's file that is whole. What isn't is named in `problems` and left out."""
    found = Examination()
    on_disk = _scan(directory.trials)
    sha256_of = state.sha256_of()
    fresh_blocks = {
        block: index.index_file(directory, block).stat().st_mtime_ns
        for block in index.complete_blocks(sha256_of)
        if index.is_fresh(directory, sha256_of, block)
    }
    for trial, event in state.finished.items():
        name = trial_file_name(trial)
        # An index newer than the file was made when the file had the digest that the journal names.
        indexed_at_ns = fresh_blocks.get(index.block_of(trial), -1)
        problem = _problem_of(directory, name, on_disk.pop(name, None), event, indexed_at_ns)
        if problem:
            found.problems.append(f"trials/{name}: {problem}; left out")
        else:
            found.trials[trial] = event
    for name in sorted(on_disk):
        _adopt(directory, name, found)
    found.trials = dict(sorted(found.trials.items()))
    _choose_files(directory, fresh_blocks, found)
    return found


def _scan(trials: Path) -> dict[str, os.stat_result]:
    found: dict[str, os.stat_result] = {}
    if trials.is_symlink():
        return found
    with suppress(OSError), os.scandir(trials) as entries:  # none, or gone meanwhile
        for entry in entries:
            if entry.name.endswith(".parquet"):
                with suppress(OSError):
                    if entry.is_file(follow_symlinks=False):  # a link is as good as missing
                        found[entry.name] = entry.stat(follow_symlinks=False)
    return found


def _problem_of(
    directory: RunDirectory, name: str, stat: os.stat_result | None, event: TrialFinished, indexed_at_ns: int
) -> str | None:
    if stat is None:
        return "missing, though the trial finished by the journal"
    if stat.st_size != event["size_bytes"]:
        return f"truncated or changed: {stat.st_size} bytes, {event['size_bytes']} were written"
    if stat.st_mtime_ns <= indexed_at_ns:
        return None
    return problem_of_content(directory.trials / name, event, directory.root)


def problem_of_content(path: Path, event: TrialFinished, within: Path) -> str | None:
    """Why the file of a finished trial can't be relied on; None when it is what was written. No link is followed below
    `within`."""
    try:
        content = trial_file.read_content(path, within)
        if TrialFileDigest.of(content).sha256 != event["sha256"]:
            return "corrupt: not the bytes that were written"
        trial_file.check(content)
    except InputError as error:
        return error.what
    except ValueError as error:
        return str(error)
    return None


def _adopt(directory: RunDirectory, name: str, found: Examination) -> None:
    """Takes a file that a kill, or a torn journal, left without its entry."""
    path = directory.trials / name
    try:
        record = trial_file.read_record(path, directory.root)
        stored = TrialFileDigest.of(trial_file.read_content(path, directory.root))
        event = describe_finished(record, stored, attempt=1, duration_ns=None)
        events.check({**event})
    except InputError as error:
        found.problems.append(f"trials/{name}: {error.what}; left out")
        return
    except ValueError as error:
        found.problems.append(f"trials/{name}: {error}; left out")
        return
    if path != directory.trial_file(record.spec.trial):
        found.problems.append(f"trials/{name}: holds trial {record.spec.trial}; left out")
        return
    if any(_place(other) == _place(event) for other in found.trials.values()):
        found.problems.append(f"trials/{name}: another trial is of the same round, workload and setting; left out")
        return
    found.trials[record.spec.trial] = event
    found.problems.append(f"trials/{name}: {READ_BUT_NOT_IN_JOURNAL}")


def _place(event: TrialFinished) -> tuple[int, str, str]:
    return event["round"], event["workload"], event["setting"]


def _choose_files(directory: RunDirectory, fresh_blocks: Mapping[int, int], found: Examination) -> None:
    usable = [block for block in index.complete_blocks(found.trials) if block in fresh_blocks]
    found.index_files = [index.index_file(directory, block) for block in usable]
    covered = set(usable)
    found.trial_files = [directory.trial_file(trial) for trial in found.trials if index.block_of(trial) not in covered]
