"""The run directory: where everything of one run lies, and how it comes into being.

```
experiment.toml        the experiment's exact text
files/                 the files that the experiment names, such as fio's job files, as they were
machine.json           the machine as it was when the run began
labels.json            tags and a note, which people give it (iolab.files.collection.labels)
journal.jsonl          what happened when (journal.py)
trials/000017.parquet  one trial (trial_file.py)
traces/000017.NAME     traces that a probe of a simulated machine was asked for: PHASE.sda.blktrace.0, PHASE.ftrace.txt
index/000256.parquet   the metrics of 256 trials, derived from their files; safe to delete (index.py)
```
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from iolab.base import beneath, replaceable
from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, MIB, read_bounded
from iolab.base.durable import (
    put_in_place,
    refusals_explained,
    remove_leftovers,
    sync_directory,
    write_atomically,
    write_durably,
)
from iolab.base.errors import InputError
from iolab.base.strict_json import JsonObject
from iolab.domain.record import unpacked_trace
from iolab.files.store.event import RunStarted
from iolab.files.store.journal import Journal

DEFAULT_PARENT = "iolab-runs"
SLUG_LENGTH_MAX = 40
MACHINE_BYTES_MAX = 64 * MIB
PARTS = frozenset({"experiment.toml", "machine.json", "journal.jsonl", "trials", "index", "files"})
"""What `create` makes, and a killed one leaves under a hidden name."""


@dataclass(frozen=True)
class RunDirectory:
    """The parts of a run directory by name; nothing is looked at until it is asked for."""

    path: Path
    within: Path | None = None
    """The directory of a collection that it was found in."""

    @property
    def root(self) -> Path:
        """Below it no link is followed."""
        return self.within or self.path

    @property
    def experiment_file(self) -> Path:
        """The experiment's text, as it was given."""
        return self.path / "experiment.toml"

    @property
    def machine_file(self) -> Path:
        """The description of the machine, machine.json."""
        return self.path / "machine.json"

    @property
    def journal_file(self) -> Path:
        """The journal, journal.jsonl: what happened, an event a line."""
        return self.path / "journal.jsonl"

    @property
    def trials(self) -> Path:
        """The directory of the trials' files."""
        return self.path / "trials"

    @property
    def files(self) -> Path:
        """The directory of copies of what the experiment names."""
        return self.path / "files"

    @property
    def index(self) -> Path:
        """The directory of files that are derived from the trials', for fast reading."""
        return self.path / "index"

    @property
    def traces(self) -> Path:
        """The directory of trace files that simulated trials wrote."""
        return self.path / "traces"

    def write_traces(self, trial: int, traces: Mapping[str, str]) -> None:
        """The trial's traces (`Record.traces`), each whole and durable on return. MachineError if the disk refuses."""
        if traces and not self.traces.is_dir():
            with refusals_explained(self.traces):
                beneath.make_directory(self.traces, self.root, exist_ok=True)
                sync_directory(self.path)
        for name, packed in traces.items():
            write_atomically(self.traces / f"{trial:06d}.{name}", unpacked_trace(packed), self.root)

    def trial_file(self, trial: int) -> Path:
        """The file of the trial of this number, whether it exists or not."""
        return self.trials / trial_file_name(trial)

    @staticmethod
    def open(path: Path, within: Path | None = None) -> RunDirectory:
        """InputError if `path` is no run directory, or one written by a later iolab."""
        directory = RunDirectory(path, within)
        if not path.is_dir():
            what = "is not a directory" if path.exists() else "does not exist"
            raise InputError(what, where=str(path), remedy="name a directory that `iolab run` made")
        for file in (directory.experiment_file, directory.journal_file):
            if not beneath.is_file(file, directory.root):
                beneath.refuse_link(file, directory.root)
                raise _not_a_run(path, file.name)
        return directory

    def experiment_text(self) -> str:
        """The experiment as it was given, byte for byte. InputError if it is not UTF-8 any more."""
        content = read_bounded(self.experiment_file, EXPERIMENT_BYTES_MAX, "an experiment", within=self.root)
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"is not UTF-8: {error.reason}", where=str(self.experiment_file)) from None

    def machine_text(self) -> bytes:
        """The machine's description. InputError if it can't be read."""
        return read_bounded(self.machine_file, MACHINE_BYTES_MAX, "a machine's description", within=self.root)

    def check_directories(self) -> None:
        """InputError if something else stands where a run has a directory: nothing is written through a link."""
        for directory in (self.trials, self.index, self.traces, self.files):
            if os.path.lexists(directory) and not stat.S_ISDIR(directory.lstat().st_mode):
                what = "is a symbolic link" if directory.is_symlink() else "is not a directory"
                remedy = "put the run's directory back, or remove what stands in its place"
                raise InputError(f"{what}; expected a directory of the run", where=str(directory), remedy=remedy)

    def remove_leftovers(self) -> None:
        """Removes the temporary files of a killed writer. For the holder of the journal's lock."""
        for directory in (self.trials, self.index):
            beneath.make_directory(directory, self.root, exist_ok=True)
            remove_leftovers(directory, self.root)
        if self.traces.is_dir():
            remove_leftovers(self.traces, self.root)


