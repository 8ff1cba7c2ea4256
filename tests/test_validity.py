"""What casts doubt on a trial's numbers: found in its record, told near the conclusion, only where it applies."""

import math
from pathlib import Path
from typing import Any

import pytest
from conftest import CommandLine
from fake_machine import FakeExecutor, SilentDisplay
from iolab.domain import metric
from iolab.domain.record import Record
from iolab.domain.summary import summarise
from iolab.domain.trial import Trial
from iolab.domain.validity import DOUBTS, doubts
from iolab.files.experiment import loads
from iolab.files.store import RunData, read
from iolab.machines.host import conditions
from iolab.studies import run as running
from iolab.studies.run.plan import trials

EXPERIMENT = """\
rounds = 1
seed = 1
[target]
kind = "directory"
path = "."
[workloads.reads]
{options}
file_size = "1MiB"
duration = "1s"
"""
BUFFERED = 'direct = false\npattern = "sequential"'


WRITTEN = BUFFERED + "\nread_percent = 0"


def measured(options: str = BUFFERED, *, read_bytes: int = 2**19, served: float = 1.0, **changes: Any) -> Record:
    """A trial with one job that read or wrote so much, and did that share of 1,000 operations per second; `changes` are
    of the measured phase's record."""
    trial = trials(loads(EXPERIMENT.format(options=options), "experiment.toml"), 1, seed=1)[0]
    record = FakeExecutor().run(trial, on_progress=lambda _: None, should_stop=lambda: False)
    assert isinstance(record, Record)
    done = record.phases[-1]
    done["transient"] = None
    for group in done["groups"]:
        group |= {"cpu_user_ns": 0, "cpu_system_ns": 0}
        for job in group["jobs"]:
            job["read"]["bytes"] = 0 if options == WRITTEN else read_bytes
            job["write"]["bytes"] = read_bytes - job["read"]["bytes"]
            job["write"]["count"] = 0
            job["read"]["count"] = round(served * (done["measured_to_ns"] - done["measured_from_ns"]) / 1e6)
    done |= {"conditions": {"process_read_bytes": read_bytes}, **changes}
    return record


def test_nothing_is_said_of_a_sound_trial() -> None:
    assert doubts(measured()) == {}


@pytest.mark.parametrize(
    ("code", "value", "options", "changes"),
    [
        ("no_io", 1.0, 'engine = "null"', {}),
        ("page_cache", 1.0, BUFFERED, {"conditions": {"process_read_bytes": 0}}),
        ("wrapped", 3.0, BUFFERED, {"read_bytes": 3 * 2**20}),
        ("no_steady_state", 1.0, BUFFERED, {"transient": {"cut_ns": 0, "steady": False}}),
        ("steal", 0.2, BUFFERED, {"conditions": {"steal_share": 0.2}}),
        ("cpu_quota", 1.0, BUFFERED, {"conditions": {"cpu_throttled_s": 1e6}}),
        ("unserved", 0.9, BUFFERED + "\nrate_iops = 1000", {"served": 0.1}),
        ("written_to_memory", 0.75, WRITTEN, {"conditions": {"written_back_bytes": 2**17}}),
        ("thermal", 7.0, BUFFERED, {"conditions": {"thermal_throttles": 7}}),
    ],
)
def test_each_doubt_is_found_alone(code: str, value: float, options: str, changes: dict[str, Any]) -> None:
    found = doubts(measured(options, **changes))
    assert list(found) == [code] and math.isclose(found[code], value)
    assert code in DOUBTS


@pytest.mark.parametrize(
    ("served", "spacing", "value"),
    [(1.0, "constant", None), (0.99, "constant", None), (0.95, "constant", 0.05), (0.9, "poisson", None)],
)
def test_an_open_loop_is_doubted_if_more_is_unserved_than_chance_leaves(
    served: float, spacing: str, value: float | None
) -> None:
    """A thousand Poisson arrivals have a standard deviation of 32: 900 are not yet four of them below."""
    options = f"{BUFFERED}\nrate_iops = 1000\nspacing = '{spacing}'"
    found = doubts(measured(options, served=served, measured_from_ns=0, measured_to_ns=10**9))
    assert found.get("unserved") == (None if value is None else pytest.approx(value))


def test_polling_that_was_refused_is_told() -> None:
    record = measured("direct = true\npoll = true")
    assert doubts(record) == {}
    record.phases[-1]["groups"][0]["notes"] = ["polled completion refused: queue/io_poll is 0; waiting for interrupts"]
    assert doubts(record) == {"not_polled": 1.0}


def test_writes_that_were_written_back_or_went_past_the_page_cache_are_not_doubted() -> None:
    assert doubts(measured(WRITTEN, conditions={"written_back_bytes": 2**19})) == {}
    assert doubts(measured("direct = true\nread_percent = 0", conditions={"written_back_bytes": 0})) == {}


OVERLOAD = """\
rounds = 6
seed = 1
machine = "model:one_disk"
[workloads.w]
file_size = "64MiB"
rate_iops = 2000
duration = "400ms"
cut_transient = false
[settings.a]
[settings.b]
workload = { rate_iops = 10000 }
[settings.slow]
workload = { rate_iops = 20 }
"""


def test_latencies_of_two_overloaded_open_loops_are_not_judged(iolab: CommandLine) -> None:
    iolab.write("over.toml", OVERLOAD)
    shown = iolab("run", "over.toml", "--out", "over").stdout.splitlines()
    assert next(line for line in shown if line.startswith("! ")).startswith("! an open loop was served as little as")
    judged = {(one["metric"], one["setting"]): one for one in iolab("show", "over", "--json").json()["comparisons"]}
    assert judged["latency_ns_mean", "b"]["verdict"] == "undecided"
    assert judged["latency_ns_mean", "b"]["why"].startswith("not judged: open loops asked for more")
    assert judged["latency_ns_mean", "slow"]["verdict"] == "faster", "it kept up, whatever the other did"
    assert "over 200 more" not in "".join(shown)


