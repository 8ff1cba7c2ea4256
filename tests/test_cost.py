"""What `iolab cost` makes of counts: intervals, verdicts, conditions, the report. The counts were stored by the command
that tests/golden/cost/null-read.json names."""

import json
import math
import re
import shlex
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.domain.cost.gate import gate
from iolab.domain.cost.hits import hits, representatives
from iolab.domain.cost.measure import MEASURES, Change, paired_change
from iolab.domain.cost.path_cost import PathCost, path_cost
from iolab.domain.cost.report import CostReport, KernelVersion, PatchCost, functions_of
from iolab.domain.cost.unseen import Circumstances
from iolab.domain.phase_record import InstructionsObservation
from iolab.presentation.cli.cost import exit_if_met
from iolab.presentation.table import cost as table
from iolab.studies.cost.paths import WORKLOAD, chosen, circumstances, experiment_of, suite, text_of
from support.command_line import CommandLine

STORED = Path(__file__).parent / "golden" / "cost" / "null-read.json"
NULL = Circumstances("null_blk")
OPERATIONS = 1000


def counts(user: int = 100, string_bytes: int = 0, **functions: float) -> InstructionsObservation:
    """A round in which each operation takes so many instructions of each function."""
    amounts = [round(OPERATIONS * amount) for amount in functions.values()]
    found: dict[str, Any] = {
        "operations": OPERATIONS,
        "user": OPERATIONS * user,
        "total": sum(amounts) + OPERATIONS * user,
        "contexts": {},
        "symbols": list(functions),
        "modules": [""] * len(functions),
        "instructions": amounts,
        "calls": [OPERATIONS] * len(functions),
        "string_bytes": [OPERATIONS * string_bytes] * len(functions),
    }
    return cast(InstructionsObservation, found)


def stored() -> dict[str, list[InstructionsObservation]]:
    found: dict[str, list[InstructionsObservation]] = json.loads(STORED.read_text())
    return found


def cost_of(
    base: list[InstructionsObservation], tip: list[InstructionsObservation], name: str = "null-read"
) -> PathCost:
    return path_cost(name, "reads", NULL, base, tip)


def test_the_interval_is_students_of_the_rounds_differences() -> None:
    change = paired_change([100.0, 110.0, 120.0], [101.0, 113.0, 122.0])
    assert (change.base, change.tip, change.difference) == (110.0, 112.0, 2.0)
    # The quantile of two degrees of freedom is 4.303, the differences' standard deviation 1.
    assert change.half_width == pytest.approx(4.30265 / math.sqrt(3), rel=1e-5)
    assert not change.differs
    assert change.share == pytest.approx(2 / 110)


def test_one_round_has_no_interval_and_claims_nothing() -> None:
    change = paired_change([100.0], [200.0])
    assert change.half_width is None and not change.differs
    assert change.as_dict()["low"] is None


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=20), st.floats(-1e6, 1e6))
def test_what_all_rounds_share_is_the_difference_whatever_their_levels(base: list[float], by: float) -> None:
    change = paired_change(base, [value + by for value in base])
    assert change.difference == pytest.approx(by, abs=1e-3)
    assert change.half_width is not None and change.half_width < 1e-2


def test_an_amount_of_nothing_has_no_share() -> None:
    assert Change(0.0, 2.0, 0.0).share is None


def test_a_planted_cost_is_more_and_has_its_function() -> None:
    base = [counts(submit=2000, complete=1000 + noise) for noise in (0, 0.2, 0.1)]
    tip = [counts(submit=2050, complete=1000 + noise) for noise in (0, 0.2, 0.1)]
    found = cost_of(base, tip)
    assert found.outcome == "more"
    assert [(one.symbol, one.change) for one in found.functions] == [("submit", 50.0)]
    assert found.changes["kernel"].difference == pytest.approx(50)
    assert found.changes["user"].difference == 0
    assert cost_of(tip, base).outcome == "less"


def test_the_same_counts_are_the_same_and_noise_is_unclear() -> None:
    same = [counts(submit=2000), counts(submit=2000.5), counts(submit=2001)]
    assert cost_of(same, same).outcome == "same"
    assert cost_of(same, same).functions == []
    noisy = [counts(submit=2000 + noise) for noise in (-300, 250, 40)]
    found = cost_of(same, noisy)
    assert found.outcome == "unclear"
    assert found.functions == []


