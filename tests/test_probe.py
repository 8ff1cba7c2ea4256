"""Probes: switching them on, running them around a phase, and what becomes of what they observe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest
from iolab import _native
from iolab.base import checked_lines
from iolab.base.errors import InputError
from iolab.domain import metric
from iolab.domain.metric import METRICS
from iolab.domain.phase_record import Usage, group_record, job_record, phase_record, probes_absent_of, probes_of
from iolab.domain.probe import PROBES, resolved
from iolab.domain.record import Record
from iolab.domain.trial import Phase, Trial
from iolab.files.experiment import loads
from iolab.files.store import trial_file
from iolab.machines.host import probe_needs, probe_readers
from iolab.machines.host.site import Site, TargetPlace
from iolab.machines.system import cgroup, tracefs
from iolab.machines.system.action import RemoveTraceInstance
from iolab.machines.system.beneath import Directory
from iolab.machines.system.block import BlockDevice
from iolab.machines.system.facts import FactAbsent
from iolab.machines.system.undo import UndoJournal
from iolab.presentation import reference
from iolab.studies.run import plan
from support.trials import record

WORKLOAD = "[workloads.reads]\nduration = '1s'\n"
MIB = 1 << 20


def probes_under(text: str, *, also: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
    """Setting -> the probes that its trials have on."""
    trials = plan.trials(loads(WORKLOAD + text, "x.toml", probes=also), 1, seed=1)
    return {trial.setting: trial.probes for trial in trials}


def mistakes(text: str) -> list[str]:
    with pytest.raises(InputError) as refused:
        loads(WORKLOAD + text, "x.toml")
    return str(refused.value).splitlines()


def trial(probes: str = "nfs = true\nmemory = true") -> Trial:
    return plan.trials(loads(f"{WORKLOAD}[probes]\n{probes}\n", "x.toml"), 1, seed=1)[0]


def record_of(of: Trial, **of_phase: Any) -> Record:
    jobs = [job_record("j", finished_ns=0)]
    done = phase_record("main", started_unix_ns=0, elapsed_ns=10**9, groups=[group_record("g", Usage(), jobs)])
    return record(of, {**done, **of_phase})


def test_probes_are_off_until_they_are_asked_for() -> None:
    assert probes_under("") == {"default": {}}
    assert probes_under("[probes]\nblock = false") == {"default": {}}


def test_options_have_defaults_and_their_units_in_their_names() -> None:
    on = probes_under('[probes]\nblock = { buffer = "1MiB" }\ncpu = true')["default"]
    assert on["block"] == {**resolved(PROBES["block"].options()), "buffer_bytes": MIB}
    assert on["cpu"] == {"interval_ns": 100_000_000}


def test_a_settings_probes_replace_the_experiments() -> None:
    settings = "[settings.a]\n[settings.b]\nprobes = { memory = true }\n[settings.c]\nprobes = {}\n"
    on = probes_under(f"[probes]\ncpu = true\n{settings}")
    assert {setting: list(probes) for setting, probes in on.items()} == {"a": ["cpu"], "b": ["memory"], "c": []}


def test_probes_of_the_command_line_are_on_under_every_setting() -> None:
    text = '[probes]\ncpu = { interval = "1s" }\n[settings.a]\n[settings.b]\nprobes = {}'
    on = probes_under(text, also=("cpu", "nfs"))
    assert on["a"] == {"cpu": {"interval_ns": 10**9}, "nfs": {}}
    assert set(on["b"]) == {"cpu", "nfs"}


def test_every_mistake_is_reported_on_its_line() -> None:
    found = mistakes(
        """[probes]
