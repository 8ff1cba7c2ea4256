"""Matrices: lists where one value is expected."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.base import matrix
from iolab.base.errors import InputError
from iolab.files.experiment import loads

READS = "[workloads.reads]\nduration = '1s'\n"


def names(text: str) -> list[str]:
    return list(loads(text, "x.toml").workloads)


def test_a_list_stands_for_a_workload_per_value() -> None:
    assert names(READS + "queue_depth = [1, 32]\n") == ["reads[queue_depth=1]", "reads[queue_depth=32]"]


def test_several_lists_multiply_in_file_order_the_last_fastest() -> None:
    assert names(READS + "block_size = ['4KiB', '1MiB']\nqueue_depth = [1, 2]\n") == [
        "reads[block_size=4KiB,queue_depth=1]",
        "reads[block_size=4KiB,queue_depth=2]",
        "reads[block_size=1MiB,queue_depth=1]",
        "reads[block_size=1MiB,queue_depth=2]",
    ]


def test_a_list_that_is_one_value_expands_only_as_a_list_of_lists() -> None:
    assert names(READS + "cpus = [0, 1]\n") == ["reads"]
    assert names(READS + "cpus = [[0], [0, 1]]\n") == ["reads[cpus=0]", "reads[cpus=0+1]"]


def test_values_of_all_sorts_have_names() -> None:
    assert names(READS + "direct = [true, false]\n") == ["reads[direct=true]", "reads[direct=false]"]
    sizes = "block_size = ['4KiB', {'4KiB' = 70, '64KiB' = 30}]\n"
    assert names(READS + sizes) == ["reads[block_size=4KiB]", "reads[block_size=4KiB:70+64KiB:30]"]


def test_a_list_in_a_job_of_a_mix() -> None:
    text = "[workloads.m]\nkind = 'mix'\nduration = '1s'\n[workloads.m.jobs.readers]\nqueue_depth = [1, 2]\n"
    assert names(text) == ["m[readers.queue_depth=1]", "m[readers.queue_depth=2]"]


def test_settings_are_matrices_too() -> None:
    text = READS + "[settings.s]\nrq_affinity = [0, 2]\n[settings.t]\nworkload = {queue_depth = [1, 4]}\n"
    experiment = loads(text, "x.toml")
    assert list(experiment.settings) == ["s[rq_affinity=0]", "s[rq_affinity=2]", "t[queue_depth=1]", "t[queue_depth=4]"]
    assert experiment.workload_under("reads", "t[queue_depth=4]").options.model_dump()["queue_depth"] == 4


def test_tunables_of_a_scheduler_expand() -> None:
    experiment = loads(READS + "[settings.bfq]\nscheduler = {name = 'bfq', low_latency = [0, 1]}\n", "x.toml")
    assert list(experiment.settings) == ["bfq[scheduler.low_latency=0]", "bfq[scheduler.low_latency=1]"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("queue_depth = []\n", "x.toml:3: workloads.reads.queue_depth: an empty list"),
        (
            "queue_depth = [1, 2, 1]\n",
            "x.toml:1: workloads.reads: two members of the matrix are named reads[queue_depth=1]",
        ),
        (f"queue_depth = {list(range(1, 41))}\njobs = {list(range(1, 41))}\n", "1,600 members"),
        ("queue_depth = [1, 0]\n", "x.toml:3: workloads.reads.queue_depth: 0 given"),
    ],
)
def test_what_is_wrong_with_a_matrix_is_said_once(options: str, words: str) -> None:
    with pytest.raises(InputError) as raised:
        loads(READS + options, "x.toml")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


VALUES = st.lists(st.integers(0, 9), unique=True, min_size=1, max_size=3)
TABLES = st.dictionaries(
    st.sampled_from("abcdef"), st.one_of(st.integers(), VALUES, st.dictionaries(st.sampled_from("xyz"), VALUES))
)


@settings(deadline=None)
@given(TABLES)
def test_every_combination_is_there_once(table: dict[str, Any]) -> None:
    axes = matrix.axes(table, lambda key: key == "f")
    members = matrix.expand(table, axes)
    assert len(members) == matrix.size(axes) == math.prod(len(axis.values) for axis in axes)
    assert len({member.label for member in members}) == len(members)
    for member in members:
        assert not matrix.axes(member.table, lambda key: key == "f")
        assert list(member.table) == list(table)
        if "f" in table and not isinstance(table["f"], dict):
            assert member.table["f"] == table["f"]
