"""Published figures and what is made of them: the format, finding a cell in a run, errors, means, aims, the command."""

import copy
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import CommandLine
from fake_machine import FakeExecutor, SilentDisplay
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.base.quantity import parse_duration_ns
from iolab.base.strict_json import by_row
from iolab.files import machine_file
from iolab.files.experiment import load as load_experiment
from iolab.files.store import read
from iolab.presentation.cli.invoke import invoke
from iolab.studies.reproduction import compare, load, names, null, objects
from iolab.studies.reproduction.as_json import to_store
from iolab.studies.reproduction.options import AimOptions
from iolab.studies.reproduction.part import Part
from iolab.studies.reproduction.publication import Publication
from iolab.studies.reproduction.reproduction import Reproduction
from iolab.studies.reproduction.score import FACTOR_MAX, ComparedCell, claims, mean_error, within_factor
from iolab.studies.reproduction.scorecard import (
    RESULTS,
    markdown,
    overall,
    scores,
    statements_markdown,
    summary_markdown,
)
from iolab.studies.reproduction.tables import Cell
from iolab.studies.run import run
from iolab.studies.run.machine_executor import MachineExecutor
from support.figures import expect_problem, expect_understood_or_refused, figures
from support.stored import stored_run

MACHINES = Path(__file__).parents[1] / "machines"
GOLDEN = Path(__file__).parent / "golden" / "reproduce"
EXPERIMENT = """\
rounds = 2
seed = 7

[target]
kind = "directory"
path = "."

[workloads.readers]
read_percent = 50
jobs = [1, 2]
duration = "100ms"

[settings.plain]

[settings.pinned]
cpus = [0]
"""
FIGURES = """\
title = "Readers, as published"
case_study = "000"
source = "a mail of 2001"
experiment = "experiment.toml"
setup = { machine = "two CPUs" }

[fitted.speed]
machine = "small"
parameter = "cpus.call_ns"
value = 2000
serves = { rate = ["1/plain"] }
why = "It is in no data sheet."

[chosen.pace]
what = "the pace of two readers"
serves = { rate = ["2/pinned"], claims = ["first"] }
why = "The other pace is far from the figure."

[cell]
workload = "readers[jobs={row}]"
setting = "{column}"

[tables.rate]
title = "rate by readers"
unit = "KiB/s"
columns = ["plain", "pinned"]
cell = { metric = "rate_bytes_per_s", divide_by = 1024 }
notes = { "2/pinned" = "measured on a busy machine" }
aim = { "*" = { date = "2026-11-22", mean_error = "5%", factor = 1.5, factor_share = "60%", order_beyond = 1.1 } }

[tables.rate.rows]
1 = [40000, 50000]
2 = [80000, 70000]

[tables.others]
title = "of two readers"
unit = "as the rows say"
columns = ["plain"]
cell = { workload = "readers[jobs=2]" }
not_compared = { "waits/*" = "the model has no words for it" }
follows = { "share/*" = { source = ["rate:2/plain"], why = "half of it" } }

[tables.others.cells]
"first/*" = { metric = "rate_bytes_per_s", job = "job.0" }
"share/*" = { metric = "read.rate_bytes_per_s", per = "rate_bytes_per_s", divide_by = 0.01 }
"none/*" = { metric = "rate_bytes_per_s", job = "job.7" }
"zero/*" = { metric = "rate_bytes_per_s" }

[tables.others.rows]
first = [40960000]
share = [25]
none = [1]
zero = [0]
waits = [3]

[claims.alike]
text = "Pinning changes nothing."
who = "a mail of 2001"
workload = "readers[jobs=1]"
metric = "rate_bytes_per_s"
baseline = "plain"
setting = "pinned"
verdict = ["same"]

[claims.first]
text = "The first reader gains."
who = "its answer"
workload = "readers[jobs=2]"
metric = "rate_bytes_per_s"
job = "job.0"
baseline = "plain"
setting = "pinned"
verdict = ["faster"]
"""


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    return compare(figures(FIGURES), stored_run(tmp_path_factory.mktemp("reproduce") / "run", EXPERIMENT))