blok = true
cpu = { intervall = "1s" }
memory = { interval = "10us" }
nfs = 3
[settings.a]
probes = true
[settings.b]
probes = { swiches = true }
"""
    )
    expected = [
        ("x.toml:4: probes.blok", "did you mean block?"),
        ("x.toml:5: probes.cpu.intervall", "did you mean interval?"),
        ("x.toml:6: probes.memory.interval", "at least 1ms"),
        ("x.toml:7: probes.nfs", "expected nfs = true"),
        ("x.toml:9: settings.a.probes", "expected a table"),
        ("x.toml:11: settings.b.probes.swiches", "did you mean switches?"),
    ]
    assert len(found) == len(expected), found
    for line, (where, what) in zip(found, expected, strict=True):
        assert line.startswith(where) and what in line


def test_a_probes_metric_is_compared_only_where_the_probe_is_on() -> None:
    compare = '[compare]\nmetrics = ["rpc_rtt_ns_mean"]\n'
    assert mistakes(compare)[0].endswith("add nfs = true to [probes]")
    own = "[probes]\nnfs = true\n[settings.a]\n[settings.b]\nprobes = {}\n"
    assert mistakes(own + compare)[0].endswith("is off under setting b; add nfs = true to probes of setting b")
    guests_only = mistakes('[compare]\nmetrics = ["kernel_instructions_per_op"]\n')
    assert guests_only[0].endswith('only a guest machine reports it, machine = "guest:KERNEL"')
    loads(f"{WORKLOAD}[probes]\nnfs = true\n{compare}", "x.toml")
    loads(WORKLOAD + compare, "x.toml", probes=["nfs"])


def test_the_registry_is_whole() -> None:
    own = {name for name, entry in METRICS.items() if entry.probe is None}
    for name, probe in PROBES.items():
        assert probe.name == name
        assert probe.help.endswith((".", ")."))
        assert probe.needs
        for entry in probe.metrics:
            assert (entry.probe, entry.scope) == (name, "probe"), entry.name
            assert entry.name not in own
            assert METRICS[entry.name] is entry, f"{entry.name} is given twice"


def test_trials_that_were_written_before_there_were_probes_have_none() -> None:
    old = {key: value for key, value in trial().model_dump().items() if key != "probes"}
    read = Trial.model_validate(old)
    assert read.probes == {}
    found = metric.rows(record_of(read))
    assert found
    assert not [row.metric for row in found if METRICS[row.metric].probe is not None]


def test_only_probes_that_are_on_have_metrics_and_those_that_could_not_run_a_reason() -> None:
    seen = {"probes": {}, "probes_absent": {"nfs": "no NFS is mounted here"}}
    found = {row.metric: row for row in metric.rows(record_of(trial("nfs = true"), **seen))}
    assert found["rpc_rtt_ns_mean"].value is None
    assert found["rpc_rtt_ns_mean"].reason == "no NFS is mounted here"
    other = {entry.name for probe in PROBES.values() if probe.name != "nfs" for entry in probe.metrics}
    assert not other & set(found)


NOTHING = {"elapsed_ns": 0, "mounts": {}}
SERIES = {
    "all": {"at_ns": [0, 100], "columns": {"dirty_bytes": [1, 2.5]}},
    "cpu0": {"at_ns": [0, 100], "columns": {"user_percent": [None, 7]}},
}


def test_series_become_rows_and_leave_the_records_json(tmp_path: Path) -> None:
    written = record_of(trial("nfs = true"), probes={"nfs": {**NOTHING, "series": SERIES}}, probes_absent={})
    path = tmp_path / "000000.parquet"
    trial_file.write(path, written)
    rows = pl.read_parquet(path).filter(pl.col("what") == "series")
    assert rows.select("phase", "job", "metric", "key", "at", "value").rows() == [
        ("main", "all", "dirty_bytes", "nfs", 0.0, 1.0),
        ("main", "all", "dirty_bytes", "nfs", 100.0, 2.5),
        ("main", "cpu0", "user_percent", "nfs", 100.0, 7.0),
    ]
    read = trial_file.read_record(path)
    assert probes_of(read.phases[0]) == {"nfs": NOTHING}
    assert read.spec.probes == written.spec.probes
    assert trial_file.summary_of(read) == read


class FakeProbes:
    """In the place of the engine's."""

    started: ClassVar[list[dict[str, Any]]] = []
    stopped: ClassVar[int] = 0

    @classmethod
    def start(cls, spec_json: str) -> FakeProbes:
        cls.started.append(json.loads(spec_json))
        return cls()

    def stop(self) -> str:
        type(self).stopped += 1
        return json.dumps({"observations": {"cpu": {"seen": 1}}, "absent": {"memory": "no /proc"}})


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> type[FakeProbes]:
    monkeypatch.setattr(_native, "Probes", FakeProbes, raising=False)
    monkeypatch.setattr(FakeProbes, "started", [])
    monkeypatch.setattr(FakeProbes, "stopped", 0)
    return FakeProbes


class SiteOf(Site):
    def __init__(self, device: BlockDevice | None) -> None:
        super().__init__("target", [TargetPlace("target", device, directory=Directory(Path("/"), 0, 0))])


def measured() -> Phase:
    return next(phase for phase in trial().phases if phase.measured)


def options(*names: str) -> dict[str, dict[str, Any]]:
    return {name: resolved(PROBES[name].options()) for name in names}


def test_without_probes_nothing_is_started_and_the_record_says_nothing(
    engine: type[FakeProbes], state_dir: Path
) -> None:
    layout = next(phase for phase in trial().phases if not phase.measured)
    with UndoJournal.open() as undo:
        for phase, wanted in ((measured(), {}), (layout, options("cpu"))):
            with probe_readers.around(phase, wanted, SiteOf(None), undo) as probed:
                pass
            assert probed.in_record() == {}
    assert engine.started == []


def test_what_the_engine_observed_is_in_the_record(engine: type[FakeProbes], state_dir: Path) -> None:
    with UndoJournal.open() as undo:
        with probe_readers.around(measured(), options("cpu", "memory", "block"), SiteOf(None), undo) as probed:
            assert engine.stopped == 0
        done = probed.in_record()
    assert engine.started[0]["cpu"] == {"interval_ns": 100_000_000}
    assert "block" not in engine.started[0]
    assert probes_of(done) == {"cpu": {"seen": 1}}
    assert probes_absent_of(done)["memory"] == "no /proc"
    assert "no block device" in probes_absent_of(done)["block"]


