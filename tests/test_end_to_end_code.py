"""No code runs that nobody asked for, driven as a user does: modules and programs planted in the current directory,
options that would become others on their way to fio."""

import os
import subprocess
import sys
from pathlib import Path

import iolab as package
import pytest
from iolab.base import child_process
from iolab.base.errors import InputError
from iolab.domain.trial import FioPhase
from iolab.files.experiment import loads
from iolab.machines.host.fio import job_file
from iolab.machines.system import command
from support.command_line import CommandLine
from support.runs import statuses

NEEDS_FIO = pytest.mark.skipif(command.find("fio") is None, reason="fio is not installed")

FIO = """\
rounds = 1
[target]
kind = "{kind}"
path = "{path}"
[workloads.job]
kind = "fio"
runner = "fio"
size = "4KiB"
job = \"\"\"
{job}
\"\"\"
{more}
"""


def fio(
    iolab: CommandLine, *, job: str = "[a]\nrw=read", kind: str = "directory", path: str = ".", more: str = ""
) -> Path:
    return iolab.write("fio.toml", FIO.format(job=job, kind=kind, path=path, more=more))


READS = """\
rounds = 1
[target]
kind = "directory"
path = "."
[workloads.reads]
file_size = "64KiB"
duration = "20ms"
"""
PLANTED = """\
import os
open({marker!r}, "a").write(__name__)
raise SystemExit(f"{{__name__}} of the current directory was run")
"""
SOURCES = Path(package.__file__).parents[1]
THIRD_PARTY = [entry for entry in sys.path if entry.endswith("site-packages")]


def plant(directory: Path) -> Path:
    """Modules and programs that leave a mark when they run."""
    marker = directory / "ran"
    for module in ("json", "select", "selectors", "tempfile", "pydantic", "typer", "numpy", "sitecustomize"):
        (directory / f"{module}.py").write_text(PLANTED.format(marker=str(marker)))
    for program in ("fio", "systemd-detect-virt", "losetup", "mkfs.ext4", "unshare", "sh"):
        (directory / program).write_text(f"#!/bin/sh\necho {program} >> {marker}\n")
        (directory / program).chmod(0o755)
    return marker


def test_modules_and_programs_of_the_current_directory_are_not_run(
    iolab: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = plant(iolab.cwd)
    (iolab.cwd / "iolab").mkdir()
    (iolab.cwd / "iolab" / "__init__.py").write_text(PLANTED.format(marker=str(marker)))
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}:")
    monkeypatch.setenv("BASH_ENV", str(iolab.cwd / "sh"))
    iolab("run", iolab.write("reads.toml", READS), "--out", "out")
    assert statuses(iolab.cwd / "out") == ["ok"]
    assert not marker.exists(), marker.read_text()


@NEEDS_FIO
def test_neither_are_they_when_fio_runs_the_job(iolab: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    told = fio(iolab, job="[a]\nrw=write")
    marker = plant(iolab.cwd)
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}:")
    iolab("run", told, "--out", "out")
    assert statuses(iolab.cwd / "out") == ["ok"]
    assert not marker.exists(), marker.read_text()