def test_a_cell_is_found_by_its_row_and_column(reproduced: Reproduction) -> None:
    rate, others = reproduced.tables
    assert [(one.cell.name, one.cell.role) for one in rate.compared] == [
        ("1/plain", "fit"),
        ("1/pinned", "prediction"),
        ("2/plain", "prediction"),
        ("2/pinned", "chosen"),
    ]
    assert [(one.cell.name, one.independent) for one in others.compared] == [
        ("first/plain", True),
        ("share/plain", False),
    ]
    # The machine without a machine makes about 10,000 operations of 4 KiB a second and job.
    simulated = {one.cell.name: one.simulated for one in (*rate.compared, *others.compared)}
    expected = {"1/plain": 40000, "1/pinned": 40000, "2/plain": 80000, "2/pinned": 80000, "share/plain": 50}
    assert simulated == pytest.approx(expected | {"first/plain": 40960000}, rel=0.05)
    assert rate.compared[1].error == pytest.approx(-0.2, abs=0.01)


def test_a_sum_of_runs_is_compared_with_as_many(reproduced: Reproduction, tmp_path: Path) -> None:
    summed = FIGURES.replace('job = "job.0" }', 'job = "job.0", runs = 3 }')
    found = compare(figures(summed), stored_run(tmp_path / "run", EXPERIMENT)).tables[1].compared[0]
    assert found.simulated == pytest.approx(3 * reproduced.tables[1].compared[0].simulated)


def test_factors_are_told_apart_by_role(reproduced: Reproduction) -> None:
    rate = reproduced.tables[0]
    factors = {one.cell.name: one.factor for one in rate.compared}
    found = rate.typical_factor
    assert (found["fit"], found["chosen"]) == pytest.approx((factors["1/plain"], factors["2/pinned"]))
    assert found["prediction"] == pytest.approx(math.sqrt(factors["1/pinned"] * factors["2/plain"]))
    assert reproduced.tables[1].typical_factor["fit"] is None


def test_what_says_nothing_of_the_model_is_left_out_with_the_reason(reproduced: Reproduction) -> None:
    left_out = {one.cell.row: (one.reason, one.simulated is None) for one in reproduced.tables[1].not_compared}
    assert left_out == {
        "none": ("the run has no rate_bytes_per_s of job.7: its jobs are job.0, job.1", True),
        "zero": ("of 0 there is no relative error", False),
        "waits": ("the model has no words for it", True),
    }


def test_a_failed_trial_has_its_reason_in_each_cell_and_meets_no_aim(tmp_path: Path) -> None:
    executor = FakeExecutor(status_of=lambda trial: "failed" if trial.setting == "plain" else "ok")
    rate = compare(figures(FIGURES), stored_run(tmp_path / "run", EXPERIMENT, executor=executor)).tables[0]
    assert {(one.cell.name, one.reason) for one in rate.not_compared} == {
        ("1/plain", "the trial failed: it broke"),
        ("2/plain", "the trial failed: it broke"),
    }
    assert rate.typical_factor["fit"] is None
    assert [claim.met for claim in rate.claims if "factor of 1.5" in claim.text] == [False]
    assert [claim.text for claim in rate.claims if "factor of 1.5" in claim.text] == [
        "1 of 2 cells within a factor of 1.5, aim 60 %"
    ]
    assert not next(claim for claim in rate.claims if "mean error" in claim.text).met


def test_a_statement_is_judged_as_comparisons_are(tmp_path: Path) -> None:
    gained = EXPERIMENT.replace("rounds = 2", "rounds = 8")
    executor = FakeExecutor(faster={"pinned": 1.3})
    alike, first = compare(figures(FIGURES), stored_run(tmp_path / "run", gained, executor=executor)).statements
    assert alike.comparison.judgement.verdict == first.comparison.judgement.verdict == "faster"
    assert (alike.met, first.met) == (False, True)
    assert alike.comparison.judgement.ratio == pytest.approx(1.3, rel=0.01)
    assert alike.claim.text == "Pinning changes nothing. (a mail of 2001): faster, said same"