def test_what_repeats_is_certain_beside_what_varies() -> None:
    """Two levels of the workers of each side, and three instructions less of a name's look-up."""
    base = [counts(workers=workers, lookup=200) for workers in (50_000, 51_000, 50_400)]
    tip = [counts(workers=workers, lookup=197) for workers in (51_100, 49_800, 50_900)]
    found = cost_of(base, tip)
    assert (found.outcome, found.of_repeatable) == ("unclear", "less")
    change = found.changes["repeatable"]
    assert (change.base, change.tip) == (200, 197)
    assert found.as_dict()["of_repeatable"] == "less"
    assert cost_of(tip, base).of_repeatable == "more"
    assert gate("repeatable > 2", memory=False).holds(cost_of(tip, base))
    assert not gate("repeatable > 2", memory=False).holds(found)
    unchanged = cost_of(base, base[1:] + base[:1])
    assert (unchanged.outcome, unchanged.of_repeatable) == ("unclear", "same")
    assert "No function whose count repeats changed on 1 of these." in report([unchanged]).conclusion


def test_less_than_a_tenth_of_a_percent_is_certain_if_it_repeats() -> None:
    found = cost_of([counts(submit=4000)] * 2, [counts(submit=3999.3)] * 2)
    assert (found.outcome, found.of_repeatable) == ("same", "less")
    of_total = cost_of([counts(submit=4000)] * 2, [counts(submit=3900)] * 2)
    assert (of_total.outcome, of_total.of_repeatable) == ("less", None), "what holds for all is said of all"


@pytest.mark.parametrize("calls", [(0, 0), (19, 19), (100, 200), (249, 200)])
def test_what_runs_seldom_or_at_other_times_does_not_repeat(calls: tuple[int, int]) -> None:
    base, tip = [counts(submit=2000, timer=2)] * 2, [counts(submit=2000, timer=4)] * 2
    for side, number in zip((base, tip), calls, strict=True):
        for one in side:
            one["calls"] = [OPERATIONS, number]
    assert cost_of(base, tip).of_repeatable is None


def test_a_function_of_one_in_32_operations_is_judged_by_its_calls() -> None:
    """As the flush of a plug, 4 instructions shorter; and the same of one whose calls differ from boot to boot."""
    base, tip = (
        [counts(submit=submit, flush=amount, walk=amount + more) for submit, more in ((2000, 0), (2600, 1))]
        for amount in (3.0, 2.875)
    )
    for one in (*base, *tip):
        one["calls"] = [OPERATIONS, 31, 31]
    found = cost_of(base, tip)
    assert found.of_repeatable == "less"
    assert found.changes["repeatable"].difference == pytest.approx(-0.125)


def test_a_function_that_may_be_in_one_that_varies_makes_no_statement() -> None:
    """`inlined` is called no more, and `workers` has two levels: nobody knows what became of it."""
    base = [counts(workers=workers, inlined=40) for workers in (50_000, 51_000)]
    tip = [counts(workers=workers) for workers in (51_100, 49_800)]
    assert "repeatable" not in cost_of(base, tip).changes
    regained = [counts(workers=workers, lookup=35) for workers in (51_100, 49_800)]
    base = [counts(workers=workers, inlined=40, lookup=0) for workers in (50_000, 51_000)]
    assert cost_of(base, regained).of_repeatable == "less"


def test_where_a_freed_object_lies_is_no_change_of_the_function() -> None:
    base = [counts(kmem_cache_free=60.0, submit_bio=5000.0) for _ in range(3)]
    for observation in base:
        observation["calls"][0] = 3 * OPERATIONS
    elsewhere, patched = deepcopy(base), deepcopy(base)
    for moved, longer in zip(elsewhere, patched, strict=True):
        moved["instructions"][0] += 1500
        longer["instructions"][0] += 3000
    assert cost_of(base, elsewhere).functions == [] and cost_of(base, elsewhere).of_repeatable is None
    assert [one.symbol for one in cost_of(base, patched).functions] == ["kmem_cache_free"]
    assert cost_of(base, patched).changes["repeatable"].difference == pytest.approx(3.0)


def test_a_change_that_layout_makes_is_none() -> None:
    base = [counts(submit=80_000), counts(submit=80_000)]
    tip = [counts(submit=80_001.5), counts(submit=80_001.5)]
    assert cost_of(base, tip).outcome == "same"


