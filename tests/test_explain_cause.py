"""What moved first: eight planted causes on made-up numbers, the strength of a movement, the budget's conservation."""

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from iolab.domain.comparison import compare_table
from iolab.domain.control import CONTROLS
from iolab.domain.explain import Cause, causes
from iolab.domain.explain.budget import STAGES, stages_of
from iolab.domain.explain.change import Change, changes_within
from iolab.domain.explain.evidence import strength
from iolab.domain.explain.mechanism import (
    ANY_MECHANISM,
    FLOORS,
    LEADING_DERIVED,
    MECHANISMS,
    follows_from,
    mechanisms_of,
)
from iolab.domain.explain.place import Arms
from iolab.domain.metric import METRICS
from iolab.files.experiment import loads
from iolab.presentation.table.cause import chain, conclusion
from support.command_line import CommandLine

PLAIN = {
    "iops": 10_000.0,
    "ops": 5_000.0,
    "latency_ns_mean": 90e3,
    "application_ns_per_io": 10e3,
    "block_ns_per_io": 60e3,
    "queue_ns_per_io": 5e3,
    "scheduler_ns_per_io": 5e3,
    "device_ns_per_io": 50e3,
    "bios_per_io": 1.0,
    "requests_per_io": 1.0,
    "splits_per_io": 0.0,
    "bio_bytes_mean": 131072.0,
    "request_bytes_mean": 131072.0,
    "merged_percent": 0.0,
    "completions_remote_percent": 1.0,
    "queue_depth_mean": 0.5,
    "sequential_share": 0.9,
    "cpu_ns_per_io": 8e3,
    "cpu_wait_ns_per_io": 2e3,
    "cpu_user_s": 0.01,
    "cpu_system_s": 0.03,
    "context_switches_voluntary": 5_000.0,
    "context_switches_involuntary": 2.0,
    "extents_per_file_mean": 1.0,
    "extent_bytes_mean": 64 * 2.0**20,
    "cpu_steal_percent": 0.0,
}
"""One I/O of 128 KiB at a time, as one request."""

SMALL_REQUESTS = {
    "requests_per_io": 32.0,
    "request_bytes_mean": 4096.0,
    "latency_ns_mean": 900e3,
    "iops": 1_000.0,
    "cpu_ns_per_io": 80e3,
    "queue_depth_mean": 5.0,
    "block_ns_per_io": 6e6,
    "queue_ns_per_io": 2e6,
    "device_ns_per_io": 4e6,
}
"""What most causes have as their symptom."""

PLANTED: dict[str, dict[str, float]] = {
    # Read-ahead off: each page comes by itself.
    "gathering": {**SMALL_REQUESTS, "bios_per_io": 32.0, "bio_bytes_mean": 4096.0, "context_switches_voluntary": 160e3},
    # Merges off: the same bios, none merged.
    "merging": {**SMALL_REQUESTS, "merged_percent": 0.0},
    # Completion on another CPU.
    "placement": {
        "completions_remote_percent": 97.0,
        "latency_ns_mean": 150e3,
        "iops": 6_000.0,
        "cpu_ns_per_io": 12e3,
        "cpu_wait_ns_per_io": 10e3,
    },
    # Fragmentation: a bio ends where its extent does.
    "layout": {
        **SMALL_REQUESTS,
        "extents_per_file_mean": 16384.0,
        "extent_bytes_mean": 4096.0,
        "bios_per_io": 32.0,
        "bio_bytes_mean": 4096.0,
        "sequential_share": 0.1,
    },
    "switching": {
        "context_switches_voluntary": 100e3,
        "cpu_ns_per_io": 20e3,
        "latency_ns_mean": 130e3,
        "iops": 7_000.0,
        "context_switches_involuntary": 20.0,
    },
    # A limit of a control group: above the block layer, with no CPU time.
    "above": {"latency_ns_mean": 50e6, "iops": 20.0, "queue_depth_mean": 0.001, "cpu_ns_per_io": 20e3},
    # max_sectors_kb: the block layer splits.
    "request_size": {**SMALL_REQUESTS, "splits_per_io": 31.0},
    "contention": {
        "cpu_wait_ns_per_io": 900e3,
        "context_switches_involuntary": 300.0,
        "latency_ns_mean": 1.1e6,
        "iops": 900.0,
        "block_ns_per_io": 120e3,
        "device_ns_per_io": 110e3,
    },
}
"""By the mechanism that is to be named first, what it makes of the numbers."""


def frame_of(
    planted: dict[str, float], plain: dict[str, float], *, rounds: int = 6, noise: float = 0.15
) -> pl.DataFrame:
    """Settings `plain` and `planted`. Numbers of times and rates are noisy; those that count a structure are not."""
    source = np.random.default_rng(5)
    rows = []
    for number in range(rounds):
        for setting, values in (("plain", plain), ("planted", {**plain, **planted})):
            noisy = {
                name: value * (math.exp(source.normal(0, noise)) if name not in EXACT else 1.0)
                for name, value in values.items()
            }
            rows.append({"setting": setting, "round": number, **noisy})
    return pl.DataFrame(rows)