def test_without_numbers_no_statement_is_met(tmp_path: Path) -> None:
    executor = FakeExecutor(status_of=lambda trial: "failed" if trial.setting == "plain" else "ok")
    text = FIGURES.replace('verdict = ["same"]', 'verdict = ["undecided"]')
    alike, first = compare(figures(text), stored_run(tmp_path / "run", EXPERIMENT, executor=executor)).statements
    assert not alike.met and not first.met
    assert alike.absent == first.absent == "plain: the trial failed: it broke"


def test_one_round_meets_no_statement(tmp_path: Path) -> None:
    once = EXPERIMENT.replace("rounds = 2", "rounds = 1")
    text = FIGURES.replace('verdict = ["same"]', 'verdict = ["undecided"]')
    alike, _ = compare(figures(text), stored_run(tmp_path / "run", once)).statements
    assert not alike.met and alike.absent == "1 of the rounds has both settings, a verdict needs at least 2"


def test_the_json_is_a_list_of_tables_and_a_function_of_the_run(reproduced: Reproduction) -> None:
    *tables, said = json.loads(json.dumps(list(objects(reproduced))))
    assert [table["name"] for table in tables] == ["figures/rate", "figures/others"]
    assert [(one["name"], one["met"]) for one in said["statements"]] == [("alike", True), ("first", False)]
    assert [aim["met"] for aim in said["aims"]] == [True, False]
    assert said["statements"][0]["found"]["n"] == 2
    assert [one["served"] for one in said["statements"]] == [False, True]
    assert [list(table["chosen"]) for table in tables] == [["pace"], []]
    for table in tables:
        assert table["kind"] == "table" and table["case_study"] == "000"
        assert set(table["typical_factor"]) == {"fit", "chosen", "prediction"}
        for cell in table["cells"]:
            assert set(cell) == {"row", "column", "role", "follows", "published", "simulated", "error", "factor"}
            assert cell["role"] in ("fit", "chosen", "prediction")
            assert cell["error"] == pytest.approx(cell["simulated"] / cell["published"] - 1)


@pytest.mark.parametrize("columns", [60, 100])
def test_the_tables_are_golden_and_fit(columns: int, reproduced: Reproduction, monkeypatch: pytest.MonkeyPatch) -> None:
    from iolab.presentation.table.reproduction import reproductions
    from iolab.presentation.terminal import text_of

    monkeypatch.setenv("COLUMNS", str(columns))
    shown = text_of(reproductions([reproduced]))
    assert shown == (GOLDEN / f"figures-{columns}.txt").read_text()
    assert max(map(len, shown.splitlines())) <= columns


def test_the_scorecard_has_a_line_per_table_and_what_was_said_apart(reproduced: Reproduction) -> None:
    parts = list(objects(reproduced))
    counts = [(one.name, one.cells, one.fitted, one.chosen, one.independent) for one in scores(parts)]
    assert counts == [("figures/rate", 4, 1, 1, 2), ("figures/others", 5, 0, 0, 1)]
    assert [len(one.aims) for one in scores(parts)] == [2, 0]
    first, *_, last = overall(parts)
    assert first.startswith("3 independent predictions: ")
    assert last == "1 of 2 statements agree with the model; choices serve 1 of them."
    measured_here: list[Part] = [copy.deepcopy(part) for part in parts]
    for part in measured_here:
        part["case_study"] = "none"
    together = overall([*parts, *measured_here])
    assert together[0] == first
    assert f"Beside a real kernel in front of a device of known timing: {first}" in together
    blind: list[Part] = [copy.deepcopy(part) for part in parts]
    for part in blind:
        part["case_study"] = "blind"
    words = next(
        one for one in overall([*parts, *blind]) if one.startswith("On tables that the model was not made for: ")
    )
    assert first.rstrip(".") in words and "pairs of a row or a column in the published order" in words
    assert overall([*parts, *blind])[0] == first
    assert markdown(parts).count("\n| ") == 3
    assert statements_markdown(parts).count("\n| ") == 2


def test_what_is_stored_scores_the_same_without_what_the_file_states(reproduced: Reproduction) -> None:
    parts = list(objects(reproduced))
    kept = [to_store(part) for part in parts]
    assert [written(kept) for written in (markdown, statements_markdown, summary_markdown, overall)] == [
        written(parts) for written in (markdown, statements_markdown, summary_markdown, overall)
    ]
    statement = next(part for part in kept if part["kind"] == "statements")["statements"][0]
    assert statement.keys() == {"name", "served", "met", "absent", "found"}
    assert not any(key in part for part in kept for key in ("title", "source", "fitted", "chosen"))


