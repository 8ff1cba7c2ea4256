"""The main job by the real command line: run, show, compare, report, list, restore."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import pytest
from iolab import _native
from iolab.domain.definition import Verdict
from iolab.files import store
from iolab.files.store import read
from support.command_line import CommandLine
from support.devices import queue_attribute
from support.experiments import SCRATCH, TWO_SCHEDULERS, experiment
from support.runs import faults, statuses, times_finished

VERDICTS = get_args(Verdict)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A command line in whose directory `run` has two settings and three rounds, measured in a directory target, which
    works with and without root. For tests that only read."""
    directory = tmp_path_factory.mktemp("finished")
    iolab = CommandLine(cwd=directory, state_dir=directory / "state")
    iolab.write("depths.toml", experiment('kind = "directory"\npath = "."', rounds=3))
    iolab("run", "depths.toml", "--out", "run")
    return iolab


def test_a_run_measures_each_workload_under_each_setting_in_each_round(finished: CommandLine) -> None:
    run = finished.cwd / "run"
    assert times_finished(run) == dict.fromkeys(range(6), 1)
    assert statuses(run) == ["ok"] * 6
    assert len(list((run / "trials").glob("*.parquet"))) == 6
    assert (run / "experiment.toml").read_text() == (finished.cwd / "depths.toml").read_text()
    assert json.loads((run / "machine.json").read_text())


def test_nothing_of_the_workload_stays_in_a_directory_target(finished: CommandLine) -> None:
    assert sorted(path.name for path in finished.cwd.iterdir() if path.is_dir()) == ["run", "state"]


def test_a_finished_run_can_be_shown_in_every_format(finished: CommandLine) -> None:
    plain = finished("show", "run").stdout
    assert "shallow" in plain and "deep" in plain
    for form in ("csv", "markdown", "json"):
        assert "shallow" in finished("show", "run", "--as", form).stdout
    assert finished("show", "run", "--json").json()


def test_a_comparison_has_a_verdict_with_its_interval(finished: CommandLine) -> None:
    rows = comparisons(finished("compare", "run", "--json").json())
    assert rows
    for row in rows:
        assert row["verdict"] in VERDICTS
        if row["ratio"] is not None and row["ci_low"] is not None:
            assert row["ci_low"] <= row["ratio"] <= row["ci_high"]
    assert any(word in finished("compare", "run").stdout for word in VERDICTS)


def comparisons(document: Any) -> list[dict[str, Any]]:
    """The rows that carry a verdict, wherever the document keeps them."""
    if isinstance(document, dict) and "verdict" in document:
        return [document]
    parts = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    return [row for part in parts for row in comparisons(part)]


def test_a_report_opens_without_a_network(finished: CommandLine) -> None:
    finished("report", "run", "-o", "report.html")
    page = (finished.cwd / "report.html").read_text()
    assert "shallow" in page and "deep" in page
    links = Links()
    links.feed(page)
    assert links.found == []


class Links(HTMLParser):
    """What a browser would fetch to show the page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        wanted = {"script": "src", "img": "src", "link": "href", "iframe": "src"}.get(tag)
        self.found += [
            value for name, value in attributes if name == wanted and value and not value.startswith("data:")
        ]


def test_a_finished_run_is_not_overwritten_and_resuming_it_measures_nothing(finished: CommandLine) -> None:
    finished("run", "depths.toml", "--out", "run", status=None).assert_one_clear_line(2, "run", "not empty")
    finished("run", "--resume", "run")
    assert set(times_finished(finished.cwd / "run").values()) == {1}


def test_registered_waits_are_counted_where_they_are_asked_for_and_refused_by_older_kernels(iolab: CommandLine) -> None:
    workload = """
[workloads.reads]
queue_depth = 8
batch = 4
file_size = "8MiB"
operations = 400
"""
    settings = """
