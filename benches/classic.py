"""What the benches of classic tools share: finding the tool, and running a kind's phases on the same files."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ours
from fio import TIME_LIMIT_S
from result import NOT_BEHIND, NotMeasured, Result, paired

if TYPE_CHECKING:
    from iolab.domain import native_types

RUN_PHASES = """
import json, sys
from iolab import _native
memory = _native.Memory()
records = []
for phase in json.load(sys.stdin):
    load = _native.Load.start(json.dumps(phase), memory)
    while (record := load.wait(60.0)) is None:
        pass
    records.append(json.loads(record))
print(json.dumps(records))
"""


@dataclass(frozen=True)
class Rates:
    """One arm in one round: bytes per second by test."""

    by_test: dict[str, float]

    def __str__(self) -> str:
        return ", ".join(f"{test} {rate / 2**20:.0f} MiB/s" for test, rate in self.by_test.items())


@dataclass(frozen=True)
class Tool:
    path: str
    version: str
    """In its own words."""


def tool(name: str, variable: str, source: str, *, version: tuple[str, str]) -> Tool:
    """The program that the environment's `variable` or PATH names.

    `source`: where it is to be had. `version`: the argument that makes it tell its version, and that
    line's pattern.

    Raises:
        NotMeasured: it is not there.
    """
    given = os.environ.get(variable)
    found = shutil.which(given or name)
    if found is None:
        why = f"{variable}={given} is no program" if given else f"{name} is not on PATH"
        raise NotMeasured(f"{why}; get {source}, and name the program in {variable}")
    argument, pattern = version
    told = subprocess.run([found, argument], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    line = re.search(pattern, told.stdout + told.stderr)
    return Tool(found, f"{name}: {line[0] if line else 'it does not tell its version'}")


def run_phases(kind: str, options: dict[str, Any], root: Path) -> dict[str, dict[str, Any]]:
    """The measured phases' records by name, run one after the other on files in `root`, which are removed after."""
    from iolab.domain import workload
    from iolab.domain.trial import LoadPhase

    made = workload.KINDS[kind]
    phases = made.phases(made.options.model_validate(options), ours.SEED)
    loads = [phase.load for phase in phases if isinstance(phase, LoadPhase)]
    placed: list[native_types.Phase] = [
        {**load, "files": [{**file, "path": str(root / file["path"])} for file in load["files"]]} for load in loads
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUN_PHASES],
        input=json.dumps(placed),
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the engine refused a phase: {done.stderr}")
    for path in {file["path"] for load in placed for file in load["files"]}:
        Path(path).unlink()
    records = dict(zip((phase.name for phase in phases), json.loads(done.stdout), strict=True))
    return {phase.name: records[phase.name] for phase in phases if phase.measured}


def rate(record: dict[str, Any]) -> float:
    """Bytes of all jobs over the time from the common start to the last one's end."""
    jobs = [job for group in record["groups"] for job in group["jobs"]]
    if any(job["errors"] for job in jobs):
        raise RuntimeError(f"errors while measuring: {[job['errors'] for job in jobs]}")
    return float(sum(job[op]["bytes"] for job in jobs for op in ("read", "write")) * 1e9 / record["elapsed_ns"])


def rate_sum(record: dict[str, Any]) -> float:
    """Sum of the jobs' own rates, each until its own end."""
    jobs = [job for group in record["groups"] for job in group["jobs"]]
    return float(sum(job[op]["bytes"] * 1e9 / job["finished_ns"] for job in jobs for op in ("read", "write")))


def output(command: list[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout


def command_lines(kind: str, options: dict[str, Any], peer: Tool, command: list[str]) -> list[str]:
    """Both arms' for the page, which names the tool's version too."""
    ours_ = " ".join(f"{key}={value}" for key, value in options.items())
    return [f"iolab: kind={kind} {ours_}", f"# {peer.version}", shlex.join([Path(command[0]).name, *command[1:]])]


def compared(case: str, peer: str, samples: dict[str, list[Rates]], commands: list[str]) -> list[Result]:
    """A result per test."""
    own, theirs = samples["iolab"], samples[peer]
    return [
        paired(
            f"{case}: {test}",
            "MiB/s",
            [one.by_test[test] / 2**20 for one in own],
            [one.by_test[test] / 2**20 for one in theirs],
            peer,
            target=NOT_BEHIND,
            commands=commands,
        )
        for test in own[0].by_test
    ]