def test_the_summary_has_a_row_for_each_thing_that_the_model_is_compared_with(reproduced: Reproduction) -> None:
    parts = list(objects(reproduced))
    blind: list[Part] = [copy.deepcopy(part) for part in parts]
    for part in blind:
        part["case_study"] = "blind"
    _, _, built_for, not_built_for, ours, said = summary_markdown([*parts, *blind]).splitlines()
    assert built_for.split(" | ")[1:-1] == not_built_for.split(" | ")[1:-1] and " | 3 | " in built_for
    assert " | 0 | " in ours and said.endswith("2 agree, 2 of them because a constant was chosen for it |")


# The format


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('case_study = "000"\n', 'case_study = "000"\ntitel = 1\n', 3, ("titel", "did you mean title?")),
        ('case_study = "000"\n', "", 1, ("case_study", "missing", '"none" or "blind"')),
        ('title = "rate by readers"\n', "", 23, ("tables.rate.title", "missing")),
        ("1 = [40000, 50000]", "1 = [40000]", 32, ("tables.rate.rows.1", "1 figure given for 2 columns")),
        ("1 = [40000, 50000]", '1 = [40000, "many"]', 31, ("tables.rate.rows", "many")),
        ('columns = ["plain", "pinned"]', 'columns = ["plain", "plain"]', 26, ("columns", "a name of its own")),
        ('["1/plain"]', '["1/plane"]', 11, ("fitted.speed.serves", "1/plane", "no cell of rate is named so")),
        ('["1/plain"]', '["*/plain", "1/*"]', 23, ("more than half of its cells are served by fits",)),
        ('{ rate = ["1/plain"] }', '{ rat = ["1/plain"] }', 11, ("rat: unknown table; did you mean rate?",)),
        ('{ rate = ["1/plain"] }', "{}", 11, ("serves nothing",)),
        ('claims = ["first"]', 'claims = ["last"]', 16, ("chosen.pace.serves", "no statement of claims is named so")),
        ('what = "the pace', 'machine = "small"\nwhat = "the pace', 14, ("machine, parameter and value together",)),
        ('"rate:2/plain"', '"rate:2/plane"', 41, ("rate:2/plane: there is no such cell",)),
        (
            '{ "share/*" = { source = ["rate:2/plain"]',
            '{ "first/*" = { source = ["share/plain"], why = "twice" }, "share/*" = { source = ["first/plain"]',
            41,
            ("follows from itself",),
        ),
        ('["rate:2/plain"]', "[]", 41, ("empty source",)),
        (
            "[tables.others.cells]",
            '[tables.others.null]\ntotal = "plain"\n[tables.others.cells]',
            44,
            ("total and weights",),
        ),
        (
            "[tables.others.cells]",
            '[tables.others.null]\nbaseline_row = "fist"\n[tables.others.cells]',
            44,
            ("mean first?",),
        ),
        (
            "[tables.others.cells]",
            '[tables.others.null]\ntotal = "plain"\nweights = { plain = 0 }\n[tables.others.cells]',
            45,
            ("above 0",),
        ),
        ('date = "2026-11-22", ', "", 29, ("tables.rate.aim.*.date", "missing")),
        ('metric = "rate_bytes_per_s", divide', 'metric = "rate", divide', 27, ("cell.metric", "unknown metric")),
        ("divide_by = 1024", "divide_by = 0", 27, ("divide_by", "above 0")),
        ('mean_error = "5%"', 'mean_error = "5"', 29, ("mean_error", "a share")),
        ('setting = "{column}"\n', "", 26, ("setting missing of cell 1/plain",)),
        ("value = 2000\n", "value = 2000\nunits = 1\n", 11, ("fitted.speed.units", "unknown option")),
        ('[fitted.speed]\nmachine = "small"\n', "[fitted.speed]\n", 7, ("fitted.speed.machine", "missing")),
        ("[tables.rate]", "[tables.rate", 23, ("not valid TOML",)),
        ('case_study = "000"\n', 'case_study = "000"\nrounds = 0\n', 3, ("rounds", "at least 1")),
        ('who = "a mail of 2001"\n', "", 56, ("claims.alike.who", "missing")),
        ('verdict = ["same"]', 'verdict = ["sane"]', 63, ("claims.alike.verdict", "did you mean same?")),
        ('verdict = ["same"]', 'verdict = "same"', 63, ("claims.alike.verdict", "a list such as")),
        ('verdict = ["same"]', "verdict = []", 63, ("claims.alike.verdict", "at least one")),
        ('verdict = ["same"]', "above = 3", 56, ("claims.alike", "baseline with verdicts, or a limit")),
        ('baseline = "plain"\nsetting', "above = 3\nsetting", 63, ("claims.alike.verdict", "a limit has no verdict")),
        (
            'verdict = ["same"]',
            'verdict = ["same"]\nper = "iops"',
            64,
            ("claims.alike.per", "expected a limit instead"),
        ),
        (
            'setting = "pinned"\nverdict = ["same"]',
            'setting = "plain"\nverdict = ["same"]',
            62,
            ("claims.alike.setting", "than the baseline"),
        ),
        ('metric = "rate_bytes_per_s"\nbase', 'metric = "rate"\nbase', 60, ("claims.alike.metric", "unknown metric")),
        ('experiment = "experiment.toml"\n', "", 1, ("experiment", "missing")),
        ("[claims.alike]", "[claims]\nalike = 3\n[claims.other]", 57, ("claims.alike", "expected a table")),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, line: int, words: tuple[str, ...]) -> None:
    assert old in FIGURES
    expect_problem(FIGURES.replace(old, new, 1), line, words)