def test_stored_counts_of_two_kernels_add_up() -> None:
    sides = stored()
    found = cost_of(sides["base"], sides["tip"])
    assert found.outcome == "more"
    changes = found.changes
    assert changes["instructions"].difference == pytest.approx(
        changes["kernel"].difference + changes["user"].difference, abs=1e-6
    )
    assert changes["kernel"].share == pytest.approx(0.0855, abs=5e-4)
    assert "gup_fast_fallback" in {one.symbol for one in found.functions}
    assert any("copied" in line for line in found.unseen)
    assert cost_of(sides["base"], sides["base"]).outcome == "same"


def test_allocations_are_counted_under_the_names_of_either_kernel() -> None:
    old, new = counts(kmem_cache_alloc=10, kfree=5), counts(kmem_cache_alloc_noprof=10, __kmalloc_noprof=3, kfree=5)
    changes = cost_of([old, old], [new, new]).changes
    assert (changes["allocations"].base, changes["allocations"].tip) == (1.0, 2.0)
    assert changes["frees"].difference == 0


def test_what_was_not_counted_in_every_round_is_left_out() -> None:
    half = counts(submit=10)
    del half["string_bytes"]
    assert "string_bytes" not in cost_of([half, half], [counts(submit=10), counts(submit=10)]).changes


@pytest.mark.parametrize(
    ("how", "word"),
    [
        (Circumstances("nvme"), "10 us after"),
        (Circumstances("virtio-blk"), "10 us after"),
        (Circumstances("null_blk", threads=32), "take turns"),
        (Circumstances("null_blk", polls=True), "first polled"),
    ],
)
def test_each_circumstance_states_what_its_counts_cannot_see(how: Circumstances, word: str) -> None:
    rounds = [counts(submit=10)] * 2
    assert [word in line for line in path_cost("p", "t", how, rounds, rounds).unseen] == [True]
    assert path_cost("p", "t", NULL, rounds, rounds).unseen == []


def test_changed_locks_and_copies_are_named_as_what_counts_cannot_see() -> None:
    base, tip = [counts(mutex_lock=10)] * 2, [counts(mutex_lock=30)] * 2
    assert any("lock" in line for line in cost_of(base, tip).unseen)
    copying = [counts(submit=10, string_bytes=4096)] * 2
    assert any("copied" in line for line in cost_of(copying, copying).unseen)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("instructions > +2 %", True),
        ("instructions > 2.5%", False),
        ("instructions>40", True),
        ("instructions > 50", False),
        ("instructions < 0", False),
        ("kernel > 0", True),
        ("user > 0", False),
        ("switches > 0 %", False),
    ],
)
def test_a_condition_holds_if_the_whole_interval_lies_beyond(text: str, holds: bool) -> None:
    found = cost_of([counts(submit=2000)] * 2, [counts(submit=2050)] * 2)
    assert gate(text, memory=False).holds(found) is holds
    assert not gate(text, memory=False).holds(PathCost("p", "t", why="it did not boot"))


def test_a_share_of_nothing_is_passed_by_any_amount() -> None:
    path = PathCost("p", "t", 2, {"switches": Change(0.0, 0.5, 0.1)})
    assert gate("switches > 900 %", memory=False).holds(path)
    assert not gate("switches > 900 %", memory=False).holds(PathCost("p", "t", 2, {"switches": Change(0.0, 0.0, 0.0)}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("instructions", "is no condition"),
        ("instructions >= 5", "is no condition"),
        ("instruction > 5", "did you mean instructions"),
        ("instructions > five", "is no condition"),
        ("reads > 0", "give --memory"),
    ],
)
def test_what_is_no_condition_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        gate(text, memory=False)


def test_a_path_is_hit_by_the_functions_that_a_file_defines() -> None:
    executed = {"reads": {"submit", "complete.cold"}, "creates": {"create"}}
    defined = {"block/a.c": {"complete", "other"}, "fs/b.c": {"unused"}, "fs/c.c": set[str]()}
    assert hits(executed, defined) == {"reads": {"block/a.c": ["complete"]}}


def test_twelve_of_many_paths_run_what_all_do() -> None:
    """A rare function is run by one path alone, and each path runs more of the common ones than the one before."""
    common = [f"f{number}" for number in range(40)]
    found = {f"path-{number:02}": {"block/a.c": common[: number + 1]} for number in range(39)}
    found["rare"] = {"block/b.c": ["seldom"]}
    taken = representatives(found, 12)
    assert taken == [*(f"path-{number}" for number in range(28, 39)), "rare"]
    assert representatives(found, 40) == sorted(found)
    assert representatives({}, 12) == []


