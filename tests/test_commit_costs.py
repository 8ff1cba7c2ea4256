"""The list of commits that `iolab cost` is held against, and how an answer is judged."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benches"))

import commit_costs
from commit_costs import Commit
from iolab.domain.cost.measure import MEASURES
from iolab.studies.cost.paths import suite


def commit(sign: str) -> Commit:
    path = "null-read"
    return Commit(
        "one", "0123", "a title", "2022", "one call less", "kernel", sign, path, "6.1", "reversed", "", "first"
    )


def change(share: float) -> dict[str, Any]:
    """Whose interval has no width."""
    by = 1000 * share
    return {"base": 1000.0, "tip": 1000.0 + by, "share": share, **dict.fromkeys(("difference", "low", "high"), by)}


def answer(share: float, outcome: str, of_repeatable: str | None = None) -> dict[str, Any]:
    """A path that stays the same, and one that changes."""
    paths = [("null-read", "same", None, share / 2), ("null-write", outcome, of_repeatable, share)]
    return {
        "paths": [
            {
                "path": name,
                "outcome": of,
                "of_repeatable": repeatable,
                "rounds": 2,
                "per_operation": {"kernel": change(one), "repeatable": change(-one)},
            }
            for name, of, repeatable, one in paths
        ]
    }


def test_the_list_names_what_exists() -> None:
    listed = commit_costs.listed()
    assert len({one.file for one in listed}) == len({(one.id, one.title) for one in listed}) == len(listed)
    assert {path for one in listed for path in one.asked_on.split(",")} <= {one.name for one in suite()}
    assert {one.measure for one in listed} <= MEASURES.keys()
    assert {(one.source, one.direction) for one in listed} == {
        ("6.1", "reversed"),
        ("6.12", "reversed"),
        ("6.12", "forward"),
    }
    assert all(2019 <= int(one.year) <= 2026 for one in listed)


@pytest.mark.parametrize(
    ("sign", "share", "outcome", "is_right"),
    [
        ("-", -0.01, "less", True),
        ("-", 0.01, "more", False),
        ("-", -0.01, "unclear", False),
        ("-", -0.0001, "same", False),
        ("+", 0.01, "more", True),
        ("0", 0.0001, "more", True),
        ("0", 0.002, "more", False),
        ("0", 0.002, "unclear", True),
    ],
)
def test_an_answer_is_judged_by_the_path_that_changes_most(
    sign: str, share: float, outcome: str, is_right: bool
) -> None:
    shown = commit_costs.judged(commit(sign), answer(share, outcome))
    assert shown.path == "null-write"
    assert commit_costs.is_right(commit(sign), shown) is is_right


def test_what_is_stated_of_functions_that_repeat_counts_where_nothing_is_of_the_path() -> None:
    shown = commit_costs.judged(commit("-"), answer(0.01, "unclear", "less"))
    assert (shown.statement, shown.is_of_path, shown.difference) == ("less", False, -10.0)
    assert commit_costs.is_right(commit("-"), shown)
    assert not commit_costs.is_right(commit("0"), shown), "1 % of a path's instructions is a flag"


def test_a_path_with_a_statement_goes_before_one_that_varies_more() -> None:
    found = answer(0.05, "unclear")
    found["paths"][0]["outcome"] = "more"
    assert commit_costs.judged(commit("+"), found).path == "null-read"


def test_an_answer_says_that_nothing_changed_only_if_it_holds_on_each_path() -> None:
    found = answer(0.05, "unclear")
    assert not commit_costs.judged(commit("-"), found).is_unchanged
    for path in found["paths"]:
        path["per_operation"]["repeatable"] = {**change(0.0), "base": 0.0, "tip": 0.0}
    assert str(commit_costs.judged(commit("-"), found)).endswith("unclear, no function whose count repeats changed")


@pytest.mark.parametrize(("share", "statement"), [(-0.0009, "same"), (-0.0011, "less")])
def test_less_than_a_tenth_of_a_percent_of_another_count_is_no_statement(share: float, statement: str) -> None:
    found = answer(0.0, "same")
    found["paths"][1]["per_operation"]["locked"] = change(share)
    assert commit_costs.judged(replace(commit("-"), measure="locked"), found).statement == statement