def test_a_file_without_anything_to_compare_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to compare"):
        figures('title = ""\nseed = "1"\nsource = ""\nexperiment = ""\n')


@given(
    st.integers(0, len(FIGURES.splitlines()) - 1),
    st.sampled_from(["", "x = 1", "[cell]", "1 = [1]", "fit = 3", '"', "claims = 1"]),
)
def test_whatever_is_written_is_understood_or_refused(line: int, instead: str) -> None:
    expect_understood_or_refused(FIGURES, line, instead)


# Errors and aims


def cell(published: float, row: str = "1") -> Cell:
    return Cell(row, str(published), published, "prediction", None, None)


@given(st.floats(1e-6, 1e9), st.floats(0, 100))
def test_an_error_is_relative_to_what_was_published(published: float, ratio: float) -> None:
    one = ComparedCell(cell(published), published * ratio)
    assert one.error == pytest.approx(ratio - 1, rel=1e-9, abs=1e-9)
    assert mean_error([one]) == abs(one.error)
    assert one.factor == pytest.approx(FACTOR_MAX if not ratio else min(max(ratio, 1 / ratio), FACTOR_MAX))
    assert within_factor(one, 1.5) == (1 / 1.5 <= one.simulated / published <= 1.5) or abs(ratio - 1.5) < 1e-6


def test_an_aim_says_what_came_out() -> None:
    cells = [
        ComparedCell(cell(10), 11),
        ComparedCell(cell(20), 10),
        ComparedCell(cell(21), 30),
        ComparedCell(cell(5, "2"), 20),
    ]
    aim = AimOptions(date="2026-11-22", mean_error=0.1, cell_error=0.2, factor=2, factor_share=0.75, order_beyond=1.5)
    assert [(claim.text, claim.met) for claim in claims(aim, cells, unanswered=0)] == [
        ("mean error 101 %, aim at most 10 %", False),
        ("1 of 4 cells within 20 %, aim all", False),
        ("3 of 4 cells within a factor of 2, aim 75 %", True),
        ("1 of 2 pairs of a row that differ by more than 50 % in the published order, aim all", False),
    ]
    assert [claim.met for claim in claims(aim, cells, unanswered=1)] == [False, False, False, False]


def test_no_answer_meets_no_aim() -> None:
    assert not any(
        claim.met for claim in claims(AimOptions(date="2026-11-22", mean_error=0.9, factor=9), [], unanswered=3)
    )


