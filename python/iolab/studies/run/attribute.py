"""A run that asks which keys of two settings make the difference: its other settings are mixtures of the two.

The run directory is one like any other; its experiment is the given one with the mixtures added, from whose tables the
sides of each trial are read back. Each round measures every mixture once; rounds are added until the answer stands.
Each trial draws its own offsets: effects then spread within a round as they do between rounds, and intervals hold it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.base.errors import InputError, unknown
from iolab.base.plain_text import counted
from iolab.domain.attribute.design import KEYS_MAX, mixtures
from iolab.domain.attribute.judgement import Attribution, attribute
from iolab.domain.executor import Display, Executor
from iolab.domain.metric.registry import parse_key
from iolab.domain.workload import KINDS
from iolab.files.experiment import Experiment, loads
from iolab.files.store.read import RunData, read
from iolab.studies.run import resume, run

MIXTURE = "mixture-"
"""How the names of settings begin that are mixtures."""
ROUNDS_WITH_MODES = 3
"""So many rounds decide at least if what no key accounts for has modes: by chance, a few trials of one mode lie
together on one side of a key (chosen)."""
Keys = dict[str, Any]


@dataclass(frozen=True)
class AttributionQuestion:
    """`keys`: those in which the settings differ, as written in the experiment, with the good and the bad value (None:
    not given); `sides`: of each setting which of its keys are at the bad side."""

    good: str
    bad: str
    keys: dict[str, tuple[Any, Any]]
    sides: dict[str, tuple[bool, ...]]


@dataclass(frozen=True)
class AttributionAnswer:
    """The answer of a run for this metric of this workload, with the level of the good setting. `same_within`: a change
    of no larger a share of it is none."""

    asked: AttributionQuestion
    workload: str
    metric: str
    level: float
    same_within: float
    rounds: int
    confidence: float
    attribution: Attribution

    @property
    def decided(self) -> bool:
        """Whether the likeliest set of keys is likely enough."""
        enough = not self.attribution.modes or self.rounds >= ROUNDS_WITH_MODES
        return enough and self.attribution.probability >= self.confidence

    @property
    def margin(self) -> float:
        """An effect that is no larger does not count."""
        return abs(self.level) * self.same_within

    @property
    def named(self) -> list[str]:
        """The likeliest set of keys whose effects are large enough to count."""
        return [key for place, key in enumerate(self.asked.keys) if place in self.attribution.keys]


def mixed(experiment: Experiment) -> Experiment:
    """The experiment with a setting for each mixture. InputError unless it has two settings that differ in keys."""
    tables = _tables(experiment.text)
    names = list(tables)
    if len(names) != 2:
        raise InputError(f"{counted(len(names), 'setting')}; expected two, that differ in keys", where=experiment.title)
    ours, theirs = (dict(_flat(tables[name])) for name in names)
    differing = _differing(ours, theirs)
    if not 2 <= len(differing) <= KEYS_MAX:
        raise InputError(
            f"they differ in {counted(len(differing), 'key')}; expected 2 to {KEYS_MAX}", where="[settings]"
        )
    for key in (*ours, *theirs):
        if any(other.startswith(f"{key}.") for other in (*ours, *theirs)):
            raise InputError(f"{key}: a value in one setting, a table in the other", remedy="write both as a table")
    same = {key: value for key, value in ours.items() if key not in differing}
    stated = "" if "draws" in tomllib.loads(experiment.text) else 'draws = "own"\n'
    text = stated + experiment.text.rstrip() + "\n"
    for number, row in enumerate(mixtures(len(differing))[2:], 1):
        values = {key: theirs.get(key) if at_bad else ours.get(key) for key, at_bad in zip(differing, row, strict=True)}
        given = {**same, **{key: value for key, value in values.items() if value is not None}}
        lines = [f"{key} = {_value(value)}" for key, value in given.items()]
        text += "\n".join(["", f"[settings.{MIXTURE}{number}]", *lines]) + "\n"
    return loads(text, "experiment.toml", machine=experiment.machine.name)


def start(
    experiment: Experiment,
    out: Path | None,
    *,
    executor: Executor,
    progress: Display,
    seed: int | None,
    most: int,
    confidence: float,
    workload: str | None = None,
    metric: str | None = None,
) -> tuple[Path, AttributionAnswer]:
    """Measures rounds of a mixed experiment until the keys are known, or `most` rounds."""
    path = run(experiment, out, executor=executor, progress=progress, rounds=1, seed=seed).path
    while True:
        found = attributed(read(path), workload, metric, confidence)
        if found.decided or found.rounds >= most:
            return path, found
        progress.report_look(f"after {counted(found.rounds, 'round')}: {found.attribution.probability:.0%} sure")
        resume(path, executor=executor, progress=progress, rounds=found.rounds + 1)


def attributed(data: RunData, workload: str | None, metric: str | None, confidence: float) -> AttributionAnswer:
    """The present answer of a run of mixtures. InputError for another run, or a metric without values."""
    asked = _question_of(data)
    experiment = data.experiment
    chosen = workload or next(iter(experiment.workloads))
    if chosen not in experiment.workloads:
        raise InputError(f"{chosen}: {unknown('workload', chosen, experiment.workloads)}", where="--workload")
    compared = [*(experiment.compare.metrics or ()), *KINDS[experiment.workloads[chosen].kind].compared]
    key = str(parse_key(metric or compared[0]))
    wide = data.values(key, chosen)
    sides, values, blocks = [], [], []
    for round_, row in enumerate(wide.iter_rows(named=True)):
        for setting, at_bad in asked.sides.items():
            if (value := row.get(setting)) is not None:
                sides.append(at_bad)
                values.append(float(value))
                blocks.append(round_)
    if len(set(sides)) <= len(asked.keys):
        raise InputError(f"too few trials have {key} to distinguish keys", where=str(data.path))
    level = [value for at_bad, value in zip(sides, values, strict=True) if not any(at_bad)]
    mean = sum(level) / max(1, len(level))
    same_within = experiment.compare.same_within
    found = attribute(sides, values, blocks, abs(mean) * same_within)
    return AttributionAnswer(asked, chosen, key, mean, same_within, wide.height, confidence, found)


def _question_of(data: RunData) -> AttributionQuestion:
    """Read back from the tables of the settings."""
    tables = {name: dict(_flat(table)) for name, table in _tables(data.experiment_text).items()}
    ends = [name for name in tables if not name.startswith(MIXTURE)]
    if len(ends) != 2 or len(tables) == 2:
        raise InputError("its settings are no mixtures of two", where=str(data.path), remedy="see it with: iolab show")
    good, bad = ends
    keys = _differing(tables[good], tables[bad])
    sides = {name: tuple(table.get(key) == tables[bad].get(key) for key in keys) for name, table in tables.items()}
    return AttributionQuestion(good, bad, {key: (tables[good].get(key), tables[bad].get(key)) for key in keys}, sides)


def _tables(text: str) -> dict[str, Keys]:
    found = tomllib.loads(text).get("settings", {})
    return {str(name): table for name, table in found.items()}


def _differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    return [key for key in dict.fromkeys([*ours, *theirs]) if ours.get(key) != theirs.get(key)]


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys, as TOML writes them."""
    for name, value in table.items():
        key = prefix + (
            name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)
        )
        if isinstance(value, Mapping):
            yield from _flat(value, f"{key}.")
        else:
            yield key, value


def _value(value: Any) -> str:
    """As TOML: its strings, numbers and arrays of them are JSON's."""
    return json.dumps(value, ensure_ascii=False)
