"""Each missed target of docs/reference/benchmarks.json states its cause, and the page shows it."""

import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benches"))

import page  # noqa: E402
import result  # noqa: E402

DOCS = ROOT / "docs" / "reference"
MISSED = result.Result("reads", "1/s", 1, 2, "peer", 0.5, 0.4, 0.6, "ratio >= 1", met=False, bench="disk")
CAUSE = result.Cause("disk", ["reads"], "2026-11-27", "The arm is slow.")


def known() -> list[result.Result]:
    return result.load(DOCS / "benchmarks.json")


def test_each_missed_target_states_its_cause() -> None:
    assert not [f"{one.bench}: {one.name}" for one in result.unexplained(known())]


def test_the_results_have_the_causes_of_the_list() -> None:
    assert known() == result.explained(known(), result.causes())


def test_each_cause_is_of_a_row_once() -> None:
    rows = [(cause.bench, row) for cause in result.causes() for row in cause.rows]
    assert len(rows) == len(set(rows))
    assert set(rows) <= {(one.bench, one.name) for one in known()}


def test_a_cause_is_a_sentence_with_a_date() -> None:
    for cause in result.causes():
        assert date.fromisoformat(cause.date)
        assert cause.cause[0].isupper() and cause.cause.endswith(".") and len(cause.cause.split()) > 5, cause


def test_the_page_shows_each_cause() -> None:
    text = " ".join((DOCS / "benchmarks.md").read_text().split())
    for one in known():
        assert one.met is not False or " ".join(one.cause.split()) in text, one.name


def test_only_a_miss_has_a_cause() -> None:
    (told,) = result.explained([MISSED], [CAUSE])
    assert (told.cause, told.date) == (CAUSE.cause, CAUSE.date)
    met = replace(told, met=True)
    assert result.explained([met], [CAUSE]) == [replace(MISSED, met=True)]


@pytest.mark.parametrize("other", [replace(CAUSE, bench="tape"), replace(CAUSE, rows=["writes"])])
def test_a_miss_without_a_cause_is_found(other: result.Cause) -> None:
    assert result.unexplained(result.explained([MISSED], [other])) == [MISSED]
    assert result.unexplained(result.explained([MISSED], [CAUSE])) == []


def test_the_page_puts_rows_of_one_cause_together() -> None:
    rows = [replace(MISSED, name=name, cause=CAUSE.cause, date=CAUSE.date) for name in ("reads", "writes")]
    assert page.misses(rows) == ("Missed, cause found on 2026-11-27: *reads*; *writes*. The arm is slow.\n\n")