# Null predictors


def test_the_null_predictor_that_is_closest_beside_the_model_counts() -> None:
    text = FIGURES.replace("[tables.others]", '[tables.rate.null]\nbaseline_column = "plain"\n\n[tables.others]')
    table = figures(text).tables[0]
    cells = [ComparedCell(one, 1.1 * one.published) for one in table.cells if one.column == "pinned"]
    found = null.best(table, cells)
    assert found is not None and (found.words, found.cells) == ("as in column plain", 2)
    assert found.factor == pytest.approx(math.sqrt(50 / 40 * 80 / 70))
    assert found.model_factor == pytest.approx(1.1) and not found.as_good


def test_a_model_that_a_null_predictor_equals_shows_no_skill() -> None:
    split = '[tables.rate.null]\ntotal = "pinned"\nweights = { plain = 2, pinned = 1 }\n\n[tables.others]'
    table = figures(FIGURES.replace("[tables.others]", split)).tables[0]
    plain = [one for one in table.cells if one.column == "plain"]
    said = [50000 * 2 / 3, 70000 * 2 / 3]
    found = null.best(table, [ComparedCell(one, value) for one, value in zip(plain, said, strict=True)])
    assert found is not None and found.words == "weight x pinned" and found.as_good


def test_one_constant_needs_three_cells() -> None:
    table = figures(FIGURES).tables[0]
    cells = [ComparedCell(one, one.published) for one in table.cells]
    assert null.best(table, cells[:2]) is None
    found = null.best(table, cells)
    assert found is not None and found.words == "one constant" and found.model_factor == 1


# Statements about a limit


@pytest.mark.parametrize(("limit", "met"), [("above = 1000000", True), ("below = 1000000", False)])
def test_a_limit_holds_in_every_round_or_not(limit: str, met: bool, tmp_path: Path) -> None:
    text = FIGURES.replace('baseline = "plain"\nsetting = "pinned"\nverdict = ["same"]', f'setting = "pinned"\n{limit}')
    alike, _ = compare(figures(text), stored_run(tmp_path / "run", EXPERIMENT)).statements
    assert alike.met == met and len(alike.values) == 2 and alike.comparison is None
    assert alike.claim.text.endswith(f"said {limit.replace(' = ', ' ').replace('1000000', '1e+06')}")


def test_a_limit_may_be_of_one_metric_by_another(tmp_path: Path) -> None:
    own = 'setting = "pinned"\nmetric = "read.rate_bytes_per_s"\nper = "rate_bytes_per_s"\nabove = 0.4\nbelow = 0.6'
    text = FIGURES.replace(
        'metric = "rate_bytes_per_s"\nbaseline = "plain"\nsetting = "pinned"\nverdict = ["same"]', own
    )
    alike, _ = compare(figures(text), stored_run(tmp_path / "run", EXPERIMENT)).statements
    assert alike.met and alike.values == [pytest.approx(0.5, rel=0.1)] * 2


def test_a_limit_by_a_metric_that_the_run_lacks_is_missed_with_the_reason(tmp_path: Path) -> None:
    own = 'setting = "pinned"\nmetric = "iops"\nper = "rpc_pulled_up_bytes"\nabove = 0'
    text = FIGURES.replace(
        'metric = "rate_bytes_per_s"\nbaseline = "plain"\nsetting = "pinned"\nverdict = ["same"]', own
    )
    alike, _ = compare(figures(text), stored_run(tmp_path / "run", EXPERIMENT)).statements
    assert not alike.met and alike.absent


def test_a_cell_may_be_a_ratio_to_another_setting(tmp_path: Path) -> None:
    text = FIGURES.replace(
        'cell = { metric = "rate_bytes_per_s", divide',
        'cell = { against = "plain", metric = "rate_bytes_per_s", divide',
    )
    rate = compare(figures(text), stored_run(tmp_path / "run", EXPERIMENT)).tables[0]
    ratios = {one.cell.name: one.simulated * 1024 for one in rate.compared}
    assert ratios["1/plain"] == 1 and ratios["1/pinned"] == pytest.approx(1, rel=0.05)


