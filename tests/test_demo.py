"""The demo's experiments are valid wherever it may be started; that it runs is in test_end_to_end.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from iolab.adapters.experiment import loads
from iolab.adapters.experiment.plan import trials
from iolab.domain.trial import DirectoryTarget, ScratchTarget
from iolab.presentation import demo


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr("shutil.which", lambda name: f"/sbin/{name}")


@pytest.fixture
def ordinary_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("offered", [["none", "mq-deadline"], ["none", "mq-deadline", "bfq"]])
def test_root_compares_the_schedulers_that_the_kernel_has(
    root: None, monkeypatch: pytest.MonkeyPatch, quick: bool, offered: list[str]
) -> None:
    monkeypatch.setattr(demo, "_schedulers_here", lambda: offered)
    experiment = loads(demo.experiment_text(quick=quick), "demo.toml")
    assert isinstance(experiment.target, ScratchTarget)
    controls = [controls["scheduler"] for controls in experiment.settings.values()]
    assert set(experiment.settings) <= set(offered) and len(controls) >= 2
    assert experiment.compare.baseline == "none"


@pytest.mark.parametrize("quick", [True, False])
def test_a_user_compares_two_ways_to_issue_io_in_a_directory(ordinary_user: None, quick: bool) -> None:
    experiment = loads(demo.experiment_text(quick=quick), "demo.toml")
    assert isinstance(experiment.target, DirectoryTarget)
    assert list(experiment.settings) == ["psync", "io_uring"]
    planned = trials(experiment, 1, seed=1)
    assert {group["engine"] for trial in planned for group in trial.phases[-1].load["groups"]} == {"psync", "io_uring"}


def test_root_without_loop_devices_is_like_a_user(root: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.chdir(tmp_path)
    assert isinstance(loads(demo.experiment_text(quick=True), "demo.toml").target, DirectoryTarget)


def test_a_filesystem_that_refuses_direct_io_is_measured_through_the_page_cache(
    ordinary_user: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "_takes_direct_io", lambda _: False)
    assert "direct = false" in demo.experiment_text(quick=True)


def test_asking_for_direct_io_leaves_no_file(tmp_path: Path) -> None:
    assert demo._takes_direct_io(tmp_path) in (True, False)
    assert not list(tmp_path.iterdir())
