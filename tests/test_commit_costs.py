"""The list of commits that `iolab cost` is held against, and how an answer is judged."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benches"))

import commit_costs
from commit_costs import Commit
from iolab.domain.cost.measure import MEASURES
from iolab.studies.cost.paths import suite


def commit(sign: str) -> Commit:
    return Commit("one", "0123", "a title", "2022", "one call less", "kernel", sign, "null-read", "6.1", "reversed", "")


def answer(share: float, outcome: str) -> dict[str, Any]:
    change = {"share": share, "difference": 1000 * share, "low": 0.0, "high": 0.0}
    small = {"share": share / 2, "difference": 0.0, "low": 0.0, "high": 0.0}
    paths = [("null-read", "same", small), ("null-write", outcome, change)]
    return {
        "paths": [
            {"path": name, "outcome": of, "rounds": 2, "per_operation": {"kernel": one}} for name, of, one in paths
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