[settings.copied]
[settings.registered]
workload = { registered_waits = true }
"""
    iolab.write("waits.toml", experiment('kind = "directory"\npath = "."', workload=workload, settings=settings))
    has = json.loads(_native.features())["io_uring"]["registered_waits"]
    iolab("run", "waits.toml", "--out", "run", status=0 if has else None)
    if not has:
        assert "they take Linux 6.13" in faults(iolab.cwd / "run")[0]
        return
    assert statuses(iolab.cwd / "run") == ["ok"] * 4
    run = read(iolab.cwd / "run")
    records = [run.record(trial) for trial in run.trials["trial"].to_list()]
    noted = {(record.spec.setting, "from registered memory" in str(record.phases)) for record in records}
    assert noted == {("copied", False), ("registered", True)}


@pytest.mark.root
def test_a_scratch_device_is_tuned_measured_and_gone(iolab: CommandLine) -> None:
    iolab.write("schedulers.toml", experiment(SCRATCH, settings=TWO_SCHEDULERS))
    iolab("run", "schedulers.toml", "--out", "run")
    assert statuses(iolab.cwd / "run") == ["ok"] * 4
    record = store.read(iolab.cwd / "run").record(0)
    assert record.controls_applied["scheduler"]["applied"]["name"] == record.spec.setting.replace(
        "deadline", "mq-deadline"
    )


@pytest.mark.root
def test_tunables_of_a_device_are_as_before(iolab: CommandLine, loop_device: Path) -> None:
    tunables = ("scheduler", "nr_requests", "nomerges", "rq_affinity", "read_ahead_kb", "max_sectors_kb")
    before = {name: queue_attribute(loop_device, name) for name in tunables}
    settings = """
[settings.as_is]
[settings.tuned]
scheduler = { name = "bfq", low_latency = 0 }
nr_requests = 32
nomerges = 2
rq_affinity = 2
read_ahead_kb = 64
max_sectors_kb = 256
"""
    iolab.write("tuned.toml", experiment(f'kind = "device"\npath = "{loop_device}"', settings=settings, rounds=1))
    iolab("run", "tuned.toml", "--out", "run")
    assert statuses(iolab.cwd / "run") == ["ok"] * 2
    assert {name: queue_attribute(loop_device, name) for name in tunables} == before


@pytest.mark.root
@pytest.mark.parametrize("filesystem", ["xfs", "btrfs", "none"])
def test_other_filesystems_and_the_bare_device(iolab: CommandLine, filesystem: str) -> None:
    target = f'kind = "scratch"\nsize = "320MiB"\nfilesystem = "{filesystem}"'
    iolab.write("one.toml", experiment(target, rounds=1))
    iolab("run", "one.toml", "--out", "run")
    assert statuses(iolab.cwd / "run") == ["ok"] * 2


@pytest.mark.root
def test_the_classic_table_comes_from_a_tiobench_experiment(iolab: CommandLine) -> None:
    workload = '[workloads.classic]\nkind = "tiobench"\nfile_size = "4MiB"\nthreads = [1, 2]\nrandom_ops = 100\n'
    iolab.write("tiobench.toml", experiment(SCRATCH, workload=workload, settings="[settings.as_is]\n", rounds=1))
    iolab("run", "tiobench.toml", "--out", "run")
    table = iolab("show", "run", "--as", "tiobench").stdout.lower()
    for words in ("sequential reads", "random reads", "sequential writes", "random writes"):
        assert words in table


@pytest.mark.root
def test_an_ordinary_user_measures_in_a_directory(iolab_as_nobody: CommandLine) -> None:
    iolab_as_nobody.write("depths.toml", experiment('kind = "directory"\npath = "."'))
    iolab_as_nobody("run", "depths.toml", "--out", "run")
    assert statuses(iolab_as_nobody.cwd / "run") == ["ok"] * 4
    iolab_as_nobody("doctor")


@pytest.mark.machine
def test_the_demo_ends_with_a_verdict_and_a_report(iolab: CommandLine) -> None:
    output = iolab("demo", "--quick").stdout
    assert any(word in output for word in VERDICTS)
    assert ".html" in output


@pytest.mark.parametrize("what", ["machines", "workloads", "settings", "metrics"])
def test_lists_name_what_there_is(iolab: CommandLine, what: str) -> None:
    assert iolab("list", what).stdout.strip()
    assert iolab("list", what, "--json").json()


def test_there_is_nothing_to_restore_on_a_clean_machine(iolab: CommandLine) -> None:
    iolab("restore")
    iolab("doctor", "--json").json()