def trial_file_name(trial: int) -> str:
    """The name of a trial's file: six digits or more, so that names sort like numbers up to a million."""
    return f"{trial:06d}.parquet"


def default_path(name: str) -> Path:
    """A new path under ./iolab-runs: the UTC time and a slug of the experiment's title or file name."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:SLUG_LENGTH_MAX].rstrip("-")
    stem = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + (f"-{slug}" if slug else "")
    path, copies = Path(DEFAULT_PARENT) / stem, 1
    while path.exists():
        copies += 1
        path = Path(DEFAULT_PARENT) / f"{stem}-{copies}"
    return path


def check_free(path: Path) -> None:
    """InputError if `path` exists and is anything but an empty directory: nothing is overwritten."""
    if path.is_symlink():
        raise InputError(
            "is a symbolic link", where=str(path), remedy="name the directory itself, or choose another --out"
        )
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError("exists and is not a directory", where=str(path), remedy="choose another --out")
    if any(path.iterdir()):
        raise InputError(
            "the directory is not empty",
            where=str(path),
            remedy=f"choose another --out, or continue the run in it: iolab run --resume {path}",
        )


def create(
    path: Path,
    *,
    experiment_text: str,
    machine: JsonObject,
    first_event: RunStarted,
    attachments: Mapping[str, str] | None = None,
) -> RunDirectory:
    """Makes the run directory complete with its journal's first event, under another name, then renames it: a kill
    leaves either no run or one that can be resumed. InputError if `path` is taken or can't be made."""
    check_free(path)
    replaceable.refuse_strangers(path.parent)
    try:
        beneath.make_directories(path.parent)
        with put_in_place(path, PARTS) as nursery:
            draft = RunDirectory(nursery)
            beneath.make_directory(draft.trials)
            beneath.make_directory(draft.index)
            write_durably(draft.experiment_file, experiment_text.encode())
            if attachments:
                beneath.make_directory(draft.files)
            for name, text in (attachments or {}).items():
                write_durably(draft.files / name, text.encode(), nursery)
            description = (json.dumps(machine, indent=2, ensure_ascii=False) + "\n").encode()
            write_durably(draft.machine_file, description)
            with Journal(draft.journal_file) as journal:
                started: RunStarted = {**first_event, "machine_sha256": hashlib.sha256(description).hexdigest()}
                journal.append(**started)
            for made in (draft.trials, draft.index, draft.files):
                if made.is_dir():
                    sync_directory(made)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            check_free(path)
        raise InputError(
            f"the run directory can't be made: {error.strerror}", where=str(path), remedy="choose another --out"
        ) from None
    return RunDirectory(path)


def missing(path: Path) -> list[Path]:
    """What `create` would make for the path: itself and its missing parents, innermost first."""
    return [place for place in (path, *path.parents) if not place.exists()]


def take_back(made: RunDirectory, was_missing: list[Path]) -> None:
    """Removes what `create` made, for a run in which nothing was measured: a second try finds all as the first did."""
    with suppress(OSError):
        beneath.empty_directory(made.path)
        for place in was_missing:  # another run is in a parent by now
            beneath.remove_if_empty(place)


def _not_a_run(path: Path, missing: str) -> InputError:
    if any((path / name).exists() for name in ("sweep.json", "tune.json")):
        return InputError(
            "holds runs, and is none itself", where=str(path), remedy=f"name one of them: iolab ls {path} lists them"
        )
    if (path / "search.jsonl").exists():
        return InputError(
            "is a search among commits, which has no run", where=str(path), remedy=f"its answer: iolab show {path}"
        )
    return InputError(
        f"is not a run: it has no {missing}",
        where=str(path),
        remedy=f"name a directory that iolab made, or of files of another tool: iolab compare {path}",
    )
