"""The demo's experiments are valid wherever it may be started; that it runs is in test_end_to_end.py."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from iolab.domain.trial import DirectoryTarget, ScratchTarget
from iolab.files.experiment import loads
from iolab.presentation import demo
from iolab.studies.run.plan import trials


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
@pytest.mark.parametrize("scheduler", [None, "mq-deadline"])
def test_root_compares_read_ahead_and_a_scheduler_where_the_kernel_has_another(
    root: None, monkeypatch: pytest.MonkeyPatch, quick: bool, scheduler: str | None
) -> None:
    monkeypatch.setattr(demo, "_other_scheduler", lambda: scheduler)
    experiment = loads(demo.experiment_text(quick=quick), "demo.toml")
    assert isinstance(experiment.target, ScratchTarget)
    read_ahead = {name: controls["read_ahead_kb"] for name, controls in experiment.settings.items()}
    others = {} if scheduler is None else {scheduler: 128}
    assert read_ahead == {"ahead_128KiB": 128, "ahead_0": 0, "ahead_1MiB": 1024, **others}
    assert experiment.compare.baseline == "ahead_128KiB"


def test_no_block_of_the_demo_is_read_twice_through_the_page_cache(root: None) -> None:
    planned = trials(loads(demo.experiment_text(quick=False), "demo.toml"), 1, seed=1)
    main = planned[0].phases[-1].load
    (job,) = main["groups"][0]["jobs"]
    assert main["drop_caches"] and job["until"]["bytes"] == job["length_bytes"]


@pytest.mark.parametrize("quick", [True, False])
def test_a_user_compares_request_sizes_in_a_directory(ordinary_user: None, quick: bool) -> None:
    experiment = loads(demo.experiment_text(quick=quick), "demo.toml")
    assert isinstance(experiment.target, DirectoryTarget)
    planned = trials(experiment, 1, seed=1)
    issued = {
        trial.setting: (group["engine"], group["jobs"][0]["blocks"][0]["bytes"])
        for trial in planned
        for group in trial.phases[-1].load["groups"]
    }
    assert issued == {
        "requests_4KiB": ("psync", 4096),
        "requests_128KiB": ("psync", 131072),
        "requests_4KiB_io_uring": ("io_uring", 4096),
    }


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


@pytest.mark.parametrize("can_make_devices", [True, False])
def test_a_machine_that_refuses_rings_gets_libaio(monkeypatch: pytest.MonkeyPatch, can_make_devices: bool) -> None:
    monkeypatch.setattr(demo, "_can_make_devices", lambda: can_make_devices)
    features = json.dumps({"io_uring": {"usable": False}})
    monkeypatch.setattr(demo, "_native", SimpleNamespace(features=lambda: features))
    text = demo.experiment_text(quick=True)
    assert 'engine = "libaio"' in text
    assert "io_uring" not in text
    loads(text, "demo.toml")