EXACT = {
    *(
        "bios_per_io",
        "requests_per_io",
        "splits_per_io",
        "bio_bytes_mean",
        "request_bytes_mean",
        "merged_percent",
        "ops",
    ),
    *("extents_per_file_mean", "extent_bytes_mean"),
}


def plain_for(mechanism: str) -> dict[str, float]:
    """Merging needs something to merge: bios of a page."""
    if mechanism == "merging":
        return {**PLAIN, "bios_per_io": 32.0, "bio_bytes_mean": 4096.0, "merged_percent": 96.9}
    return PLAIN


def cause_of(frame: pl.DataFrame, changes: list[Change] | None = None) -> Cause:
    results = compare_table(frame, "setting", "round", "plain", ["iops"])
    (one,) = causes(frame, results, {(None, "plain", "planted"): changes or []})
    return one


@pytest.mark.parametrize("mechanism", PLANTED)
def test_a_planted_cause_is_named_first_by_the_numbers_alone(mechanism: str) -> None:
    one = cause_of(frame_of(PLANTED[mechanism], plain_for(mechanism)))
    assert one.first is not None and one.first.mechanism.name == mechanism, one.as_dict()
    assert one.by_change == []


@pytest.mark.parametrize("mechanism", PLANTED)
def test_a_planted_cause_is_named_first_on_the_command_line(mechanism: str, iolab: CommandLine) -> None:
    frame_of(PLANTED[mechanism], plain_for(mechanism)).write_csv(iolab.cwd / "rounds.csv")
    told = json.loads(iolab("explain", "rounds.csv", "--metric", "iops", "--json").stdout)
    assert told["causes"][0]["first"]["name"] == mechanism
    shown = iolab("explain", "rounds.csv", "--metric", "iops").stdout
    assert MECHANISMS[mechanism].title in " ".join(shown.splitlines()[:4]) and "µs per I/O" in shown


def test_long_waits_for_a_cpu_are_named_where_few_long_waits_are_fewer_preemptions() -> None:
    """Who gets a slice now and then is preempted seldom, and so is who waits for other reasons."""
    one = cause_of(frame_of({**PLANTED["contention"], "context_switches_involuntary": 0.5}, PLAIN))
    assert one.first is not None and [moved.metric for moved in one.first.moved] == ["cpu_wait_ns_per_io"]
    one = cause_of(frame_of(PLANTED["contention"], PLAIN).drop("cpu_wait_ns_per_io"))
    assert one.first is not None and [moved.metric for moved in one.first.moved] == ["preemptions_per_cpu_s"]


def test_waits_for_a_cpu_that_are_a_small_part_of_an_io_s_time_are_no_cause() -> None:
    throttled = {**PLANTED["above"], "cpu_wait_ns_per_io": 200e3}
    one = cause_of(frame_of(throttled, PLAIN))
    assert one.first is not None and one.first.mechanism.name == "above"
    assert "contention" in [mechanism.name for mechanism in one.still]


def test_microseconds_of_cpu_time_do_not_account_for_milliseconds_of_waiting() -> None:
    """A few reads per second have cold caches: twelve times the CPU time each, and not what they wait for."""
    throttled = {**PLANTED["above"], "cpu_ns_per_io": 12 * PLAIN["cpu_ns_per_io"]}
    one = cause_of(frame_of(throttled, PLAIN))
    assert one.first is not None and one.first.mechanism.name == "above"


def test_numbers_that_did_not_move_name_nothing() -> None:
    assert cause_of(frame_of({}, PLAIN)).first is None


def test_a_changed_setting_comes_first_if_what_it_acts_on_moved() -> None:
    frame = frame_of(PLANTED["gathering"], PLAIN)
    one = cause_of(frame, [Change("max_sectors_kb", None, 4)])
    assert one.first is not None and one.first.mechanism.name == "request_size"
    assert [change.setting for change in one.by_change] == ["max_sectors_kb"]
    assert conclusion(one).startswith(
        "max_sectors_kb is 4 in planted, not set in plain: requests are 4.000 KiB instead of"
    )
    assert chain(one).startswith("max_sectors_kb → size of the requests → ")


def test_a_changed_setting_that_moved_nothing_is_not_blamed() -> None:
    one = cause_of(frame_of(PLANTED["layout"], PLAIN), [Change("rq_affinity", 1, 2)])
    assert one.first is not None and one.first.mechanism.name == "layout"
    assert one.by_change == [] and one.changes


