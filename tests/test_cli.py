"""The command line in this process: what it prints, and how it ends. Whole runs are in test_end_to_end*.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fake_machine import FakeExecutor
from iolab.presentation.cli import invoke as module
from iolab.presentation.cli.invoke import invoke
from support.stored import TWO_SETTINGS, stored_run

pytestmark = pytest.mark.usefixtures("state_dir")
COMMANDS = ("demo", "doctor", "run", "show", "compare", "bisect", "attribute", "history", "report", "list", "restore")
HEAVY = ("polars", "numpy", "scipy", "plotly", "jinja2", "rich", "pydantic", "iolab._native")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight rounds in which `fast` is faster than `plain`, and `alike` the same."""
    return stored_run(tmp_path_factory.mktemp("cli") / "run", faster={"fast": 1.2}).path


def modules_after(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "statement", ["import iolab", "from iolab.presentation.cli.invoke import invoke; invoke(['--help'])"]
)
def test_starting_loads_nothing_heavy(statement: str) -> None:
    assert not modules_after(statement).intersection(HEAVY)


def test_a_worker_loads_no_numerics() -> None:
    """One is started for every run, and they take longer to load than all else."""
    assert not modules_after("import iolab.machines.worker").intersection(set(HEAVY) - {"pydantic", "iolab._native"})


def test_help_names_every_command_and_each_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--help"]) == 0
    overview = capsys.readouterr().out
    for command in COMMANDS:
        assert f"  {command} " in overview
        assert invoke([command, "--help"]) == 0
        assert "--json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "absent"], ["absent"]),
        (["shwo"], ["shwo"]),
        (["run"], ["experiment"]),
        (["run", "a.toml", "--fail-on", "slwer"], ["slwer", "did you mean slower"]),
        (["run", "a.toml", "--retry-failed"], ["--resume"]),
        (["run", "--resume", "a", "--seed", "3"], ["--seed"]),
        (["run", "a.toml", "--machine", "hsot"], ["did you mean host"]),
        (["list", "metrcs"], ["did you mean metrics"]),
        (["list", "metrics", "iop"], ["did you mean iops"]),
        (["compare", "absent", "--same-within", "a lot"], ["a lot"]),
    ],
)
def test_wrong_input_is_one_line_and_status_2(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("iolab: ")
    for word in words:
        assert word in lines[0]


def test_with_json_an_error_is_also_an_object_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["show", "absent", "--json"]) == 2
    captured = capsys.readouterr()
    error = json.loads(captured.out)["error"]
    assert error["kind"] == "input" and error["where"] == "absent" and error["remedy"]
    assert captured.err.startswith("iolab: absent")


def test_a_defect_is_one_line_that_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("nobody\nforesaw this")

    monkeypatch.setattr("iolab.machines.system.undo.restore_dead", broken)
    assert invoke(["restore"]) == module.EXIT_DEFECT
    assert capsys.readouterr().err.splitlines() == [
        "iolab: ZeroDivisionError: nobody foresaw this; this is a defect in iolab; "
        "run with IOLAB_TRACEBACK=1 for the traceback"
    ]
    monkeypatch.setenv("IOLAB_TRACEBACK", "1")
    assert invoke(["restore"]) == module.EXIT_DEFECT
    assert "Traceback" in capsys.readouterr().err


def test_a_panic_is_one_line_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class PanicException(BaseException): ...

    def panicking(*_: object, **__: object) -> None:
        raise PanicException("index out of bounds")

    monkeypatch.setattr("iolab.machines.system.undo.restore_dead", panicking)
    assert invoke(["restore"]) == module.EXIT_DEFECT
    assert capsys.readouterr().err.startswith("iolab: PanicException: index out of bounds; this is a defect in iolab;")


def test_an_interruption_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("iolab.machines.system.undo.restore_dead", interrupted)
    assert invoke(["restore"]) == 130
    assert capsys.readouterr().err == "iolab: interrupted\n"


