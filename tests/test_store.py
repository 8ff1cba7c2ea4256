"""Runs written and read back: nothing invented, nothing lost, every problem named."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from fake_machine import EXPERIMENT, FakeExecutor, SilentDisplay, experiment, record_of
from iolab.base.errors import InputError
from iolab.domain import metric
from iolab.domain.record import Record
from iolab.files.store import index, read, trial_file
from iolab.files.store.directory import RunDirectory, default_path
from iolab.files.store.rows import table_rows
from iolab.studies import run as running
from iolab.studies.run import plan

pytestmark = pytest.mark.usefixtures("state_dir")
DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "store.md"


def records(text: str = EXPERIMENT, rounds: int = 1) -> list[Record]:
    return [record_of(trial) for trial in plan.trials(experiment(text), rounds, seed=7)]


def of_workload(name: str) -> Record:
    return next(record for record in records() if record.spec.workload == name)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    running.run(
        experiment(),
        tmp_path / "run",
        executor=FakeExecutor(faster={"pinned": 1.1}),
        progress=SilentDisplay(),
        machine={"kernel": "k"},
    )
    return tmp_path / "run"


def test_metrics_come_back_as_they_were_computed(run: Path) -> None:
    data = read(run)
    for trial in plan.trials(experiment(), 2, seed=7):
        speed = 1.1 if trial.setting == "pinned" else 1.0
        expected = {
            metric.key_of(row, one_phase=True): (row.value, row.reason)
            for row in metric.rows(record_of(trial, speed=speed))
            if row.job == "all"
        }
        rows = data.metrics.filter(pl.col("trial") == trial.trial)
        assert {
            key: (value, reason) for key, value, reason in rows.select("key", "value", "reason").iter_rows()
        } == expected


def test_an_absent_value_is_null_with_a_reason(run: Path) -> None:
    metrics = read(run).metrics
    absent = metrics.filter(pl.col("value").is_null())
    assert absent.height > 0
    assert absent["reason"].null_count() == 0
    assert metrics.filter(pl.col("value").is_not_null())["reason"].null_count() == metrics.height - absent.height


def test_values_are_a_row_per_round_and_a_column_per_setting(run: Path) -> None:
    values = read(run).values("rate_bytes_per_s", "both")
    assert values.columns == ["round", "plain", "pinned"]
    assert values["round"].to_list() == [0, 1]
    assert ((values["pinned"] / values["plain"]) - 1.1).abs().max() < 0.01
    assert read(run).values("no_such", "both").height == 0
    assert read(run).values("iops", "no_such").height == 0


def test_wide_has_a_row_per_trial(run: Path) -> None:
    wide = read(run).wide(["iops", "read.latency_ns_p99"])
    assert wide.height == 8
    assert wide["iops"].null_count() == 0
    assert {"workload", "setting", "round", "read.latency_ns_p99"} <= set(wide.columns)


def test_histograms_hold_every_operation_once_per_scope(run: Path) -> None:
    data = read(run)
    counts = data.histograms(workload="both").group_by("trial", "op", "job").agg(pl.col("count").sum())
    of_all = counts.filter(pl.col("job") == "all").sort("trial", "op")
    of_jobs = (
        counts.filter(pl.col("job") != "all").group_by("trial", "op").agg(pl.col("count").sum()).sort("trial", "op")
    )
    assert of_all["count"].to_list() == of_jobs["count"].to_list()
    ops = data.metrics.filter(pl.col("key").is_in(["read.ops", "write.ops"]), pl.col("workload") == "both")
    assert of_all["count"].to_list() == ops.sort("trial", "op")["value"].to_list()
    assert set(data.histograms(workload="reads")["job"]) == {"all"}


def test_intervals_of_all_jobs_add_up(run: Path) -> None:
    intervals = read(run).intervals(workload="both", setting="plain").filter(pl.col("metric") == "iops")
    by_job = intervals.group_by("trial", "start_ns", "op", pl.col("job") == "all").agg(pl.col("value").sum())
    sums = by_job.pivot(on="job", index=["trial", "start_ns", "op"], values="value")
    assert (sums["true"] - sums["false"]).abs().max() < 1e-6
    both = intervals.filter(pl.col("job") == "all").pivot(on="op", index=["trial", "start_ns"], values="value")
    assert (both["all"] - both["read"] - both["write"]).abs().max() < 1e-6


def test_intervals_of_unequal_width_merge_on_the_coarsest() -> None:
    record = of_workload("both")
    fine, coarse = (job for group in record.phases[0]["groups"] for job in group["jobs"])
    pairs = zip(coarse["intervals"][::2], coarse["intervals"][1::2], strict=True)
    coarse["intervals"] = [
        {**first, "length_ns": 2 * first["length_ns"], "read_ops": first["read_ops"] + second["read_ops"]}
        for first, second in pairs
    ]
    total = sum(interval["read_ops"] for job in (fine, coarse) for interval in job["intervals"])
    merged = [
        row
        for row in table_rows(record)
        if (row.what, row.job, row.op, row.metric) == ("interval", "all", "read", "iops")
    ]
    lengths = [row.value for row in table_rows(record) if (row.job, row.metric) == ("all", "length_s")]
    assert lengths == [0.2] * 5
    assert sum((row.value or 0) * 0.2 for row in merged) == pytest.approx(total)


def test_faults_and_notes_are_remarks(tmp_path: Path) -> None:
    trial = plan.trials(experiment(), 1, seed=7)[0]
    rows = table_rows(record_of(trial, status="faulty"))
    (fault,) = (row for row in rows if row.what == "fault")
    assert (fault.metric, fault.value, fault.reason) == ("errno_5", 2.0, "it broke")
    assert [row.reason for row in rows if row.what == "note"] == ["polling was refused"]


def test_a_failed_trial_has_reasons_and_no_numbers(tmp_path: Path) -> None:
    failing = FakeExecutor(status_of=lambda trial: "failed")
    running.run(experiment(), tmp_path / "run", executor=failing, progress=SilentDisplay(), machine={})
    data = read(tmp_path / "run")
    assert data.metrics["value"].null_count() == data.metrics.height > 0
    assert set(data.metrics["reason"]) == {"the trial failed: it broke"}
    assert data.remarks().filter(pl.col("what") == "fault").height == 8


def test_metrics_come_first_in_one_row_group(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    record = of_workload("both")
    (tmp_path / "one.parquet").write_bytes(trial_file.encode(record))
    file = pq.ParquetFile(tmp_path / "one.parquet")
    whats = file.read()["what"].to_pylist()
    assert file.num_row_groups == 1
    assert set(whats[: whats.count("metric")]) == {"metric"} != set(whats)


def test_latency_counts_are_the_histograms_of_all_rounds(run: Path) -> None:
    data = read(run)
    together = ["phase", "op", "setting", "latency_ns"]
    expected = data.histograms(workload="both").filter(job="all").group_by(together).agg(pl.col("count").sum())
    found = data.latency_counts("both")
    assert found["latency_ns"].is_sorted() and found.height
    assert found.sort(together).equals(expected.sort(together).select(found.columns))


def test_the_record_comes_back_less_its_series(run: Path) -> None:
    record = read(run).record(2)
    assert record.spec == plan.trials(experiment(), 1, seed=7)[2]
    job = record.phases[0]["groups"][0]["jobs"][0]
    assert job["intervals"] == []
    assert job["read"]["latency"]["histogram"] == []
    assert job["read"]["latency"]["max_ns"] == 410_000
    with pytest.raises(InputError, match="there is no trial 99"):
        read(run).record(99)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:200]), "truncated or changed: 200 bytes"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"PAR1", b"PAR2")), "corrupt"),
        (lambda path: path.unlink(), "missing, though the trial finished by the journal"),
    ],
)
def test_a_damaged_file_is_named_and_the_rest_is_read(run: Path, damage: object, says: str) -> None:
    whole = read(run).metrics
    damage(run / "trials" / "000005.parquet")  # type: ignore[operator]
    data = read(run)
    (problem,) = data.problems
    assert problem.startswith(f"trials/000005.parquet: {says}")
    assert data.metrics.equals(whole.filter(pl.col("trial") != 5))
    assert 5 not in data.trials["trial"]
    assert 5 not in data.histograms()["trial"]


def test_a_run_without_any_trial_reads_as_empty_frames(run: Path) -> None:
    shutil.rmtree(run / "trials")
    (run / "journal.jsonl").write_bytes((run / "journal.jsonl").read_bytes().splitlines(keepends=True)[0])
    data = read(run)
    for frame in (data.trials, data.metrics, data.histograms(), data.intervals(), data.remarks(), data.job_metrics()):
        assert frame.height == 0
        assert "trial" in frame.columns
    assert data.wide().height == 0
    assert data.keys == []


def test_a_run_that_did_not_end_is_said_to_be_unfinished(run: Path) -> None:
    journal = run / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    assert not read(run).problems
    journal.write_text("".join(lines[:-1]))
    (problem,) = read(run).problems
    assert problem == f"unfinished, or still running: 8 of 8 trials; continue it: iolab run --resume {run}"
    started = next(number for number, line in enumerate(lines) if '"trial_started"' in line)
    journal.write_text("".join(lines[:started]))
    for file in sorted((run / "trials").iterdir())[1:]:
        file.unlink()
    shutil.rmtree(run / "index", ignore_errors=True)
    (problem,) = (one for one in read(run).problems if "unfinished" in one)
    (of_one,) = read(run).trials["setting"].to_list()
    other = {"plain", "pinned"} - {of_one}
    assert f"still running: 1 of 8 trials, none under {', '.join(other)}; continue" in problem


def test_damaged_description_and_journal_are_problems_not_errors(run: Path) -> None:
    whole = read(run).metrics
    (run / "machine.json").write_text("{")
    (run / "journal.jsonl").write_bytes(b"\x00" * 100 + b"\n")
    data = read(run)
    assert data.metrics.equals(whole)
    assert data.machine == {}
    problems = "\n".join(data.problems)
    assert "machine.json: can't be read" in problems
    assert "journal.jsonl:1: not a journal entry" in problems
    assert "does not record how the run was started" in problems


def test_what_is_no_run_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is not a run"):
        read(tmp_path)


class TestIndex:
    """Blocks of four trials instead of 256."""

    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(index, "TRIALS_PER_FILE", 4)

    def test_it_changes_nothing_but_the_files_that_are_opened(self, run: Path) -> None:
        data = read(run)
        assert len(data.found.index_files) == 2
        assert data.found.trial_files == []
        assert data.metrics.height > 0
        shutil.rmtree(run / "index")
        without = read(run)
        assert without.found.index_files == []
        assert without.metrics.equals(data.metrics)
        assert without.problems == data.problems == []

    def test_a_damaged_or_stale_one_is_passed_over(self, run: Path) -> None:
        whole = read(run).metrics
        first, second = sorted((run / "index").glob("*.parquet"))
        first.write_bytes(first.read_bytes()[:100])
        shutil.copy(first, run / "index" / "000008.parquet")
        data = read(run)
        assert data.found.index_files == [second]
        assert data.metrics.equals(whole)
        shutil.copy(second, first)
        assert read(run).metrics.equals(whole)

    def test_a_trial_file_that_changed_since_is_found_out(self, run: Path) -> None:
        path = run / "trials" / "000001.parquet"
        content = bytearray(path.read_bytes())
        content[40] ^= 0xFF
        path.write_bytes(content)
        data = read(run)
        assert data.problems == ["trials/000001.parquet: corrupt: not the bytes that were written; left out"]
        assert set(data.metrics["trial"]) == {0, 2, 3, 4, 5, 6, 7}

    def test_a_trial_that_was_run_again_makes_it_anew(self, tmp_path: Path) -> None:
        failing = FakeExecutor(status_of=lambda trial: "failed" if trial.trial == 2 else "ok")
        running.run(experiment(), tmp_path / "run", executor=failing, progress=SilentDisplay(), machine={})
        before = (tmp_path / "run" / "index" / "000000.parquet").read_bytes()
        running.resume(tmp_path / "run", executor=FakeExecutor(), progress=SilentDisplay(), retry_failed=True)
        assert (tmp_path / "run" / "index" / "000000.parquet").read_bytes() != before
        data = read(tmp_path / "run")
        assert len(data.found.index_files) == 2
        assert data.values("iops", "reads").null_count().to_numpy().sum() == 0


def test_default_paths_are_new_and_named_after_the_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("iolab.files.store.directory.time.gmtime", lambda: (2026, 1, 2, 3, 4, 5, 0, 0, 0))
    path = default_path("Does idling, on the group, keep ... fairness and throughput?")
    assert path == Path("iolab-runs/20260102T030405Z-does-idling-on-the-group-keep-fairness-a")
    path.mkdir(parents=True)
    assert default_path("Does idling, on the group, keep fairness and throughput?").name.endswith("-2")
    assert default_path("???") == Path("iolab-runs/20260102T030405Z")


def test_the_experiment_is_kept_byte_for_byte(tmp_path: Path) -> None:
    text = EXPERIMENT.replace("\n", "\r\n") + "# no newline at the end, ü"
    running.run(experiment(text), tmp_path / "run", executor=FakeExecutor(), progress=SilentDisplay(), machine={})
    assert RunDirectory.open(tmp_path / "run").experiment_file.read_bytes() == text.encode()
    assert read(tmp_path / "run").experiment.title == "Which is it?"


def documented(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(), re.S)


@pytest.mark.parametrize("program", documented("python"), ids=lambda text: text.splitlines()[0])
def test_the_documented_ways_to_read_work(run: Path, program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], cwd=run.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_documented_columns_are_the_files_columns(run: Path) -> None:
    table = DOCUMENT.read_text().split("## The table of a trial")[1].split("\n## ")[0]
    documented_columns = re.findall(r"^\| `(\w+)` \|", table, re.M)
    frame = pl.read_parquet(run / "trials" / "000000.parquet")
    assert documented_columns == frame.columns
