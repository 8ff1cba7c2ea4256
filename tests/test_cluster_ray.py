"""A real cluster: a sweep loses a worker, then the cluster itself, and is completed here; no trial is lost, none done
twice. The attack family `cluster` kills everything else, hosts too."""

import importlib.util
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from fake_machine import SilentDisplay
from iolab.base.errors import MachineError
from iolab.domain.record import Record
from iolab.domain.trial import Trial
from iolab.files.store import read
from iolab.files.store.sweep_directory import SweepDirectory
from iolab.machines.cluster import ClusterExecutor
from iolab.machines.model import ModelExecutor
from iolab.studies.run import cells
from ray_nodes import RayNodes, processes_of
from support.runs import times_finished
from typing_extensions import override

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'iolab[ray]'"),
]
EXPERIMENT = """\
[workloads.reads]
file_size = "16MiB"
duration = "20ms"
[settings.none]
scheduler = "none"
[settings.deadline]
scheduler = "mq-deadline"
"""
MACHINES = ["model:one_disk", "model:nvme"]
ROUNDS = 5
TRIALS = len(MACHINES) * ROUNDS * 2


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with RayNodes() as made:
        made.head(1)
        yield made


class Killing(SilentDisplay):
    """Kills what works for the cluster after so many trials, and all of it after some more."""

    def __init__(self, nodes: RayNodes) -> None:
        self.nodes = nodes
        self.finished = 0

    @override
    def trial_finished(self, trial: Trial, record: Record, duration_ns: int) -> None:
        self.finished += 1
        if self.finished == 3:
            self.kill_workers()
        if self.finished == 6:
            self.nodes.kill_all()

    def kill_workers(self) -> None:
        for process in processes_of(self.nodes.started[0].pid):
            with suppress(OSError):
                if Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"ray::simulate"):
                    os.kill(process, signal.SIGKILL)


def asked() -> list[cells.CellRequest]:
    return [cells.CellRequest(cells.Source(Path("reads.toml"), EXPERIMENT), machine, ROUNDS) for machine in MACHINES]


def test_a_sweep_survives_its_worker_and_its_cluster(
    nodes: RayNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    made = cells.create(asked(), tmp_path / "out", seed=1)
    display = Killing(nodes)
    with ClusterExecutor("ray", patience_s=15) as executor, pytest.raises(MachineError, match="Ray cluster") as gone:
        cells.complete(made, executor=executor, progress=display)
    assert "iolab sweep --resume" in str(gone.value)
    finished = {run: set(times_finished(run)) for _, run in made.runs}
    assert 6 <= sum(map(len, finished.values())) == display.finished < TRIALS

    with ModelExecutor(cores=1) as here:
        cells.complete(SweepDirectory.open(made.path), executor=here, progress=SilentDisplay())
        alone = cells.create(asked(), tmp_path / "alone", seed=1)
        cells.complete(alone, executor=here, progress=SilentDisplay())
    for (_, run), (_, other) in zip(made.runs, alone.runs, strict=True):
        assert times_finished(run) == dict.fromkeys(range(2 * ROUNDS), 1)
        assert read(run).metrics.equals(read(other).metrics)
