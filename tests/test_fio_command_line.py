"""Command lines of fio, as scripts and mails have them, read as job files."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.domain.workload.fio_file.command_line import job_text
from support.command_line import CommandLine


@pytest.mark.parametrize(
    ("command", "job"),
    [
        ("fio --name=a --rw=read", "[a]\nrw=read\n"),
        ("fio --rw=read --direct --name a --size=1m", "[global]\nrw=read\ndirect\n[a]\nsize=1m\n"),
        ("$ sudo -E fio -name=a -bs=4k -name=b -bs=8k", "[a]\nbs=4k\n[b]\nbs=8k\n"),
        ("# /usr/bin/fio --name=global --bs=4k --name=b", "[global]\nbs=4k\n[b]\n"),
        ("# of the team\nfio --name=a \\\n    --bs=4k \\\n    --output x.json --eta=never", "[a]\nbs=4k\n"),
        ("fio --name=a '--bssplit=4k/50:8k/50' 2>&1 | tee log", "[a]\nbssplit=4k/50:8k/50\n"),
        ("LC_ALL=C taskset -c 1 fio --name=a > out", "[a]\n"),
    ],
)
def test_it_says_the_same_as_a_job_file(command: str, job: str) -> None:
    assert job_text(command, "x.sh") == job


@pytest.mark.parametrize("text", ["", "[a]\nrw=read\n", 'title = "fio"\n', "fio = 3\n", "size=1m\n"])
def test_what_is_no_command_is_left_alone(text: str) -> None:
    assert job_text(text, "x") is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("fio --name=a\nfio --name=b\n", "x.sh: 2 commands of fio; expected one; give each a file of its own"),
        ("for i in 1 2; do\nfio --name=a\ndone\n", "x.sh: a script with commands of fio; expected one command line"),
        ("fio job.fio --bs=4k", "x.sh: job.fio: a job file beside options; run the job file by itself"),
        ("fio --name='a", "x.sh: not a command line: no closing quotation"),
    ],
)
def test_what_is_more_is_refused_in_one_line(text: str, error: str) -> None:
    with pytest.raises(InputError) as raised:
        job_text(text, "x.sh")
    assert str(raised.value).startswith(error)


@given(st.text())
def test_any_text_is_read_or_refused(options: str) -> None:
    for text in (options, f"fio --name=a {options}"):
        try:
            job_text(text, "x.sh")
        except InputError as error:
            assert str(error).startswith("x.sh: ")


def test_fio_itself_reads_it_so(tmp_path: Path) -> None:
    """fio turns the job file back into options: the same ones, but for how it writes them."""
    options = ["--rw=randread", "--size=1m", "--name=a", "--bs=4k", "--name=b", "--bs=8k"]
    job = job_text(" ".join(["fio", *options]), "x.sh")
    assert job is not None
    (tmp_path / "job.fio").write_text(job)
    shown = subprocess.run(["fio", "--showcmd", "job.fio"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["fio", *options]


def test_it_runs(iolab: CommandLine) -> None:
    iolab.write("read.sh", "fio --name=a --rw=randread --bs=4k --size=256k --ioengine=psync --output-format=json\n")
    assert "a" in iolab("run", "read.sh", "--machine", "model:nvme", "--out", "run").stdout
    bad = iolab.write("bad.sh", "fio --name=a --rwx=1\n")
    iolab("run", bad, status=None).assert_one_clear_line(2, "bad.sh, as a job file:2: rwx: neither fio")
