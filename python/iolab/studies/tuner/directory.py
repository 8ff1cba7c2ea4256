"""A tuner's directory: runs like any others, beside the experiment that asked for them.

```
experiment.toml   the experiment's exact text
files/            copies of the files that it names
tune.json         seed and machine
origin            all that, signed by who began the search or agreed to go on with it
model/0001 ...    a run of one round each: the search on a simulated machine, where [tune] names one
search/0001 ...   the same on the machine itself
keys/             rounds of mixtures of winner and default
confirm/          fresh rounds of default, winner and the smaller setting
```

Everything else is derived: a resumed tuner reads the runs again, in order.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from iolab.base import beneath, replaceable
from iolab.base.bounded_file import EXPERIMENT_BYTES_MAX, MIB, read_bounded
from iolab.base.durable import put_in_place, write_atomically, write_durably
from iolab.base.errors import InputError
from iolab.base.schema import checked_json
from iolab.base.toml import parse, write
from iolab.domain.trial.trial import SEED_MAX
from iolab.domain.tune.space import Point, Space, flat, nested
from iolab.domain.tune.tuning import Tuning
from iolab.files.experiment import Experiment, loads
from iolab.files.store.directory import check_free
from iolab.files.store.read import RunData
from iolab.studies.run.reconcile import digest

FORMAT: Literal[1] = 1
NOTE, EXPERIMENT, COPIES, ORIGIN = "tune.json", "experiment.toml", "files", "origin"
PARTS = (COPIES, EXPERIMENT, NOTE)
ORIGIN_BYTES_MAX = 1000
BEGIN_ANEW = "begin a new search"
DEFAULT = "default"
"""The name of the default, if the experiment gives no setting."""


@with_config(ConfigDict(strict=True, extra="forbid"))
class Note(TypedDict):
    """The contents of `tune.json`."""

    format: Literal[1]
    seed: Annotated[int, Field(ge=0, le=SEED_MAX)]
    machine: str


_NOTE = TypeAdapter(Note)


def is_tune(path: Path) -> bool:
    """Whether `iolab tune` made the directory."""
    return beneath.is_file(path / NOTE)


@dataclass(frozen=True)
class TuneDirectory:
    """The parts of a tuner's directory by name, and the experiments of its runs."""

    path: Path
    text: str
    seed: int
    machine: str

    @staticmethod
    def create(path: Path, experiment: Experiment, seed: int) -> TuneDirectory:
        """Makes it, durably. InputError if the path is taken, or can't be made."""
        check_free(path)
        replaceable.refuse_strangers(path.parent)
        fields: Note = {"format": FORMAT, "seed": seed, "machine": experiment.machine.name}
        try:
            beneath.make_directories(path.parent)
            with put_in_place(path, PARTS) as nursery:
                if experiment.attachments:
                    beneath.make_directory(nursery / COPIES)
                for name, text in experiment.attachments.items():
                    write_durably(nursery / COPIES / name, text.encode(), nursery)
                write_durably(nursery / EXPERIMENT, experiment.text.encode())
                write_durably(nursery / NOTE, (json.dumps(fields, indent=2) + "\n").encode())
        except OSError as error:
            raise InputError(
                f"can't be made: {error.strerror}", where=str(path), remedy="choose another --out"
            ) from None
        return TuneDirectory(path, experiment.text, seed, experiment.machine.name)

    @staticmethod
    def open(path: Path) -> TuneDirectory:
        """InputError for a directory that is no tuner's."""
        note_file = path / NOTE
        if not is_tune(path):
            raise InputError("is no tuner's directory", where=str(path), remedy="name one that iolab tune made")
        try:
            note = checked_json(_NOTE, read_bounded(note_file, MIB, "a tuner's note", within=path))
        except ValueError as error:
            raise InputError(str(error), where=str(note_file), remedy=BEGIN_ANEW) from None
        content = read_bounded(path / EXPERIMENT, EXPERIMENT_BYTES_MAX, "an experiment", within=path)
        return TuneDirectory(path, content.decode(errors="replace"), note["seed"], note["machine"])

    @property
    def origin(self) -> str | None:
        """The signature that `sign` left."""
        file = self.path / ORIGIN
        if not beneath.is_file(file):
            return None
        return read_bounded(file, ORIGIN_BYTES_MAX, "a signature", within=self.path).decode(errors="replace")

    def sign(self, signature: str | None) -> None:
        """Says in the directory who began the search, or agreed to what it does."""
        replaceable.refuse_strangers(self.path)
        if signature is not None:
            write_atomically(self.path / ORIGIN, signature.encode(), self.path)

    @cached_property
    def experiment(self) -> Experiment:
        """What asked for the search. InputError if it has no [tune]."""
        found = loads(self.text, str(self.path / EXPERIMENT), machine=self.machine, copies=self._copies)
        if found.tuning is None:
            raise InputError("has no [tune]", where=str(self.path / EXPERIMENT))
        return found

    @property
    def tuning(self) -> Tuning:
        """What is asked. InputError if the experiment asks nothing."""
        found = self.experiment.tuning
        assert found is not None, "looked at above"
        return found

    @property
    def baseline(self) -> str:
        """The name of the setting that every candidate is paired with."""
        return next(iter(self._values.get("settings", {})), DEFAULT)

    def of_runs(self, stage: str) -> list[Path]:
        """The stage's runs of one round, in order."""
        return sorted(one for one in (self.path / stage).glob("[0-9]*") if (one / "journal.jsonl").is_file())

    def of_points(
        self, machine: str, points: Mapping[str, Point], space: Space, rounds: int = 1, *, own_draws: bool = False
    ) -> Experiment:
        """The experiment of a run with the default and these points, by name. InputError if one can't be a setting."""
        table = {key: value for key, value in self._values.items() if key not in ("tune", "settings", "compare")}
        if machine != self.machine:
            table = {key: value for key, value in table.items() if key not in ("target", "guest")}
        base = flat(self._values.get("settings", {}).get(self.baseline, {}))
        settings = {self.baseline: nested(base)}
        for name, point in points.items():
            values = space.values(point)
            # A candidate that names a scheduler takes the place of the default's, with all its tunables.
            changed = {key.partition(".")[0] for key in values if key.endswith(".name")}
            kept = {key: value for key, value in base.items() if key.partition(".")[0] not in changed}
            settings[name] = nested({**kept, **values})
        compare = {**self._values.get("compare", {}), "baseline": self.baseline, "metrics": self.tuning.metrics}
        table = {**table, "machine": machine, "rounds": rounds, "settings": settings, "compare": compare}
        if own_draws:
            table["draws"] = "own"
        return loads(write(table), str(self.path / EXPERIMENT), machine=machine, copies=self._copies)

    def points_of(self, run: RunData, space: Space) -> dict[str, Point]:
        """The points of a run's settings by name, the default left out. InputError if its experiment is not the one
        that was run."""
        file = run.directory.experiment_file
        text = run.experiment_text
        started = run.state.started
        if started is None or started.get("experiment_sha256") != digest(text):
            raise InputError("is not what was run", where=str(file), remedy=BEGIN_ANEW)
        settings = parse(text, str(file)).values.get("settings")
        if not isinstance(settings, dict) or not all(isinstance(table, dict) for table in settings.values()):
            raise InputError("settings: expected tables", where=str(file), remedy=BEGIN_ANEW)
        points: dict[str, Point] = {
            name: space.place_of(flat(table)) for name, table in settings.items() if name != self.baseline
        }
        if not points:
            raise InputError("settings: expected a candidate beside the default", where=str(file), remedy=BEGIN_ANEW)
        return points

    @cached_property
    def _values(self) -> dict[str, Any]:
        return tomllib.loads(self.text)

    @property
    def _copies(self) -> Path | None:
        return self.path / COPIES if (self.path / COPIES).is_dir() else None


def names_of(points: Sequence[Point], first: int) -> dict[str, Point]:
    """Settings' names for a block's points, from a number on."""
    return {f"candidate{first + place}": point for place, point in enumerate(points)}
