"""Kind qsbench: what its options come to, what is refused, and its table."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_machine import FakeExecutor
from iolab.base.errors import InputError
from iolab.domain import metric
from iolab.domain.phase_record import Usage
from iolab.domain.record import Record
from iolab.domain.trial import SortPhase, Trial
from iolab.domain.workload import KINDS
from iolab.domain.workload.qsbench import QsbenchOptions
from iolab.files.experiment import loads
from iolab.files.store import trial_file
from iolab.machines.host import sort, sort_record
from iolab.machines.host.sort import _killed_for_memory, _limited_group, _memory_bytes_max, _swap_bytes
from iolab.machines.host.sort_record import SwapReadings
from iolab.machines.system import cgroup, swap
from iolab.machines.system.cgroup import Cgroup, Hierarchy
from iolab.presentation.table import render
from support.stored import stored_run
from support.trials import record, trial

MIB = 1 << 20
KIND = KINDS["qsbench"]


def phase(**options: Any) -> SortPhase:
    (found,) = KIND.phases(QsbenchOptions(**options), seed=1)
    assert isinstance(found, SortPhase)
    return found


def test_the_classic_four_processes_need_more_than_there_is() -> None:
    found = phase(memory_limit=100 * MIB)
    assert (found.processes, found.process_bytes) == (4, 30 * MIB)
    assert found.takes_devices
    assert found.writes


@pytest.mark.parametrize(
    ("options", "key"), [({"share": 1e-9}, "share"), ({"cpus": []}, "cpus"), ({"cpus": [-1]}, "cpus")]
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], key: str) -> None:
    assert [conflict.key for conflict in KIND.conflicts(QsbenchOptions(**options))] == [(key,)]


def test_controls_reach_the_processes() -> None:
    assert phase().on_cpus([1]).cpus == [1]
    assert phase().dropping_caches(False).drop_caches is False


def test_swap_is_all_of_the_devices_or_spread_evenly_over_them() -> None:
    places = [("/dev/d0", 64 * MIB), ("/dev/d1", 32 * MIB)]
    assert sort_record.areas(phase(), places) == [64 * MIB, 32 * MIB]
    assert sort_record.areas(phase(swap_size="40MiB"), places) == [20 * MIB] * 2
    with pytest.raises(InputError, match=r"wants 40MiB .* has 32MiB") as refused:
        sort_record.areas(phase(swap_size="80MiB"), places)
    assert refused.value.where == "/dev/d1"


def test_version_2_of_control_groups_limits_by_memory_max_and_has_the_machines_swappiness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Cgroup(tmp_path / "group", 2)
    group.path.mkdir()
    swappiness = tmp_path / "swappiness"
    swappiness.write_text("60\n")
    monkeypatch.setattr(cgroup, "make", lambda *_: group)
    monkeypatch.setattr(sort, "SWAPPINESS", swappiness)
    undone: list[Any] = []
    around: Any = SimpleNamespace(undo=SimpleNamespace(before=undone.append))
    hierarchy = Hierarchy(2, "memory", tmp_path, tmp_path)
    assert _limited_group(phase(memory_limit=20 * MIB, swappiness=100), hierarchy, around) is group
    assert (group.path / "memory.max").read_text() == str(20 * MIB)
    assert swappiness.read_text() == "100"
    assert [(action.path, action.previous) for action in undone] == [(str(swappiness), "60")]
    for file, text in {
        "memory.swap.current": "4096\n",
        "memory.peak": "8192\n",
        "memory.events": "low 0\noom 2\noom_kill 1\n",
    }.items():
        (group.path / file).write_text(text)
    assert (_swap_bytes(group), _memory_bytes_max(group), _killed_for_memory(group)) == (4096, 8192, True)


def sorted_(elapsed_ms: int, *, late_ms: int = 0, **changes: Any) -> dict[str, Any]:
    """What crates/measure/engine/src/sorter yields."""
    plain = {
        "started_unix_ns": 10**18 + late_ms * 10**6,
        "elapsed_ns": elapsed_ms * 10**6,
        "bytes": MIB,
        "passes": [],
        "sorted": True,
        "stopped": False,
        "build_profile": "release",
        **asdict(Usage(1000, 100, 5, 1, 50, 7)),
    }
    return {**plain, **changes}


def record_of(*records: Any, swapped_in: int = 0) -> Record:
    found = phase(processes=len(records))
    swapping = SwapReadings({"swap_in_bytes": 1}, None, {"swap_in_bytes": 1 + swapped_in}, None, None)
    return record(trial([found]), sort_record.record(found, records, swapping, ["a note"]))


def test_each_process_has_its_completion_time_from_the_common_start() -> None:
    rows = metric.rows(record_of(sorted_(1000), sorted_(2000, late_ms=500), swapped_in=4096))
    times = {row.job: row.value for row in rows if row.metric == "elapsed_s"}
    assert times == {"all": 2.5, "sort.1": 1.0, "sort.2": 2.5}
    values = {row.metric: row.value for row in rows if row.job == "all"}
    assert values["faults_major"] == 14
    assert values["swap_in_bytes"] == 4096
    assert values["swap_out_bytes"] is None
    assert "rate_bytes_per_s" not in values


def test_memory_that_came_back_wrong_is_a_failure() -> None:
    (done,) = record_of(sorted_(1000), sorted_(1000, sorted=False)).phases
    assert [failure["job"] for failure in done["failures"]] == ["sort.2"]


def test_the_table_orders_processes_by_when_they_were_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """\
rounds = 2
seed = 7
[target]
kind = "scratch"
size = "1GiB"
[workloads.sorters]
kind = "qsbench"
processes = 2
[settings.plain]
"""
    times = {0: (1000, 3000), 1: (5000, 3000)}

    class Sorters:
        def expect(self, trials: Iterable[Trial]) -> None: ...

        def run(self, trial: Trial, *_: Any) -> Record:
            made = record_of(*(sorted_(time_ms) for time_ms in times[trial.round]))
            return made.model_copy(update={"spec": trial})

    monkeypatch.setattr("support.stored.FakeExecutor", lambda **_: Sorters())
    run = stored_run(tmp_path / "run", text)
    lines = render(run, "qsbench").splitlines()
    assert "2 processes sort 76.8 MiB each, with 256.0 MiB" in lines[0]
    assert [line.split() for line in lines[3:]] == [["1", "2.000"], ["2", "4.000"]]


def test_the_table_says_why_trials_have_no_times(tmp_path: Path) -> None:
    text = """\