def test_python_m_iolab_leaves_the_current_directory_out_as_soon_as_it_runs(tmp_path: Path) -> None:
    marker = plant(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "iolab", "list", "machines"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not marker.exists(), marker.read_text()


@pytest.mark.parametrize("way", ["of one user", "PYTHONPATH", "sources"])
def test_a_worker_finds_the_iolab_that_started_it(way: str, iolab: CommandLine) -> None:
    """Installed as `pip install --user` does, named by PYTHONPATH, or in the current directory."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    where = {**kept, "HOME": str(iolab.cwd), "IOLAB_STATE_DIR": str(iolab.state_dir)}
    place = iolab.cwd
    if way == "of one user":
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = iolab.cwd / ".local" / "lib" / version / "site-packages"
        site.mkdir(parents=True)
        (site / "iolab.pth").write_text("\n".join([str(SOURCES), *THIRD_PARTY]))
    elif way == "PYTHONPATH":
        where["PYTHONPATH"] = os.pathsep.join([str(SOURCES), *THIRD_PARTY])
    else:
        where["PYTHONPATH"] = os.pathsep.join(THIRD_PARTY)
        place = SOURCES
    told = iolab.write("reads.toml", READS.replace('"."', f'"{iolab.cwd}"'))
    base = getattr(sys, "_base_executable", sys.executable)
    command_line = [base, "-m", "iolab", "run", str(told), "--out", str(iolab.cwd / "out")]
    done = subprocess.run(command_line, cwd=place, env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert statuses(iolab.cwd / "out") == ["ok"]


def test_every_child_is_given_a_clean_environment_and_python_is_started_in_one_place() -> None:
    sources = {path.relative_to(SOURCES).as_posix(): path.read_text() for path in SOURCES.glob("iolab/**/*.py")}
    assert [path for path, text in sources.items() if "sys.executable" in text] == ["iolab/base/child_process.py"]
    for path, text in sources.items():
        starts = text.count("subprocess.run(") + text.count("subprocess.Popen(")
        assert text.count("env=") >= starts and text.count("child_process.") >= starts, path


def test_the_environment_is_what_is_known_and_has_no_relative_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {
        "PATH": ":bin:/a::./b:/c:",
        "LD_PRELOAD": "/x.so",
        "LD_LIBRARY_PATH": ":/lib1:lib2",
        "PYTHONPATH": ":.:relative:/code",
        "PYTHONSTARTUP": "/x.py",
        "MKE2FS_CONFIG": "/x",
        "BASH_ENV": "/x",
        "MAKEFLAGS": "-j",
        "IOLAB_STATE_DIR": "/state",
        "XDG_CACHE_HOME": "/cache",
        "HOME": "/root",
    }.items():
        monkeypatch.setenv(name, text)
    found = child_process.environment()
    assert found["PATH"].split(":")[:2] == ["/a", "/c"] and "" not in found["PATH"].split(":")
    assert (found["LD_LIBRARY_PATH"], found["HOME"], found["IOLAB_STATE_DIR"]) == ("/lib1", "/root", "/state")
    assert found["XDG_CACHE_HOME"] == "/cache"
    assert not {"LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP", "MKE2FS_CONFIG", "BASH_ENV", "MAKEFLAGS"} & found.keys()
    assert child_process.python_environment()["PYTHONPATH"].split(":")[0] == "/code"


@NEEDS_FIO
def test_an_option_for_fio_holds_no_second_option(iolab: CommandLine) -> None:
    told = fio(iolab, more=f'options = {{ iodepth = "1\\nexec_prerun=touch {iolab.cwd}/ran" }}')
    iolab("run", told, "--out", "out", status=None).assert_one_clear_line(2, "fio.toml:", "one line")
    assert not (iolab.cwd / "ran").exists() and not (iolab.cwd / "out").exists()


@NEEDS_FIO
def test_neither_does_the_path_of_a_target(iolab: CommandLine) -> None:
    hidden = f"exec_prerun=touch {iolab.cwd}/ran"
    (iolab.cwd / f"x\n{hidden}\n").mkdir(parents=True)
    told = fio(iolab, path=f"x\\n{hidden}\\n")
    iolab("run", told, "--out", "out", status=None).assert_one_clear_line(2, "target.path", "one line")
    assert not (iolab.cwd / "ran").exists() and not (iolab.cwd / "out").exists()


def refused(text: str) -> str:
    with pytest.raises(InputError) as raised:
        loads(text, "fio.toml")
    return str(raised.value)


@pytest.mark.parametrize("end", ["\\n", "\\r", "\\r\\n", "\\u2028", "\\u0085", "\\u0000", "\\f"])
@pytest.mark.parametrize("option", ["iodepth", "bs", "description", "flow", "numjobs", "name", "verify"])
def test_no_option_goes_past_its_line(option: str, end: str) -> None:
    told = f'options = {{ {option} = "1{end}exec_prerun=x" }}'
    assert "expected a text on one line" in refused(FIO.format(job="[a]", kind="directory", path=".", more=told))


@pytest.mark.parametrize(
    "told",
    [
        {"more": '[settings.a]\nworkload = { options = { iodepth = "1\\nexec_prerun=x" } }'},
        {"more": 'options = { "iodepth=1\\nexec_prerun" = 1 }'},
        {"more": '[settings.a]\nscheduler = "none\\nbfq"'},
        {"job": "[a]\niodepth=${DEPTH}"},
        {"job": "[a]\nflow=${DEPTH}"},
        {"job": "[a\\u0007b]\nrw=read"},
        {"job": "[a]\nflow=1\\u0000exec_prerun=x"},
    ],
)
def test_neither_does_a_settings_change_a_name_or_a_variable(
    told: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPTH", "1\nexec_prerun=x")
    text = FIO.format(**{"job": "[a]", "kind": "directory", "path": ".", "more": "", **told})
    assert "\n" not in refused(text)


@pytest.mark.parametrize("text", ["1 exec", "4k;", "$(id)", "many", "1,2,3,4,5"])
def test_an_option_that_is_a_number_is_read_as_one_for_fio_too(text: str) -> None:
    told = f'options = {{ iodepth = "{text}" }}'
    assert f'iodepth: "{text}" given' in refused(FIO.format(job="[a]", kind="directory", path=".", more=told))


def test_what_is_handed_to_fio_is_looked_at_once_more() -> None:
    options = {"a": {"flow": "1\nexec_prerun=x"}}
    file = {"path": "/x", "base_bytes": 0}
    job = {"name": "a", "files": [0], "offset_bytes": 0, "length_bytes": 4096, "seed": 1}
    load = {"files": [file], "groups": [{"jobs": [job], "cpus": None}]}
    with pytest.raises(InputError, match=r"flow=1.*can't be given to fio"):
        job_file(FioPhase.model_construct(name="p", options=options, load=load), ["/x"])
