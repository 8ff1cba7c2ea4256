"""The machine's description and the doctor's findings."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from iolab.domain.trial import DirectoryTarget
from iolab.machines.host import describe, doctor
from iolab.machines.system.block import device_at
from iolab.machines.system.facts import absent, fields, files, is_absent, text
from iolab.machines.system.undo import UndoJournal
from support.trials import scratch_target


def test_the_description_is_json_and_complete(tmp_path: Path) -> None:
    described = describe.describe(DirectoryTarget(path=str(tmp_path)))
    assert json.loads(json.dumps(described)) == described
    for area in ("kernel", "cpu", "memory", "clock", "privileges", "cgroup", "virtualization", "versions", "target"):
        assert described[area], area
    assert described["kernel"]["release"] == Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert described["target"]["place"] == str(tmp_path)


def test_a_scratch_target_is_described_before_its_place_exists(tmp_path: Path) -> None:
    target = scratch_target(size_bytes=1, filesystem=None, backing_directory=str(tmp_path / "not" / "yet"))
    assert describe.describe(target)["target"]["place"] == str(tmp_path)


def test_what_cannot_be_read_is_absent_with_a_reason(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert text(missing) == absent(f"no {missing}")
    assert is_absent(files(missing))
    (tmp_path / "info").write_text("model name\t: X\nmodel name\t: Y\n")
    assert fields(tmp_path / "info", {"model": "model name", "speed": "MHz"}) == {
        "model": "X",
        "speed": absent(f"{tmp_path / 'info'} does not show 'MHz'"),
    }


@pytest.mark.root
def test_a_device_is_described_with_its_whole_queue(loop_device: Path, tmp_path: Path) -> None:
    shown = describe.block_device(device_at(loop_device))
    assert shown["loop"]["backing_file"] == str(tmp_path / "loop.img")
    assert shown["size_bytes"] == 64 << 20
    assert shown["virtual"]
    queue = Path("/sys/block") / loop_device.name / "queue"
    assert set(shown["queue"]) == {path.name for path in queue.iterdir() if path.is_file()}


def test_the_doctor_says_how_to_get_what_is_missing(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.machines.system.command.find", lambda tool: None)
    found = doctor.findings()
    assert {finding.state for finding in found} <= {"ok", "limited", "missing"}
    assert all(finding.remedy for finding in found if finding.state != "ok")
    xfs = next(finding for finding in found if (finding.area, finding.what) == ("filesystems", "xfs"))
    assert (xfs.state, xfs.remedy) == ("missing", "sudo apt-get install xfsprogs")


@pytest.mark.root
def test_the_doctor_tells_root_without_capabilities_from_root() -> None:
    given = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", sys.executable, "-m", "iolab", "doctor", "--json"]
    found = json.loads(subprocess.run(given, check=True, capture_output=True, text=True).stdout)["findings"]
    states = {one["what"]: one["state"] for one in found if one["area"] in ("privileges", "scratch")}
    assert (states["root"], states["loop devices"]) == ("limited", "limited")
    states = {one.what: one.state for one in doctor.findings() if one.area in ("privileges", "scratch")}
    assert (states["root"], states["loop devices"]) == ("ok", "ok")


def test_the_doctor_finds_what_dead_runs_left(state_dir: Path) -> None:
    def leftovers() -> doctor.Finding:
        return next(finding for finding in doctor.findings() if finding.area == "leftovers")

    assert leftovers().state == "ok"
    (state_dir / "undo").mkdir()
    (state_dir / "undo" / "1-dead.jsonl").write_text("{}\n")
    assert (leftovers().state, leftovers().remedy) == ("limited", "iolab restore")
    (state_dir / "undo" / "1-dead.jsonl").unlink()
    with UndoJournal.open():
        assert leftovers().state == "ok"