PARTITION = BlockDevice((8, 1), Path("/sys/block/sda/sda1"))
UNIFIED = cgroup.Hierarchy(2, "", Path("/there"), Path("/there"))


@pytest.mark.parametrize(
    ("device", "hierarchy", "absent"),
    [
        (PARTITION, UNIFIED, ""),
        (PARTITION, None, "version 2 are not mounted"),
        (None, UNIFIED, "no block device"),
    ],
)
def test_io_cost_is_that_of_the_disk_in_the_io_stat_of_the_root(
    engine: type[FakeProbes],
    state_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    device: BlockDevice | None,
    hierarchy: cgroup.Hierarchy | None,
    absent: str,
) -> None:
    monkeypatch.setattr(cgroup, "version_2", lambda: hierarchy)
    monkeypatch.setattr(BlockDevice, "disk", BlockDevice((8, 0), Path("/sys/block/sda")))
    monkeypatch.setattr(BlockDevice, "disks_below", [])
    with (
        UndoJournal.open() as undo,
        probe_readers.around(measured(), options("io_cost"), SiteOf(device), undo) as probed,
    ):
        pass
    asked = {"interval_ns": 100_000_000, "devices": ["8:0"], "io_stat": "/there/io.stat"}
    assert [spec["io_cost"] for spec in engine.started] == ([] if absent else [asked])
    assert absent in probed.absent.get("io_cost", "")


def test_a_phase_that_fails_stops_its_probes(engine: type[FakeProbes], state_dir: Path) -> None:
    with (
        UndoJournal.open() as undo,
        pytest.raises(InputError),
        probe_readers.around(measured(), options("cpu"), SiteOf(None), undo),
    ):
        raise InputError("impossible")
    assert engine.stopped == 1


def test_an_instance_is_in_the_journal_before_the_engine_makes_it(
    engine: type[FakeProbes], state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracefs, "root", lambda: tmp_path)
    partition = BlockDevice((8, 1), Path("/sys/block/sda/sda1"))
    wanted = options("block", "switches", "cpu")
    with UndoJournal.open() as undo, probe_readers.around(measured(), wanted, SiteOf(partition), undo):
        (spec,) = engine.started
        entries = checked_lines.read(undo._file.path.read_bytes()).entries
    names = [entry["name"] for entry in entries if entry.get("action") == RemoveTraceInstance.__name__]
    assert names == [spec["trace_instance"], f"{spec['trace_instance']}-switches"]
    assert spec["block"]["devices"] == ["8:1"]
    assert spec["switches"]["pids"] is None


def test_a_reader_in_python_may_be_absent_at_either_end(
    engine: type[FakeProbes], state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class GoneAtStop:
        def __init__(self, options: dict[str, Any], site: Site) -> None:
            pass

        def stop(self) -> dict[str, Any]:
            raise FactAbsent("unmounted meanwhile")

    def absent_at_start(options: dict[str, Any], site: Site) -> GoneAtStop:
        raise FactAbsent("not here")

    monkeypatch.setattr(probe_readers, "READERS", {"nfs": GoneAtStop, "memory": absent_at_start})
    with (
        UndoJournal.open() as undo,
        probe_readers.around(measured(), options("nfs", "memory"), SiteOf(None), undo) as probed,
    ):
        pass
    assert probed.absent == {"memory": "not here", "nfs": "unmounted meanwhile"}
    assert engine.started == []


def test_the_doctor_names_what_a_probe_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lockdown = tmp_path / "lockdown"
    lockdown.write_text("none integrity [confidentiality]\n")
    monkeypatch.setattr(probe_needs, "PRESSURE", tmp_path / "nothing")
    monkeypatch.setattr(probe_needs, "COUNTERS", tmp_path)
    assert "psi=1" in str(probe_needs.of("PSI").remedy)
    assert "hypervisor" in str(probe_needs.of("hardware counters").remedy)
    (tmp_path / "cpu_core").mkdir()
    assert probe_needs.of("hardware counters").remedy is None
    monkeypatch.setattr(probe_needs, "LOCKDOWN", lockdown)
    for need in ("tracefs", "perf events"):
        assert "lockdown" in str(probe_needs.of(need).remedy)
    lockdown.write_text("[none] integrity confidentiality\n")
    assert "locked" not in probe_needs.of("tracefs").detail


def test_every_need_of_a_probe_is_known_to_the_doctor() -> None:
    for probe in PROBES.values():
        for need in probe.needs:
            assert probe_needs.of(need).detail


def test_every_probe_has_a_section_with_its_options_and_metrics() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "probes.md").read_text()
    for name in PROBES:
        assert f"\n## {name}\n" in page
        assert f"<!-- table: probe-{name} -->\n\n{reference.render(f'probe-{name}').strip()}\n" in page
