"""The kinds of machines: who reads one, answers for it and runs its trials is found by its kind."""

from pathlib import Path
from typing import get_args

import pytest
from iolab.domain.machine import Guest, Host, Machine, Model, kind_of
from iolab.domain.trial.trial import Kind
from iolab.files.experiment import loads
from iolab.files.experiment.machine import READERS
from iolab.machines.ports import port_of
from iolab.studies.run.plan import Plan

KINDS = get_args(Kind)
READS = '[workloads.reads]\noperations = 100\nfile_size = "1MiB"\n'


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("host", "host"),
        ("model:one_disk", "model"),
        ("model:", "model"),  # that no file has this name is said by who looks for it
        ("guest:6.1", "guest"),
        ("guest:", None),
        ("hosts", None),
        ("", None),
        (7, None),
        (None, None),
    ],
)
def test_a_name_says_which_kind_of_machine_it_is(name: object, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_each_kind_has_a_reader_and_a_port() -> None:
    assert {one.kind for one in get_args(Machine)} == set(KINDS) == set(READERS)
    for machine in ("host", "guest:6.1", "model:one_disk"):
        assert callable(port_of(loads(READS, "x.toml", machine=machine).machine).describe)


@pytest.mark.parametrize(
    ("machine", "kind", "is_of_host", "acts_here"),
    [("host", Host, True, True), ("guest:6.1", Guest, False, True), ("model:one_disk", Model, False, False)],
)
def test_a_trial_carries_the_machine_that_the_experiment_names(
    machine: str, kind: type[Machine], is_of_host: bool, acts_here: bool
) -> None:
    experiment = loads(READS, "x.toml", machine=machine)
    found = experiment.machine
    assert isinstance(found, kind)
    assert (found.name, found.is_of_host, found.acts_here) == (machine, is_of_host, acts_here)
    (trial,) = Plan(experiment, 1).round(0)
    assert (trial.machine, trial.kind, trial.is_of_host) == (machine, found.kind, is_of_host)


def test_a_setting_without_a_kernel_has_the_one_of_the_file() -> None:
    settings = '[settings.filed]\n[settings.old]\nkernel = "2.6.16"\n[settings.same]\nkernel = "2.6.16"\n'
    found = loads(READS + settings, "x.toml", machine="model:quad-7200").machine
    assert isinstance(found, Model)
    assert found.kernels == [found.as_filed["kernel"], "2.6.16"]
    assert loads(READS, "x.toml").machine.kernels == []


def test_what_is_worth_knowing_before_the_first_trial_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    def told(text: str, machine: str) -> str | None:
        found = loads(text, "x.toml", machine=machine).machine
        return port_of(found).announcement(found, 7)

    assert told(READS, "model:one_disk") == "simulating model:one_disk with seed 7"
    assert told(READS, "guest:6.1") is None
    assert (told(READS, "host") or "").startswith(f"without root and [target], files go to {tmp_path}")
    assert told(f'{READS}[target]\nkind = "directory"\npath = "."\n', "host") is None