def test_symptoms_follow_from_the_first() -> None:
    one = cause_of(frame_of(PLANTED["layout"], PLAIN))
    assert {"gathering", "request_size", "device"} <= {group.mechanism.name for group in one.symptoms}


def test_throttling_outside_the_block_layer_is_said() -> None:
    assert "a limit of a control group (io.max, blkio.throttle" in conclusion(
        cause_of(frame_of(PLANTED["above"], PLAIN))
    )


def test_a_fall_to_zero_has_a_strength_like_others() -> None:
    full, none = np.array([45e3, 46e3, 45.8e3, 44e3]), np.zeros(4)
    to_zero = strength(Arms(full, none))
    assert to_zero == pytest.approx(math.log(101))
    assert strength(Arms(none, full)) == pytest.approx(to_zero)
    assert strength(Arms(full, full / 50)) < to_zero
    assert strength(Arms(none, none)) == 0
    assert strength(Arms(full, full)) < 0.1
    assert strength(Arms(np.array([1e-5] * 4), np.array([1e-4] * 4)), floor=0.05) < 0.01


def test_overlapping_values_are_weaker_evidence() -> None:
    apart = strength(Arms(np.array([1.0, 2, 3]), np.array([4.0, 5, 6])))
    overlapping = strength(Arms(np.array([1.0, 2, 5]), np.array([4.0, 5, 6])))
    assert overlapping < apart


def arrays(**values: float) -> dict[str, np.ndarray]:
    return {name: np.array([value]) for name, value in values.items()}


NUMBERS = ("latency_ns_mean", "block_ns_per_io", "queue_ns_per_io", "scheduler_ns_per_io", "device_ns_per_io")


@pytest.mark.parametrize(
    ("latency", "block", "queue", "scheduler", "device", "bios", "requests", "unknown"),
    [
        (100.0, 80.0, 10.0, 20.0, 50.0, 1.0, 1.0, 0.0),  # one request per I/O
        (100.0, 80.0, 1.0, 0.0, 1.5, 1.0, 1 / 32, 0.0),  # 32 merged into one
        (100.0, 800.0, 200.0, 100.0, 500.0, 8.0, 8.0, 0.0),  # eight side by side
        (100.0, 80.0, 10.0, 10.0, 40.0, 1.0, 1.0, 20.0),  # a quarter of the bios' time is nowhere
        (100.0, 800.0, 100.0, 100.0, 600.0, 0.01, 0.01, 100.0),  # write-back: nobody waits
        (100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),  # from the page cache
        (100.0, 60.0, 20.0, 20.0, 40.0, 1.0, 2.0, 0.0),  # requests without bios: flushes
    ],
)
def test_the_stages_add_up_to_the_latency(
    latency: float,
    block: float,
    queue: float,
    scheduler: float,
    device: float,
    bios: float,
    requests: float,
    unknown: float,
) -> None:
    numbers = dict(zip(NUMBERS, (latency, block, queue, scheduler, device), strict=True))
    stages = stages_of(arrays(**numbers, bios_per_io=bios, requests_per_io=requests, application_ns_per_io=7.0))
    assert set(stages) == set(STAGES)
    assert sum(float(one[0]) for one in stages.values()) == pytest.approx(latency + 7)
    assert float(stages["unknown"][0]) == pytest.approx(unknown, abs=1e-9)
    assert all(float(one[0]) >= -1e-9 for one in stages.values())


def test_an_open_loop_has_no_application_stage() -> None:
    frame = frame_of(PLANTED["above"], PLAIN).drop("application_ns_per_io")
    found = cause_of(frame).budget
    assert found is not None and "application" not in found.stages
    assert found.totals[0] == pytest.approx(found.latency[0])


def test_every_control_acts_on_some_mechanism() -> None:
    assert [name for name in CONTROLS if not mechanisms_of(name)] == []
    known = {*CONTROLS, *ANY_MECHANISM}
    named = {name for one in MECHANISMS.values() for name in one.settings if "." not in name}
    assert named <= known


def test_the_mechanisms_are_in_causal_order_and_of_known_metrics() -> None:
    assert {further for one in MECHANISMS.values() for further in one.leads_to} <= MECHANISMS.keys()
    assert not [name for name in MECHANISMS if follows_from(name, name)]
    leading = {name for one in MECHANISMS.values() for name in one.leading + one.leading_if_set}
    assert leading <= {*METRICS, *LEADING_DERIVED} and FLOORS.keys() <= leading
    page = (Path(__file__).parents[1] / "docs" / "why.md").read_text()
    for one in MECHANISMS.values():
        assert f"| {one.title} |" in page and all(f"`{name}`" in page for name in one.settings)


