"""Probes and recordings with the distribution's kernel."""

import pytest
from iolab.domain.phase_record import probes_absent_of, probes_of
from iolab.domain.probe import PROBES
from iolab.files import store
from support.command_line import CommandLine
from support.experiments import experiment
from support.runs import faults, statuses


@pytest.mark.parametrize("name", ["nvme", "array", "linear"])
def test_every_probe_runs_or_says_why_not(iolab: CommandLine, name: str, request: pytest.FixtureRequest) -> None:
    device = request.getfixturevalue(name)
    wanted = set(PROBES) - {"instructions"}  # which only a guest machine has
    probes = [word for probe in wanted for word in ("--probe", probe)]
    target = f'kind = "device"\npath = "{device}"'
    iolab.write("e.toml", experiment(target, settings="[settings.a]\n", rounds=1))
    told = iolab("run", "e.toml", *probes, "--out", "run")
    print(told.text)
    assert statuses(iolab.cwd / "run") == ["ok"], faults(iolab.cwd / "run")
    (phase,) = store.read(iolab.cwd / "run").record(0).phases
    absent = probes_absent_of(phase)
    print(absent)
    assert {*probes_of(phase), *absent} == wanted
    assert "block" in probes_of(phase)
    of_scsi = {"nvme"} if name == "array" else set()
    assert set(absent) <= {"nfs", "extents", "counters", "io_cost"} | of_scsi


@pytest.mark.parametrize("name", ["nvme", "array", "encrypted"])
def test_what_was_recorded_is_shown(iolab: CommandLine, name: str, request: pytest.FixtureRequest) -> None:
    device = request.getfixturevalue(name)
    load = ("dd", f"if={device}", "of=/dev/null", "bs=64k", "count=64", "iflag=direct")
    iolab("record", device, "-o", "t.dat", "--", *load)
    told = iolab("trace", "t.dat", "--json").json()
    print(told.keys())
    assert "64" in iolab("trace", "t.dat").stdout