def test_a_reader_who_leaves_is_no_error(run: Path) -> None:
    command = [
        sys.executable,
        "-c",
        f"from iolab.presentation.cli import main; import sys; sys.argv[1:] = ['show', {str(run)!r}]; main()",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize("form", ["plain", "csv", "markdown", "json"])
def test_show_has_every_setting(run: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["show", str(run), "--as", form]) == 0
    shown = capsys.readouterr().out
    for setting in ("plain", "fast", "alike"):
        assert setting in shown


def test_show_compares_with_the_baseline_that_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["show", str(run), "--baseline", "fast", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["baseline"] == "fast" and {one["setting"] for one in document["comparisons"]} == {"plain", "alike"}
    assert invoke(["show", str(run), "--baseline", "slow"]) == 2
    assert "--baseline: slow: unknown setting" in capsys.readouterr().err


def test_show_json_has_values_and_comparisons(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["show", str(run), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["baseline"] == "plain" and shown["rounds"] == 8
    assert {value["metric"] for value in shown["values"]} == {"rate_bytes_per_s", "read.iops", "cpu_ns_per_io"}
    verdicts = {(one["metric"], one["setting"]): one["verdict"] for one in shown["comparisons"]}
    assert verdicts["rate_bytes_per_s", "fast"] == "faster"
    assert verdicts["rate_bytes_per_s", "alike"] == "same"


def test_a_metric_can_be_chosen_and_a_wrong_one_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["show", str(run), "--metric", "latency_ns_max", "--json"]) == 0
    assert {value["metric"] for value in json.loads(capsys.readouterr().out)["values"]} == {"latency_ns_max"}
    assert invoke(["show", str(run), "--metric", "latency_ns_p98"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert invoke(["show", str(run), "--metric", "sync.iops"]) == 2
    assert "sync.iops" in capsys.readouterr().err


def test_compare_against_another_baseline_turns_the_verdict(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["compare", str(run), "--baseline", "fast", "--metric", "rate_bytes_per_s", "--json"]) == 0
    found = {one["setting"]: one for one in json.loads(capsys.readouterr().out)["comparisons"]}
    assert found["plain"]["verdict"] == "slower" and found["plain"]["against"] == "fast"
    assert found["plain"]["ci_low"] <= found["plain"]["ratio"] <= found["plain"]["ci_high"] < 1
    assert invoke(["compare", str(run), "--baseline", "fsat"]) == 2
    assert "did you mean fast" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("condition", "status"), [("slower", 0), ("faster", 1), ("undecided,faster", 1), ("faulty", 0)]
)
def test_fail_on_decides_the_exit_status(
    run: Path, condition: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["compare", str(run), "--metric", "rate_bytes_per_s", "--fail-on", condition]) == status
    captured = capsys.readouterr()
    assert ("--fail-on" in captured.err) == bool(status)
    assert "faster" in captured.out


def test_a_gate_that_compares_nothing_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused before anything is measured, and of a run that was."""
    one = 'machine = "model:nvme"\nrounds = 1\n[workloads.reads]\noperations = 100\nfile_size = "4MiB"\n'
    (tmp_path / "one.toml").write_text(one)
    out = tmp_path / "run"
    assert invoke(["run", str(tmp_path / "one.toml"), "--out", str(out), "--fail-on", "slower,faulty"]) == 2
    assert "slower: can never hold, nothing is compared; give the experiment a second" in capsys.readouterr().err
    assert not out.exists()
    assert invoke(["run", str(tmp_path / "one.toml"), "--out", str(out), "--fail-on", "faulty"]) == 0
    assert invoke(["compare", str(out), "--fail-on", "undecided"]) == 2
    assert "undecided: can never hold" in capsys.readouterr().err


SLOWER_DISK = """machine = "model:one_disk"
rounds = 2
[workloads.reads]
file_size = "64MiB"
operations = {operations}
[settings.before]
[settings.after]
machine = {{ "drives.0.device.revolutions_per_minute" = 3600 }}
{only}[compare]
metrics = [{metrics}]
"""


def test_a_gate_on_a_metric_without_values_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """When the run has ended, and when it is resumed."""
    experiment, out = tmp_path / "few.toml", tmp_path / "run"
    experiment.write_text(SLOWER_DISK.format(operations=50, only="", metrics='"latency_ns_p99"'))
    refused = "slower: can never hold, no setting has a value of latency p99: of fewer than 1,000 values"
    assert invoke(["run", str(experiment), "--out", str(out), "--fail-on", "slower"]) == 2
    assert refused in capsys.readouterr().err
    assert invoke(["run", "--resume", str(out), "--rounds", "3", "--fail-on", "slower"]) == 2
    assert refused in capsys.readouterr().err
    assert invoke(["run", "--resume", str(out), "--rounds", "3", "--fail-on", "faulty"]) == 0
    capsys.readouterr()
    assert invoke(["compare", str(out), "--json", "--fail-on", "slower"]) == 2
    printed = capsys.readouterr()
    assert refused in printed.err and "comparisons" in json.loads(printed.out)  # one document, the result


def test_a_gate_names_what_it_cannot_see(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A metric that no setting has a value of beside one that has, and one that only the baseline has."""
    experiment = tmp_path / "some.toml"
    blind = "--fail-on cannot see what lacks values to compare: latency p99 of reads"
    experiment.write_text(SLOWER_DISK.format(operations=50, only="", metrics='"iops", "latency_ns_p99"'))
    assert invoke(["run", str(experiment), "--out", str(tmp_path / "a"), "--fail-on", "faster"]) == 0
    assert blind in capsys.readouterr().err
    assert invoke(["compare", str(tmp_path / "a"), "--fail-on", "faster"]) == 0
    assert blind in capsys.readouterr().err
    assert invoke(["compare", str(tmp_path / "a"), "--metric", "iops", "--fail-on", "faster"]) == 0
    assert "cannot see" not in capsys.readouterr().err
    only = "workload = { operations = 50 }\n"
    experiment.write_text(SLOWER_DISK.format(operations=1000, only=only, metrics='"latency_ns_p99"'))
    assert invoke(["run", str(experiment), "--out", str(tmp_path / "b"), "--fail-on", "slower"]) == 2
    assert "can never hold, no round has values of both settings of latency p99 of reads" in capsys.readouterr().err


@pytest.mark.parametrize(("good", "status"), [(0, 1), (1, 0)])
def test_a_run_in_which_every_trial_failed_is_no_success(
    good: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stored_run(
        tmp_path / "run", executor=FakeExecutor(status_of=lambda trial: "ok" if trial.round < good else "failed")
    )
    monkeypatch.setattr("iolab.studies.run.run", lambda *_, **__: run)
    (tmp_path / "experiment.toml").write_text(TWO_SETTINGS)
    for form in ((), ("--json",)):
        assert invoke(["run", str(tmp_path / "experiment.toml"), *form]) == status
        told = capsys.readouterr().err.splitlines()
        wanted = f"iolab: none of the run's 24 trials was measured to its end; why: iolab show {run.path}"
        assert (wanted in told) == bool(status)


def test_a_run_in_which_every_trial_of_a_setting_failed_is_no_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    executor = FakeExecutor(status_of=lambda trial: "failed" if trial.setting == "fast" else "ok")
    run = stored_run(tmp_path / "run", executor=executor)
    monkeypatch.setattr("iolab.studies.run.run", lambda *_, **__: run)
    (tmp_path / "experiment.toml").write_text(TWO_SETTINGS)
    assert invoke(["run", str(tmp_path / "experiment.toml")]) == 1
    said = f"iolab: no trial was measured to its end under fast; why: iolab show {run.path}"
    assert said in capsys.readouterr().err.splitlines()


def test_a_search_that_is_written_wrong_is_refused_before_heavy_imports(tmp_path: Path) -> None:
    (tmp_path / "tune.toml").write_text("[tune\n")
    code = (
        "import sys; from iolab.presentation.cli.invoke import invoke; "
        f"assert invoke(['tune', {str(tmp_path / 'tune.toml')!r}]) == 2; "
        "assert not {'optuna', 'scipy', 'iolab.studies.tuner.tuner'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_two_runs_are_compared_setting_by_setting(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored_run(tmp_path / "later", faster={"plain": 0.5, "fast": 1.2})
    arguments = ["compare", str(run), str(tmp_path / "later"), "--metric", "rate_bytes_per_s", "--json"]
    assert invoke(arguments) == 0
    found = {one["setting"]: one for one in json.loads(capsys.readouterr().out)["comparisons"]}
    assert {name: one["verdict"] for name, one in found.items()} == {
        "plain in later": "slower",
        "fast in later": "same",
        "alike in later": "same",
    }
    assert found["plain in later"]["against"] == "plain in run"


def test_the_csv_of_a_run_compares_like_the_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["show", str(run), "--as", "csv", "--metric", "rate_bytes_per_s"]) == 0
    (tmp_path / "run.csv").write_text(capsys.readouterr().out)
    chosen = ["--metric", "rate_bytes_per_s", "--json"]
    columns = ["--setting-column", "setting", "--round-column", "round", "--workload-column", "workload"]
    assert invoke(["compare", str(tmp_path / "run.csv"), *columns, "--baseline", "plain", *chosen]) == 0
    from_csv = json.loads(capsys.readouterr().out)["comparisons"]
    assert invoke(["compare", str(run), *chosen]) == 0
    from_run = json.loads(capsys.readouterr().out)["comparisons"]
    assert {one["setting"]: one["ratio"] for one in from_csv} == {one["setting"]: one["ratio"] for one in from_run}


@pytest.mark.parametrize("round_column", ["turn", "seconds"])
def test_compare_finds_the_rounds_of_a_csv(
    round_column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By what counts the rows of a setting; without it, they are rounds in their order."""
    rows = [f"{arm},{turn},{value}" for turn, value in ((2, 2.5), (1, 2.25)) for arm in ("a", "b")]
    text = "\n".join(["arm,turn,seconds", *rows])
    path = tmp_path / "numbers.csv"
    path.write_text(text if round_column == "turn" else text.replace(",2,", ",7,"))
    assert invoke(["compare", str(path), "--setting-column", "arm", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["comparisons"]
    assert [(one["metric"], one["n"]) for one in found] == [
        (metric, 2) for metric in ("turn", "seconds") if metric == "seconds" or round_column == "seconds"
    ]


def test_a_csv_option_says_which_way_is_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{arm},{turn},{value + turn / 1000}" for turn in range(9) for arm, value in (("a", 1.0), ("b", 2.0))]
    (tmp_path / "numbers.csv").write_text("\n".join(["arm,turn,score", *rows]))
    arguments = ["compare", str(tmp_path / "numbers.csv"), "--setting-column", "arm", "--round-column", "turn"]
    for option, verdict in (("--lower-is-better", "worse"), ("--higher-is-better", "better")):
        assert invoke([*arguments, "--baseline", "a", option, "score", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["comparisons"][0]["verdict"] == verdict


def test_a_csv_option_leaves_the_other_columns_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        f"{arm},{turn},{case},{value + turn / 1000}"
        for turn in range(9)
        for case in ("scan", "load")
        for arm, value in (("a", 1.0), ("b", 2.0))
    ]
    (tmp_path / "numbers.csv").write_text("\n".join(["version,round,benchmark,score", *rows]))
    assert invoke(["compare", str(tmp_path / "numbers.csv"), "--lower-is-better", "score", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["comparisons"]
    assert [(one["workload"], one["verdict"]) for one in found] == [("scan", "worse"), ("load", "worse")]


DOUBLED = {
    "read.iops": "faster",
    "latency_ns_p99": "slower",
    "cpu_ns_per_io": "worse",
    "page_cache_hit_share": "better",
    "queue_depth_mean": "higher",
    "request_bytes_mean": "higher",
}
"""The verdict on each metric where the candidate has twice the baseline's value."""


def compare_doubled(directory: Path, *arguments: str) -> int:
    """The exit status of `iolab compare` on a CSV file of these metrics."""
    rows = [
        ",".join([arm, str(turn), *(str(value + turn / 1000) for _ in DOUBLED)])
        for turn in range(9)
        for arm, value in (("a", 1.0), ("b", 2.0))
    ]
    (directory / "numbers.csv").write_text("\n".join([",".join(["arm", "turn", *DOUBLED]), *rows]))
    columns = ["--setting-column", "arm", "--round-column", "turn", "--baseline", "a"]
    return invoke(["compare", str(directory / "numbers.csv"), *columns, *arguments])


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_columns_named_by_hand_are_read_as_they_are_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    """Decimal commas, points between thousands, units in the entries, text."""
    rows = [("ohne", 123.0, 500.0, 1200), ("für alle", 123.0, 400.0, 1500)] * 4
    lines = [
        f"{n}.11.2026;{name};{iops:.3f};{rate + n / 10:.1f};{late + 10 * n} us;x{n}"
        for n, (name, iops, rate, late) in enumerate(rows, 1)
    ]
    text = "Tag;wie;IOPS;MB/s;latency;Notiz\n" + "\n".join(
        ";".join([day, name, iops, rate.replace(".", ","), late, note])
        for day, name, iops, rate, late, note in (line.split(";") for line in lines)
    )
    (path := tmp_path / "numbers.csv").write_bytes(f"{text}\n".encode(encoding))
    assert invoke(["compare", str(path), "--setting-column", "wie", "--json"]) == 0
    found = {one["metric"]: one for one in json.loads(capsys.readouterr().out)["comparisons"]}
    assert {name: one["verdict"] for name, one in found.items()} == {
        "IOPS": "same",
        "MB/s": "slower",
        "latency_ns_mean": "slower",
    }
    assert found["IOPS"]["baseline"] == 123_000 and found["latency_ns_mean"]["baseline"] == pytest.approx(
        1.24e6, rel=0.02
    )
    assert invoke(["compare", str(path), "--setting-column", "wie", "--metric", "latency"]) == 0
    shown = capsys.readouterr().out
    assert "slower than ohne in latency mean" in shown and "columns of text are left out: Tag, Notiz" in shown


def test_only_rates_and_times_are_faster_or_slower(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_doubled(tmp_path, "--json") == 0
    comparisons = json.loads(capsys.readouterr().out)["comparisons"]
    assert {one["metric"]: one["verdict"] for one in comparisons} == DOUBLED
    assert compare_doubled(tmp_path) == 0
    assert "1 slower, 1 worse, 1 faster, 1 better, 2 higher" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        *((bad, {"latency_ns_p99", "cpu_ns_per_io"}) for bad in ("slower", "worse")),
        *((good, {"read.iops", "page_cache_hit_share"}) for good in ("faster", "better")),
    ],
)
def test_fail_on_means_the_good_or_the_bad_direction_of_each_metric(
    condition: str, named: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for metric in DOUBLED:
        neutral = DOUBLED[metric] == "higher"
        status = compare_doubled(tmp_path, "--metric", metric, "--fail-on", condition)
        assert status == (2 if neutral else 1 if metric in named else 0), metric
        assert ("can never hold, neither way is better" in capsys.readouterr().err) == neutral


@pytest.mark.parametrize(
    "what", ["machines", pytest.param("experiments", marks=pytest.mark.long), "workloads", "settings", "metrics"]
)
def test_every_listed_name_has_help_and_can_be_shown_alone(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["list", what, "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)[what]
    assert entries and all(entry["help"] for entry in entries)
    for entry in entries:
        assert invoke(["list", what, entry["name"]]) == 0
        assert entry["name"] in capsys.readouterr().out


def test_an_option_of_a_workload_has_type_default_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["list", "workloads", "io"]) == 0
    shown = capsys.readouterr().out
    assert "queue_depth" in shown and "Operations in flight" in shown
    assert invoke(["list", "workloads", "io", "--json"]) == 0
    options = {option["name"]: option for option in json.loads(capsys.readouterr().out)["workloads"][0]["options"]}
    assert options["file_size"]["unit"] == "bytes" and options["queue_depth"]["default"] == "`1`"


def test_the_list_of_controls_has_its_old_name_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["list", "controls", "nr_requests", "--json"]) == 0
    (control,) = json.loads(capsys.readouterr().out)["controls"]
    assert invoke(["list", "settings", "nr_requests", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["settings"] == [control]
    assert "settings is called controls now" in said.err


def test_the_list_of_machines_ends_with_how_good_the_models_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["list", "machines"]) == 0
    shown = capsys.readouterr().out
    assert "How well the models meet published figures" in shown
    assert "independent predictions: " in shown
    assert invoke(["list", "machines", "--json"]) == 0
    card = {score["name"]: score for score in json.loads(capsys.readouterr().out)["scorecard"]}
    assert card["group-idle/slice_idle_8"]["cells"] == 36
    assert 1 < card["group-idle/slice_idle_8"]["factor"] < 2
    assert invoke(["list", "machines", "host", "--json"]) == 0
    assert "scorecard" not in json.loads(capsys.readouterr().out)


def test_a_name_of_another_list_is_said_to_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["list", "machines", "samsung_ssd_860"]) == 2
    said = capsys.readouterr().err
    assert "samsung_ssd_860: no machine" in said and "iolab list devices samsung_ssd_860" in said


def test_the_listed_machines_are_those_an_experiment_may_name(capsys: pytest.CaptureFixture[str]) -> None:
    from iolab.base.errors import IolabError
    from iolab.files.experiment import loads

    workload = '[workloads.w]\nduration = "1s"\n'
    assert invoke(["list", "machines", "--json"]) == 0
    machines = [entry["name"] for entry in json.loads(capsys.readouterr().out)["machines"]]
    assert {"host", "model:one_disk"} < set(machines)
    for machine in machines:
        assert loads(f'machine = "{machine}"\n{workload}', "e.toml", already_run=True).machine.name == machine
    with pytest.raises(IolabError):
        loads(f'machine = "elsewhere"\n{workload}', "e.toml")


def test_doctor_says_how_to_get_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["doctor", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert findings and all(finding["state"] == "ok" or finding["remedy"] for finding in findings)
    assert invoke(["doctor"]) == 0
    assert findings[0]["what"] in capsys.readouterr().out


def test_restore_has_nothing_to_do_on_a_clean_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["restore", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"restored": [], "problems": []}


@pytest.mark.parametrize("columns", [80, 120])
def test_metrics_are_listed_by_what_gives_them(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert invoke(["list", "metrics"]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if line.startswith(("workload", "probe ", "imported"))]
    assert headings[0] == "workload" and headings[-1] == "imported" and "probe block" in headings
    assert max(map(len, lines)) <= columns
    beside = next(line for line in lines if line.startswith("iops ")).endswith("measured time.")
    assert beside == (columns == 120), "help stands beside the name where it has room"