def test_a_changed_queue_depth_is_named_without_a_probe() -> None:
    deeper = {"iops": 40_000.0, "latency_ns_mean": 360e3, "context_switches_voluntary": 400.0}
    bare = {name: PLAIN[name] for name in ("iops", "ops", "latency_ns_mean", "cpu_ns_per_io", *deeper)}
    one = cause_of(frame_of(deeper, bare), [Change("workload.queue_depth", 1, 16)])
    assert one.first is not None and one.first.mechanism.name == "depth"
    assert "I/Os are in flight at a time instead of" in conclusion(one)


def test_a_changed_setting_whose_effect_no_probe_saw_is_named_before_what_moved() -> None:
    """A limit of a control group, without the block probe: more switches and CPU time per I/O follow from it."""
    limited = {"iops": 500.0, "latency_ns_mean": 16e6, "context_switches_voluntary": 12_000.0, "cpu_ns_per_io": 16e3}
    bare = {name: PLAIN[name] for name in ("ops", *limited)}
    one = cause_of(frame_of(limited, bare), [Change("io_max", None, {"read_iops": 500})])
    assert one.by_change == [] and [mechanism.name for mechanism in one.unobserved] == ["above"]
    said = conclusion(one)
    assert said.startswith("io_max is read_iops = 500 in planted, not set in plain: no probe measured what this")
    assert "waiting above the block layer (probe block)" in said and "which may be an effect of the change" in said


def test_instructions_of_a_cipher_are_no_competition_for_cpus() -> None:
    """A layer that encrypts: a thread of its own waits once per I/O, and the kernel works fifty times as long."""
    plain = {
        **PLAIN,
        "kernel_instructions_per_op": 5_000.0,
        "context_switches_voluntary": 0.0,
        "cpu_wait_ns_per_io": 0.0,
    }
    crypt = {
        "kernel_instructions_per_op": 263_000.0,
        "context_switches_voluntary": 5_000.0,
        "cpu_wait_ns_per_io": 2_200.0,
    }
    layers = Change("layers", [], [{"kind": "crypt", "cipher": "aes-xts-plain64"}])
    one = cause_of(frame_of({**crypt, "iops": 900.0}, plain), [layers])
    assert chain(one) == "layers → kernel instructions per operation → context switches"
    assert conclusion(one).startswith("layers is crypt, cipher = aes-xts-plain64 in planted, none in plain: ")


def test_time_stolen_beside_a_background_load_is_not_named_first() -> None:
    stolen = {"cpu_steal_percent": 11.0, "iops": 8_000.0, "latency_ns_mean": 110e3}
    alone = cause_of(frame_of(stolen, PLAIN))
    assert alone.first is not None and alone.first.mechanism.name == "steal"
    one = cause_of(frame_of(stolen, PLAIN), [Change("background", None, "dd if=a of=b")])
    assert one.first is None or one.first.mechanism.name != "steal"
    assert "steal" in [moved.mechanism.name for moved in one.moved]


@pytest.mark.parametrize(
    ("settings", "key", "values"),
    [
        ("[settings.a]\nlayers = []\n[settings.b]\n", "layers", ([], [{"kind": "crypt"}])),
        (
            "[settings.a]\n[settings.b]\nlayers.0.sector_size = 4096\n",
            "layers",
            ([{"kind": "crypt"}], [{"kind": "crypt", "sector_size": 4096}]),
        ),
        ('[settings.a]\n[settings.b]\nfilesystem = "xfs"\n', "filesystem", ("ext4", "xfs")),
    ],
)
def test_what_one_setting_changes_of_the_target_the_other_has_of_it(
    settings: str, key: str, values: tuple[object, object]
) -> None:
    target = '[target]\nkind = "scratch"\nsize = "64MiB"\nfilesystem = "ext4"\nlayers = [{ kind = "crypt" }]\n'
    experiment = loads(target + '[workloads.w]\noperations = 9\nfile_size = "1MiB"\n' + settings, "x.toml")
    (change,) = changes_within(experiment, "w", "a", "b")
    assert (change.setting, change.baseline, change.candidate) == (key, *values)


def test_a_limit_of_a_group_is_named_without_a_probe() -> None:
    text = (
        '[target]\nkind = "scratch"\nsize = "64MiB"\n[workloads.m]\nkind = "mix"\nduration = "1s"\n'
        '[workloads.m.groups.web]\n[workloads.m.jobs.one]\ngroup = "web"\nfile_size = "1MiB"\n'
        "[settings.plain]\n[settings.planted]\n"
        "workload = { groups = { web = { io_max = { write_iops = 300 } } } }\n"
    )
    (change,) = changes_within(loads(text, "x.toml"), "m", "plain", "planted")
    assert change.setting == "workload.groups.web.io_max"
    bare = {name: PLAIN[name] for name in ("iops", "ops")}
    one = cause_of(frame_of({"iops": 300.0}, bare), [change])
    assert one.first is None
    assert conclusion(one).startswith("workload.groups.web.io_max is write_iops = 300 in planted, not set in plain: ")
