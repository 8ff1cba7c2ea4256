"""Finished runs made without a machine, for tests of what reads them."""

from pathlib import Path
from typing import Any

import iolab.studies.run
import pytest
from fake_machine import FakeExecutor, SilentDisplay
from iolab.files.experiment import loads
from iolab.files.store import RunData, read

TWO_SETTINGS = """\
title = "Is <fast> faster than slow & steady?"
rounds = 8
seed = 7

[target]
kind = "directory"
path = "."

[workloads.both]
engine = "psync"
file_size = "1MiB"
read_percent = 50
jobs = 2
duration = "1s"

[settings.plain]

[settings.fast]
cpus = [0]

[settings.alike]
cpus = [1]

[compare]
metrics = ["rate_bytes_per_s", "read.iops", "cpu_ns_per_io"]
"""

TIOBENCH = """\
rounds = 2
seed = 7

[target]
kind = "directory"
path = "."

[workloads.classic]
kind = "tiobench"
file_size = "64MiB"
threads = [1, 2, 16]

[settings.plain]

[settings."with words"]
cpus = [0]
"""

MACHINE = {"kernel": {"release": "6.1.0-test"}, "cpu": {"model": "A <model>", "governor": {"absent": "no cpufreq"}}}


def stored_run(
    path: Path,
    text: str = TWO_SETTINGS,
    *,
    faster: dict[str, float] | None = None,
    executor: FakeExecutor | None = None,
    machine: dict[str, Any] | None = None,
) -> RunData:
    """A finished run of an experiment in `path`; `faster` is by how much a setting's rate exceeds the others'."""
    executor = executor or FakeExecutor(faster=faster or {})
    experiment = loads(text, "experiment.toml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IOLAB_STATE_DIR", str(path.parent / "state"))
        iolab.studies.run.run(experiment, path, executor=executor, progress=SilentDisplay(), machine=machine or MACHINE)
    return read(path)