# The files that come with iolab


@pytest.fixture(scope="module", params=names())
def published(request: pytest.FixtureRequest) -> Publication:
    return load(request.param)


def test_published_figures_say_where_they_are_from(published: Publication) -> None:
    assert re.fullmatch("00[0-4]|none|blind", published.case_study) and published.source and published.setup
    for table in published.tables:
        roles = [cell.role for cell in table.cells]
        assert 2 * roles.count("fit") <= len(roles)
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", aim.date) for aim in table.aims.values())


def test_fitted_and_chosen_values_are_those_of_the_machine(published: Publication) -> None:
    chosen = [one for one in published.chosen.values() if one.parameter is not None]
    for fitted in (*published.fitted.values(), *chosen):
        assert fitted.parameter is not None
        found: Any = machine_file.device_at(MACHINES / f"{fitted.machine}.toml").values
        for key in fitted.parameter.split("."):
            found = found[int(key) if key.isdecimal() else key]
        is_duration = isinstance(found, str) and not isinstance(fitted.value, str)
        value = parse_duration_ns(found) if is_duration else found
        assert value == fitted.value, fitted.parameter


def test_posted_totals_are_the_sums_of_the_groups() -> None:
    for table in load("group-idle").tables:
        for row in table.rows:
            *groups, total = (cell.published for cell in table.cells if cell.row == row)
            assert abs(sum(groups) - total) <= 2  # each is rounded


def test_the_page_has_the_rates_of_calls_as_posted() -> None:
    page = (MACHINES.parent / "docs" / "case-studies" / "nfs-rdma-pull-up.md").read_text()
    tables = [table for table in load("nfs-rdma").tables if table.key in ("calls_write", "calls_read")]
    rates = [cell.published for table in tables for cell in table.cells if cell.column == "IOPS"]
    assert len(rates) == 4
    for rate in rates:
        assert f"| {rate:,.0f} |" in page


@pytest.mark.parametrize(
    ("name", "rate", "latency"),
    [("ext3-tiobench", "write_rate", "write_latency_mean"), ("ext3-tiobench-32", "rate", "latency_mean")],
)
def test_posted_latencies_are_sums_of_three_runs_but_in_rows_that_contradict_themselves(
    name: str, rate: str, latency: str
) -> None:
    tables = {table.name.partition("/")[2]: table for table in load(name).tables}
    too_long = set()
    for of_rate, of_latency in zip(tables[rate].cells, tables[latency].cells, strict=True):
        threads = int(of_rate.row) if of_rate.row.isdecimal() else 32
        longest_ms = threads * 4096 / (of_rate.published * 2**20) * 1000
        assert of_latency.published > longest_ms
        assert of_latency.follows and of_latency.place and of_latency.place.runs == 3
        if of_latency.published > 3 * longest_ms:
            too_long.add(of_latency.name)
    assert too_long == {
        *(cell.name for cell in tables[rate].cells if cell.role == "not compared"),
        *(name for name in tables[rate].notes if name == "1/2.5.51-mm1"),
    }


# What is stored of the model


QUICK = {
    "bmap": ("writers", ["ext2"]),
    "ext3-tiobench": ("tiobench[threads=1]", ["2.4.20-pre10"]),
    "group-idle": ("readers[jobs_per_group=1]", ["queue_idle", "group_idle"]),
    "nfs-rdma": ("iozone", ["mapped"]),
    "cached-affinity": ("writes", ["2.6.24", "thread[rq_affinity=1]"]),
    "kernel-build": ("mkfs", ["original q0.c0.rq0"]),
    "fs-mark": ("small", ["3.6"]),
}
"""The part of each experiment that takes a few seconds."""


JSON = st.recursive(st.none() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one))


@given(JSON)
def test_what_is_stored_by_row_is_what_the_command_printed(value: object) -> None:
    assert json.loads(by_row(value)) == value