rounds = 2
[target]
kind = "scratch"
size = "1GiB"
[workloads.sorters]
kind = "qsbench"
[settings.plain]
[settings.other]
"""
    run = stored_run(tmp_path / "run", text, executor=FakeExecutor(status_of=lambda _: "failed"))
    lines = render(run, "qsbench").splitlines()
    assert lines[3:] == [
        "plain: no times from 2 trials: the trial failed: it broke",
        "other: no times from 2 trials: the trial failed: it broke",
    ]


def test_another_run_has_no_such_table(tmp_path: Path) -> None:
    run = stored_run(tmp_path / "run")
    with pytest.raises(InputError, match="no workload of kind qsbench"):
        render(run, "qsbench")
    with pytest.raises(InputError, match="fixed lines"):
        render(run, "qsbench", ["elapsed_s"])


def test_a_record_is_stored_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "trial.parquet"
    record = record_of(sorted_(1000), sorted_(2000))
    trial_file.write(path, record)
    assert trial_file.read_record(path).phases == record.phases


def test_metrics_of_other_kinds_are_refused_before_anything_runs() -> None:
    text = '[target]\nkind = "scratch"\nsize = "1GiB"\n[workloads.w]\nkind = "qsbench"\n[settings.a]\n[compare]\n'
    with pytest.raises(InputError, match="read"):
        loads(f'{text}metrics = ["read.iops"]\n', "experiment.toml")


def test_swap_areas_are_read_as_the_kernel_lists_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swaps = tmp_path / "swaps"
    monkeypatch.setattr(swap, "SWAPS", swaps)
    assert swap.areas() == []
    swaps.write_text(
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        "/dev/loop7                              partition\t131068\t\t1024\t\t32767\n"
        f"{tmp_path}/my\\040file                  file\t\t131068\t\t0\t\t-2\n"
    )
    assert swap.areas() == [("/dev/loop7", 1 << 20), (f"{tmp_path}/my file", 0)]
    assert swap.is_on(tmp_path / "my file")
    assert not swap.is_on(tmp_path / "other")