@given(
    st.dictionaries(st.text("abcdef", min_size=1), st.sets(st.integers(0, 9), min_size=1), max_size=20),
    st.integers(1, 20),
)
def test_paths_that_stand_for_all_are_as_many_as_asked_for(functions: dict[str, set[int]], most: int) -> None:
    found = {path: {"a.c": [str(one) for one in sorted(own)]} for path, own in functions.items()}
    taken = representatives(found, most)
    assert len(taken) == min(most, len(found)) and set(taken) <= set(found)
    if most >= 10:
        run = set().union(*(functions[path] for path in taken)) if taken else set()
        assert run == set().union(*functions.values()), "ten functions need ten paths at most"


def report(paths: list[PathCost], **more: Any) -> CostReport:
    base = KernelVersion(
        "base", "/linux@" + "a" * 40, f"{'a' * 12} block: a subject that is rather long, as some are", ""
    )
    tip = KernelVersion("tip", "/linux@" + "b" * 40, f"{'b' * 12} xfs: do it | *well*", "configured as plain")
    command = (
        "iolab cost series.mbox --git /a/tree --fail-on 'instructions > +0.5 %' --paths 'null-*' --out /some/where"
    )
    return CostReport(base, tip, paths, "QEMU 7.2 (TCG), processor qemu64", command, **more)


def paths() -> list[PathCost]:
    base, tip = [counts(submit=2000)] * 2, [counts(submit=2050, _a_function_with_a_name_that_is_far_too_long=30)] * 2
    return [
        cost_of(stored()["base"], stored()["tip"], "null-read"),
        cost_of(base, tip, "virtio-write-uring-32"),
        cost_of(tip, base, "less"),
        cost_of(base, base, "same"),
        PathCost("missing", "t", why="tip: the kernel has no filesystem btrfs"),
    ]


def test_a_mail_has_at_most_72_columns_and_all_that_repeats_it() -> None:
    asked = report(paths(), patches=[PatchCost("c" * 12 + " a patch", paths()[1:4])], notes=["a note"])
    lines = table.mail(asked).splitlines()
    assert [line for line in lines if len(line) > table.WIDTH] == []
    said = " ".join(" ".join(lines).split())
    for word in (
        "more on 2",
        "fewer on 1",
        "as many on 1",
        "gup_fast_fallback",
        "missing was not measured",
        "A count is no time",
    ):
        assert word in said
    for word in ("iolab ", "QEMU 7.2", "configured as plain", "2 boots", "a note"):
        assert word in said
    again = lines[lines.index("Again:") + 1 :]
    joined = "\n".join(again).replace("\\\n", " ")
    assert shlex.split(joined) == shlex.split(asked.command)


def test_text_marks_what_changed_for_certain() -> None:
    lines = table.text(report(paths())).partition("Instructions of the kernel")[0].splitlines()
    marks = {
        line.split()[0]: line[-1] for line in lines if re.match(r"(null-read|virtio-write-uring-32|less|same) ", line)
    }
    assert marks["null-read"] == "+" and marks["less"] == "-" and marks["same"] not in "+-?"


def test_what_repeats_has_a_mark_and_rows_of_its_own() -> None:
    base, tip = ([counts(submit=amount)] * 2 for amount in (4000, 3999.3))
    asked = report([*paths(), cost_of(base, tip, "small")])
    assert "Functions whose counts repeat have fewer on 1 of these (-0.7 on small, the largest change)." in (
        asked.conclusion
    )
    lines = table.text(asked).splitlines()
    assert [line for line in lines if len(line) > table.WIDTH] == []
    rows = [line.split() for line in lines if line.startswith("small ")]
    assert rows == [
        ["small", "4,000", "3,999", "-0.02", "%", "±0.00", "%", "+0.0", "(-)"],
        ["small", "-0.7", "±0.0"],
    ]
    assert "| small | -0.7 | ±0.0 |" in table.markdown(asked)


def test_markdown_keeps_its_columns_whatever_is_quoted() -> None:
    lines = table.markdown(report(paths())).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert any("xfs: do it \\| \\*well\\*" in line for line in lines)
    widths = {len(re.findall(r"(?<!\\)\|", row)) for row in rows[: len(paths()) + 1]}
    assert len(widths) == 1