def test_a_cell_is_stored_as_a_row() -> None:
    stored = by_row({"unit": "s", "cells": [{"a": 1, "b": None}, {"a": 2}]})
    assert stored.splitlines()[3:5] == ['  {"a": 1, "b": null},', '  {"a": 2}']


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in QUICK if (RESULTS / f"{name}.json").exists()])
def test_stored_results_are_those_of_this_model(name: str, tmp_path: Path, state_dir: Path) -> None:
    """If this fails after a change of the model: `make reproduce`, and read the difference."""
    workload, settings = QUICK[name]
    stored = {table["name"]: table for table in json.loads((RESULTS / f"{name}.json").read_text())}
    published, whole = load(name), load_experiment(load(name).experiment)
    part = replace(
        whole,
        workloads={workload: whole.workloads[workload]},
        settings={setting: whole.settings[setting] for setting in settings},
    )
    with MachineExecutor() as executor:
        done = run(part, tmp_path / "run", executor=executor, progress=SilentDisplay())
    simulated = {
        (table.table.name, one.cell.row, one.cell.column): one.simulated
        for table in compare(published, read(done.path)).tables
        for one in table.compared
    }
    assert simulated
    for (table, row, column), value in simulated.items():
        kept = next(cell for cell in stored[table]["cells"] if (cell["row"], cell["column"]) == (row, column))
        assert value == kept["simulated"], f"{table}: {row}/{column}"


# The command


@pytest.mark.long
def test_it_runs_the_experiment_and_tells_each_cell(iolab: CommandLine, capsys: pytest.CaptureFixture[str]) -> None:
    iolab.write("experiment.toml", EXPERIMENT)
    path = str(iolab.write("figures.toml", FIGURES))
    rate = iolab("reproduce", path, "--rounds", "3", "--out", "kept", "--json").json()[0]
    assert rate["rounds"] == 3 and len(rate["cells"]) == 4
    assert invoke(["reproduce", path, "--from", str(iolab.cwd / "kept")]) == 0
    assert "The first reader gains. (its answer)" in capsys.readouterr().out
    # What is said of figures that no machine's pace decides.
    stored_run(iolab.cwd / "stored" / "figures", EXPERIMENT)
    kept = str(iolab.cwd / "stored")
    assert invoke(["reproduce", path, "--from", kept]) == 0
    shown = capsys.readouterr().out
    assert "figures/rate" in shown and "Fitted:" in shown
    assert "✗ The first reader gains. (its answer)" in shown
    assert invoke(["reproduce", path, "--from", kept, "--fail-on", "aim"]) == 1
    missed = capsys.readouterr().err
    assert "--fail-on holds: figures/rate: " in missed and "figures/claims.first: The first reader gains." in missed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["group-idel"], ("group-idel", "did you mean group-idle?")),
        (["none.toml"], ("none.toml", "cannot read")),
        (["--fail-on", "slower"], ("--fail-on", "aim")),
        (["--from", "a", "--seed", "1"], ("--seed", "nothing is run")),
        (["group-idle", "--from", "nowhere"], ("nowhere",)),
        (["renamed.toml"], ("renamed.toml:27: tables.rate.cell.workload: writers[jobs=1]", "unknown workload")),
        (["unset.toml"], ("unset.toml:62: claims.alike.setting: pined", "did you mean pinned?")),
        (["short.toml"], ("short.toml:56: claims: 1 round given",)),
        (["shorter.toml"], ("shorter.toml:1: rounds: 1 round given",)),
        (["astray.toml"], ("nowhere.toml", "cannot read")),
    ],
)
def test_wrong_input_is_one_clear_line(
    arguments: list[str],
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    (tmp_path / "once.toml").write_text(EXPERIMENT.replace("rounds = 2", "rounds = 1"))
    (tmp_path / "short.toml").write_text(FIGURES.replace("experiment.toml", "once.toml"))
    (tmp_path / "shorter.toml").write_text(f"rounds = 1\n{FIGURES}")
    (tmp_path / "renamed.toml").write_text(FIGURES.replace("readers[jobs={row}]", "writers[jobs={row}]"))
    (tmp_path / "unset.toml").write_text(FIGURES.replace('setting = "pinned"', 'setting = "pined"', 1))
    (tmp_path / "astray.toml").write_text(FIGURES.replace('"experiment.toml"', '"nowhere.toml"'))
    assert invoke(["reproduce", *arguments]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "Traceback" not in said
    for word in words:
        assert word in said