@pytest.mark.parametrize(
    ("unsteady", "why"),
    [
        (
            [0, 0, 0, 0, 0, 1],
            "noise, with 1 of 12 trials counting a start that others cut: the change of one round varies by",
        ),
        ([1] * 6, "noise: the change of one round varies by"),
        ([0] * 6, "noise: the change of one round varies by"),
    ],
)
def test_noise_is_told_with_the_trials_whose_start_was_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unsteady: list[int], why: str
) -> None:
    text = EXPERIMENT.replace("rounds = 1", "rounds = 6").format(options=BUFFERED) + "[settings.a]\n[settings.b]\n"
    speeds = {"b": 1.0}

    def vary(trial: Trial) -> None:
        speeds["b"] = [0.8, 1.3, 0.7, 1.2, 0.9, 1.1][trial.round]

    noisy = FakeExecutor(faster=speeds, before=vary)
    running.run(loads(text, "e.toml"), tmp_path / "run", executor=noisy, progress=SilentDisplay(), machine={})
    unsteady_ones = [("a", min(unsteady))] * 6 + [("b", one) for one in unsteady]
    found = [("reads", setting, {"no_steady_state": 1.0} if one else {}) for setting, one in unsteady_ones]
    monkeypatch.setattr(RunData, "doubts", property(lambda _: found))
    comparisons = summarise(read(tmp_path / "run")).comparisons
    assert str(comparisons[0].judgement.why).startswith(why)


def test_a_busy_thread_of_the_generator_is_found() -> None:
    record = measured()
    done = record.phases[-1]
    done["groups"][0]["cpu_user_ns"] = done["measured_to_ns"] - done["measured_from_ns"]
    assert doubts(record) == {"generator_cpu": 1.0}
    done["probes"] = {"instructions": counts()}  # a guest's count: the processor is what was asked
    assert doubts(record) == {}


def counts(**changes: Any) -> dict[str, Any]:
    """The counts of ten operations of a guest machine."""
    told = {"symbols": ["submit", "memcpy_orig"], "instructions": [990, 10], "string_bytes": [0, 40]}
    return {"operations": 10, "total": 1500, "user": 500, **told, **changes}


def test_copies_of_a_guest_are_told_as_bytes_and_as_the_code_that_the_processor_decides_about() -> None:
    def found(**changes: Any) -> dict[str, float]:
        return doubts(measured(probes={"instructions": counts(**changes)}))

    assert found() == {}
    assert found(string_bytes=[0, 40960]) == {"string_bytes": 4096.0}
    assert found(instructions=[500, 500]) == {"copied": 0.5}


def test_what_a_guest_counts_in_instructions_is_told_in_no_time() -> None:
    def told(record: Record) -> float | None:
        return next(row.value for row in metric.rows(record) if row.metric == "cpu_ns_per_io")

    record = measured()
    assert told(record) is not None
    record.phases[-1]["probes"] = {"instructions": counts()}
    assert told(record) is None


def test_direct_reads_come_from_no_page_cache() -> None:
    assert doubts(measured("direct = true", read_bytes=2**30, conditions={"process_read_bytes": 0})) == {}


def test_reads_that_the_kernel_does_not_account_are_not_doubted() -> None:
    record = measured(conditions={"process_read_bytes": 0})
    record.observed["target"] = [{"filesystem": {"type": "9p"}}]
    assert doubts(record) == {}


def test_the_conditions_of_this_machine_are_numbers_in_their_ranges() -> None:
    with conditions.around() as seen:
        sum(range(100_000))
    assert 0 <= seen.get("steal_share", 0) <= 1
    assert all(value >= 0 for value in seen.values())


CACHED = """\
rounds = 1
target = { kind = "directory", path = "." }
[workloads.reads]
direct = false
drop_caches = false
pattern = "sequential"
file_size = "64KiB"
operations = 400
read_percent = 50
fsync_every = 100
"""


def test_doubts_stand_near_the_conclusion_and_in_json(iolab: CommandLine) -> None:
    experiment = iolab.write("cached.toml", CACHED)
    shown = iolab("run", experiment, "--out", "cached").stdout.splitlines()
    wrapped = next(number for number, line in enumerate(shown) if "times their files" in line)
    assert shown[wrapped].startswith("! ") and wrapped < shown.index("reads")
    assert any(line.startswith("sync latency mean") for line in shown), "fsync time is shown"
    assert any("No value of" in line and "p99: of fewer than 1,000" in line for line in shown), (
        "too few syncs for a p99"
    )
    said = iolab("show", "cached", "--json").json()["doubts"]
    assert any("times their files" in line for line in said)
    page = iolab("report", "cached", "--json").json()["report"]
    text = (iolab.cwd / page).read_text()
    assert text.index('id="verdicts"') < text.index("times their files") < text.index('id="table-heading"')


def test_a_pin_that_fails_ends_the_run_with_status_3(iolab: CommandLine) -> None:
    experiment = iolab.write("pinned.toml", CACHED + "cpus = [1000]\n")
    done = iolab("run", experiment, "--out", "pinned", status=3)
    assert "pinning to CPUs [1000] failed" in done.stderr and "iolab may run on" in done.stderr


def test_a_setting_whose_cpu_is_missing_is_named(iolab: CommandLine) -> None:
    iolab.write("set.toml", CACHED + "\n[settings.far]\ncpus = [1000]\n")
    iolab("run", "set.toml", "--out", "set", status=3).assert_one_clear_line(
        3, "settings.far: cpus: CPU 1000", "choose"
    )