def test_json_has_every_number() -> None:
    found = report(paths()).as_dict()
    json.dumps(found, allow_nan=False)
    by_name = {one["path"]: one for one in cast(Any, found["paths"])}
    assert by_name["less"]["outcome"] == "less"
    assert by_name["missing"]["why"] and by_name["missing"]["per_operation"] == {}
    measures = {*MEASURES, "repeatable"} - {"reads", "writes", "locked"}
    assert set(by_name["null-read"]["per_operation"]) == measures


def test_a_function_of_several_paths_stands_once_by_its_largest_change() -> None:
    found = functions_of(paths()[1:3])
    assert len(found) == len({(one.symbol, one.module) for one in found})
    submit = next(one for one in found if one.symbol == "submit")
    assert submit.changes == {"virtio-write-uring-32": 50.0, "less": -50.0}


KERNELS = [KernelVersion("base", "6.1.0-1-cloud", "old"), KernelVersion("tip", "6.12.1+deb12-cloud", "new")]


@pytest.mark.parametrize("path", suite(), ids=lambda path: path.name)
def test_each_path_is_an_experiment_with_both_kernels(path: Any) -> None:
    own = tomllib.loads(path.file.read_text())
    made = experiment_of(text_of(path, KERNELS, 4, None, memory=False), path.name)
    assert list(made.workloads) == [WORKLOAD]
    assert list(made.settings) == ["base", "tip"]
    assert made.rounds == 4 and made.seed == own["seed"]
    assert [one["kernel"] for one in made.settings.values()] == [one.kernel for one in KERNELS]
    beside = own.get("settings", {}).get("base", {})
    assert all(set(beside) <= set(one) for one in made.settings.values())
    assert circumstances(made).drive == own.get("guest", {}).get("drive", "null_blk")
    assert circumstances(made).polls == own["workloads"][WORKLOAD].get("poll", False)


def test_memory_and_configuration_go_into_each_path() -> None:
    (path,) = chosen(["null-read-polled"])
    written = tomllib.loads(text_of(path, KERNELS, 2, "/a/config", memory=True))
    assert written["guest"] == {"config": "/a/config", "drive_parameters": {"poll_queues": 1}}
    assert written["probes"] == {"instructions": {"memory": True}}


def test_paths_are_chosen_by_patterns() -> None:
    assert {one.name for one in chosen(["xfs-*", "null-read"])} == {
        "null-read",
        "xfs-create",
        "xfs-fsync",
        "xfs-unlink",
    }
    assert len(chosen([])) == len(suite()) >= 12
    with pytest.raises(InputError, match="did you mean xfs-create"):
        chosen(["xfs-creat"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("6.1.0-1-cloud",), "expected two kernels"),
        (("a", "b", "--auto"), "--auto: is for the kernels of a tree"),
        (("a", "b", "--base", "HEAD"), "--base: is for the kernels of a tree"),
        (("a", "b", "--rounds", "1"), "--rounds: 1: expected 2 to 100"),
        (("a", "b", "--mail", "--json"), "give one of --mail, --markdown and --json"),
        (("a", "b", "--fail-on", "time > 1"), "--fail-on"),
        (("a", "b", "--paths", "nul-read"), "did you mean null-read"),
        (("x..y", "--git", "/nowhere"), "no git repository"),
    ],
)
def test_each_mistake_is_one_line(iolab: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    outcome = iolab("cost", *arguments, status=2)
    if "--json" not in arguments:
        outcome.assert_one_clear_line(2, said)
    assert said in outcome.stderr


def test_the_paths_are_listed(iolab: CommandLine) -> None:
    listed = iolab("list", "paths", "--json").json()["paths"]
    assert [one["name"] for one in listed] == [one.name for one in suite()]


def test_a_condition_of_memory_goes_with_counting_it() -> None:
    found = PathCost("p", "t", 2, {"reads": Change(10.0, 12.0, 0.5)})
    assert gate("reads > 10 %", memory=True).holds(found)


def test_a_path_that_only_the_base_runs_meets_every_condition(capsys: pytest.CaptureFixture[str]) -> None:
    broken = PathCost("broken", "t", why="tip: panic", is_broken=True)
    same = cost_of([counts(submit=10)] * 2, [counts(submit=10)] * 2)
    with pytest.raises(typer.Exit) as ended:
        exit_if_met([gate("kernel > 50 %", memory=False)], report([same, broken]))
    assert ended.value.exit_code == 1
    assert "broken: the tip does not run it" in capsys.readouterr().err
    exit_if_met([], report([same, broken]))
    with pytest.raises(typer.Exit):
        exit_if_met([], report([broken]))
