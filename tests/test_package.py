"""The package alone, as a wheel installs it: no checkout around it, no compiler, data and all."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import iolab
import man_page
import pytest
from build_wheels import add, expected, missing_from
from conftest import CommandLine
from iolab.base import data
from iolab.base.errors import InputError
from iolab.presentation.cli.app import NAMES
from iolab.studies.reproduction import load
from iolab.studies.reproduction import names as published_names

ROOT = Path(__file__).parents[1]
PACKAGE = Path(iolab.__file__).parent
FOLDERS = ("machines", "experiments", "published")
SHORT = """\
title = "Two depths"
machine = "model:nvme"
rounds = 3
seed = 1

[workloads.reads]
pattern = "random"
file_size = "64MiB"
duration = "10ms"

[settings.one]
workload = { queue_depth = 1 }

[settings.sixteen]
workload = { queue_depth = 16 }
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a copy of the package, files in place of links."""
    place = tmp_path_factory.mktemp("site-packages")
    shutil.copytree(PACKAGE, place / "iolab", ignore=shutil.ignore_patterns("__pycache__"))
    return place


def alone(installed: Path, cwd: Path, *arguments: str) -> str:
    """What the copy prints, away from the checkout, with nothing in PATH."""
    places = [str(installed), *(place for place in sys.path if place.endswith("-packages"))]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "iolab", *arguments],
        cwd=cwd,
        env={"PYTHONPATH": os.pathsep.join(places), "PATH": "", "IOLAB_STATE_DIR": str(cwd / "state"), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_copy_is_what_runs(installed: Path, tmp_path: Path) -> None:
    (listed,) = json.loads(alone(installed, tmp_path, "list", "experiments", "model", "--json"))["experiments"]
    shipped = installed / "iolab" / "data" / "experiments"
    assert Path(listed["path"]) == (shipped / "examples" / "model.toml").resolve()


def test_machines_figures_and_experiments_come_with_the_package(installed: Path, tmp_path: Path) -> None:
    machines = json.loads(alone(installed, tmp_path, "list", "machines", "--json"))
    names = {path.stem for path in (ROOT / "machines").glob("*.toml")}
    assert {entry["name"] for entry in machines["machines"]} == {"host", *(f"model:{name}" for name in names)}
    assert machines["scorecard"], "what was stored of published figures"
    experiments = json.loads(alone(installed, tmp_path, "list", "experiments", "--json"))["experiments"]
    assert [entry["name"] for entry in experiments][: len(data.EXAMPLES)] == [*data.EXAMPLES]
    assert [entry["name"] for entry in experiments] == [*data.experiments()]


def test_each_experiment_has_one_name_and_each_example_its_place() -> None:
    folders = (data.EXPERIMENTS / "examples", data.EXPERIMENTS / "case-studies", data.PUBLISHED / "experiments")
    paths = sorted(path for folder in folders for path in folder.glob("*.toml"))
    assert sorted(data.experiments().values()) == paths
    for number, name in enumerate(data.EXAMPLES, 1):
        question, _, command = data.experiments()[name].read_text().splitlines()[:3]
        assert question.startswith(f"# {number}. ") and question.endswith("?")
        assert name in command.split()


def test_figures_are_asked_again_by_experiments_beside_them() -> None:
    used = {load(name).experiment for name in published_names()}
    assert used == {*(data.PUBLISHED / "experiments").glob("*.toml")}


def test_a_simulated_experiment_runs_and_is_compared(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SHORT)
    alone(installed, tmp_path, "run", "short.toml", "--out", "out")
    compared = json.loads(alone(installed, tmp_path, "compare", "out", "--metric", "iops", "--json"))
    assert [one["verdict"] for one in compared["comparisons"]] == ["faster"]


def test_an_experiment_that_comes_with_iolab_runs_by_its_name(iolab: CommandLine) -> None:
    iolab("run", "model", "--rounds", "1", "--out", "out")
    assert (iolab.cwd / "out" / "experiment.toml").read_text() == data.experiments()["model"].read_text()


def test_a_file_of_that_name_comes_first(iolab: CommandLine) -> None:
    iolab.write("model", SHORT)
    iolab("run", "model", "--rounds", "1", "--out", "out")
    assert (iolab.cwd / "out" / "experiment.toml").read_text() == SHORT


def test_a_name_of_nothing_has_the_nearest_one(iolab: CommandLine) -> None:
    iolab("run", "modle", status=2).assert_one_clear_line(2, "modle: no such file", "did you mean model?")
    iolab("run", "qqqq", status=2).assert_one_clear_line(2, "qqqq: no such file", "iolab list experiments")


@pytest.mark.parametrize("path", data.experiments().values(), ids=lambda path: path.stem)
def test_files_that_an_experiment_names_come_with_it(path: Path) -> None:
    named = [one["file"] for one in tomllib.loads(path.read_text())["workloads"].values() if "file" in one]
    assert all((path.parent / name).is_file() for name in named)


def test_an_installation_without_data_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this installation of iolab has no machines; install iolab again"):
        data.names(tmp_path / "machines")


def test_what_a_wheel_has_to_hold_is_the_package_and_its_data() -> None:
    names = expected()
    assert {"iolab/__init__.py", "iolab/py.typed", "iolab/_native.abi3.so", "iolab/data/machines/nvme.toml"} < set(
        names
    )
    assert "iolab/data/published/results/group-idle.json" in names
    assert len([name for name in names if name.startswith("iolab/data/")]) == sum(
        path.is_file() for folder in FOLDERS for path in (ROOT / folder).rglob("*")
    )


def packed(path: Path, names: Sequence[str]) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name in names:
            made.writestr(name, "")
    return path


def test_a_wheel_that_lacks_a_file_is_found(tmp_path: Path) -> None:
    whole = expected()
    whole += [man_page.INSTALLED]
    whole += [f"iolab-{iolab.__version__}.dist-info/licenses/LICENSE-{name}" for name in ("MIT", "APACHE")]
    assert missing_from(packed(tmp_path / "whole.whl", whole)) == []
    without = [name for name in whole if not name.endswith(("nvme.toml", "LICENSE-MIT"))]
    lacking = missing_from(packed(tmp_path / "part.whl", without))
    assert "iolab/data/machines/nvme.toml" in lacking
    assert any(name.endswith("LICENSE-MIT") for name in lacking)


def test_a_wheel_has_a_man_page_of_every_command_and_option(tmp_path: Path) -> None:
    page = man_page.render()
    for line in ("iolab \\- a laboratory for storage I/O on Linux", ".SS iolab run", ".B \\-\\-until\\-decided"):
        assert line in page.splitlines()
    assert all(f".SS iolab {name}" in page for name in NAMES)
    wheel = packed(tmp_path / "iolab.whl", ["iolab/__init__.py", "iolab.dist-info/RECORD"])
    add(wheel, man_page.INSTALLED, page.encode())
    with zipfile.ZipFile(wheel) as opened:
        *_, record = opened.namelist()
        assert opened.read(man_page.INSTALLED).decode() == page
        assert opened.read(record).decode().startswith(f"{man_page.INSTALLED},sha256=")
    assert man_page.INSTALLED in missing_from(packed(tmp_path / "without.whl", expected()))


def test_the_licences_are_named_alike_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    crates = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert project["license"] == crates["license"] == "MIT OR Apache-2.0"
    assert all((ROOT / name).read_text().strip() for name in project["license-files"])


def test_an_experiment_is_parsed_without_what_changes_machines() -> None:
    code = "import sys, iolab.files.experiment; print([name for name in sys.modules if name.startswith('iolab.m')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_without_its_extension_iolab_says_how_to_get_it(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "iolab", ignore=shutil.ignore_patterns("__pycache__", "*.so", "data"))
    code = "from iolab import _native"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("ImportError: iolab's compiled extension is missing; build it with")
