"""What casts doubt on a trial's numbers: found in its record, told near the conclusion, only where it applies."""

import math
from typing import Any

import pytest
from conftest import CommandLine
from fake_machine import FakeExecutor
from iolab.domain import metric
from iolab.domain.record import Record
from iolab.domain.validity import DOUBTS, doubts
from iolab.files.experiment import loads
from iolab.machines.host import conditions
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


def measured(options: str = BUFFERED, *, read_bytes: int = 2**19, **changes: Any) -> Record:
    """A trial with one job that read so much; `changes` are of the measured phase's record."""
    trial = trials(loads(EXPERIMENT.format(options=options), "experiment.toml"), 1, seed=1)[0]
    record = FakeExecutor().run(trial, on_progress=lambda _: None, should_stop=lambda: False)
    assert isinstance(record, Record)
    done = record.phases[-1]
    done["transient"] = None
    for group in done["groups"]:
        group |= {"cpu_user_ns": 0, "cpu_system_ns": 0}
        for job in group["jobs"]:
            job["read"]["bytes"] = read_bytes
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
        ("thermal", 7.0, BUFFERED, {"conditions": {"thermal_throttles": 7}}),
    ],
)
def test_each_doubt_is_found_alone(code: str, value: float, options: str, changes: dict[str, Any]) -> None:
    found = doubts(measured(options, **changes))
    assert list(found) == [code] and math.isclose(found[code], value)
    assert code in DOUBTS


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
