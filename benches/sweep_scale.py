"""Trials per second of a sweep on a Ray cluster whose nodes are processes of their own on this machine, with one CPU
each: eight nodes against one, and one node against the local pool with one slot. The trials wait half a second and
compute nothing, like trials that wait for I/O, so that eight nodes fit on any machine. Each record is stored durably
when it comes. Each node has a worker before the clock starts."""

import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tools"))

import sleeping_trial  # noqa: E402 (after the path)
from iolab.domain.record import Record  # noqa: E402
from iolab.domain.trial import Trial  # noqa: E402
from iolab.machines.cluster.connection import Connection  # noqa: E402
from iolab.machines.cluster.pool import ClusterPool  # noqa: E402
from iolab.machines.model import ModelExecutor  # noqa: E402
from iolab.presentation.progress.plain import PlainDisplay  # noqa: E402
from iolab.studies.run import cells  # noqa: E402
from ray_nodes import RayNodes  # noqa: E402
from result import Result, at_least, paired  # noqa: E402

NODES = 8
PER_SLOT = 16
EXPERIMENT = """\
[workloads.reads]
file_size = "16MiB"
duration = "10ms"
[settings.one]
[settings.two]
workload = { queue_depth = 2 }
"""
MACHINES = ["model:one_disk", "model:nvme"]


def measure(quick: bool) -> list[Result]:
    rounds = 1 if quick else 3
    nodes = 2 if quick else NODES
    os.environ["PYTHONPATH"] = str(HERE)  # of nodes and driver, which find what they run there
    one, many, pool = [], [], []
    with RayNodes() as cluster:
        cluster.head(0)
        cluster.node(1)
        with _connected(cluster, 1) as connection:
            for _ in range(rounds):
                one.append(_trials_per_s(ModelExecutor(pool=ClusterPool(connection)), 1))
                pool.append(_trials_per_s(ModelExecutor(cores=1, simulate=_sleep), 1))
        for _ in range(nodes - 1):
            cluster.node(1)
        with _connected(cluster, nodes) as connection:
            many += [_trials_per_s(ModelExecutor(pool=ClusterPool(connection)), nodes) for _ in range(rounds)]
    command = "iolab sweep ... --on ray"
    return [
        paired(
            f"{nodes} nodes, trials of a sweep",
            "1/s",
            many,
            one,
            "1 node",
            target=at_least(7 if nodes == NODES else 1.5),
            commands=[command],
        ),
        paired(
            "1 node, trials of a sweep", "1/s", one, pool, "the local pool", target=at_least(0.95), commands=[command]
        ),
    ]


@contextmanager
def _connected(cluster: RayNodes, slots: int) -> Iterator[Connection]:
    """Once every node has a worker that has run a trial."""
    os.environ["RAY_ADDRESS"] = cluster.address
    connection = Connection("ray", simulate="sleeping_trial:simulate")
    try:
        while connection.slots < slots:
            time.sleep(0.1)
        _trials_per_s(ModelExecutor(pool=ClusterPool(connection)), slots, per_slot=4)
        yield connection
    finally:
        connection.close()


def _trials_per_s(executor: ModelExecutor, slots: int, per_slot: int = PER_SLOT) -> float:
    directory = Path(tempfile.mkdtemp(prefix="iolab-bench-"))
    try:
        source = cells.Source(directory / "reads.toml", EXPERIMENT)
        rounds = max(1, slots * per_slot // 4)
        asked = [cells.CellRequest(source, machine, rounds) for machine in MACHINES]
        made = cells.create(asked, directory / "out", seed=1)
        with executor:
            started = time.monotonic()
            done = cells.complete(made, executor=executor, progress=PlainDisplay(io.StringIO(), brief=True))
            return sum(done.trials_by_status.values()) / (time.monotonic() - started)
    finally:
        shutil.rmtree(directory)


def _sleep(trial: Trial, on_progress: Callable[..., None], should_stop: Callable[[], bool]) -> Record:
    time.sleep(sleeping_trial.SLEEP_S)
    return Record.model_validate_json(sleeping_trial.record(trial.model_dump_json()))
