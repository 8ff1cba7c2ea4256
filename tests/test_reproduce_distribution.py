"""Published distributions: the format, what each reading makes of them, and what the authors of the mails said."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iolab.base.errors import InputError
from iolab.presentation.cli.invoke import invoke
from iolab.studies.reproduction import load
from iolab.studies.reproduction.distributions import ComparedRows, Distribution, Reading
from support.figures import expect_problem, expect_understood_or_refused, figures

FIGURES = """\
title = "Times of May"
case_study = "000"
source = "a mail of 2001"

[distributions.build]
title = "make"
unit = "s"
rounds = 10
independent = { "each disk" = 12, "each round" = 1 }

[distributions.build.rows]
"old a" = [90, 100, 110, 4]
"old b" = [90, 103, 110, 4]
"new a" = [90, 101, 110, 4]
"new b" = [90, 104, 110, 4]

[distributions.build.compare.settings]
baseline = "old a"
candidate = "old *"
text = "Nothing favours either."
who = "the author"
verdict = ["same", "undecided"]

[distributions.build.compare.new]
baseline = "old *"
candidate = "new *"
pooled = true
"""


def build() -> Distribution:
    return figures(FIGURES).distributions[0]


def test_each_reading_judges_each_pair() -> None:
    by_disk, by_round = build().readings
    assert (by_disk.n, by_round.n) == (120, 10)
    assert [(one.pair.baseline, one.pair.candidate) for one in by_disk.compared] == [
        ("old a", "old b"),
        ("old *", "new *"),
    ]
    assert [one.contrast.verdict for one in by_disk.compared] == ["slower", "same"]
    assert [one.contrast.verdict for one in by_round.compared] == ["undecided", "undecided"]
    assert [one.contrast.difference for one in by_round.compared] == pytest.approx([3, 1])


def test_rounds_hold_as_many_values_as_are_independent() -> None:
    by_disk, by_round = (reading.compared[0] for reading in build().readings)
    assert by_round.rounds_to_see is not None and by_disk.rounds_to_see is not None
    assert by_disk.rounds_to_see == pytest.approx(by_round.rounds_to_see / 12, abs=1)


def test_what_was_said_is_met_or_not_by_each_reading() -> None:
    assert [(claim.text, claim.met) for claim in build().claims()] == [
        ("Nothing favours either. (the author): 0 of 1 same or undecided, if each disk is independent", False),
        ("Nothing favours either. (the author): 1 of 1 same or undecided, if each round is independent", True),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('unit = "s"\n', "", 5, ("distributions.build.unit", "missing")),
        ("rounds = 10", "rounds = 1", 8, ("rounds", "at least 2")),
        ('"each round" = 1', '"each round" = 0', 9, ("independent.each round", "at least 1")),
        ("independent = {", "independent = {} #", 9, ("independent", "at least one")),
        ('"old b" = [90, 103, 110, 4]', '"old b" = [90, 103, 110]', 13, ("rows.old b", "3 figures given")),
        ('"old b" = [90, 103, 110, 4]', '"old b" = [104, 103, 110, 4]', 13, ("rows.old b", "lowest <= mean")),
        ('"old b" = [90, 103, 110, 4]', '"old b" = [90, 103, 110, 0]', 13, ("rows.old b", "standard deviation")),
        ('baseline = "old a"', 'baseline = "old c"', 18, ("compare.settings.baseline", "old c", "no row")),
        ('baseline = "old a"', 'baseline = "old *"', 18, ("compare.settings.baseline", "2 rows", "pooled = true")),
        ('candidate = "old *"', 'candidate = "old a"', 19, ("compare.settings.candidate", "with itself")),
        ('candidate = "new *"', 'candidate = "*"', 26, ("compare.new.candidate", "old a, old b: compared with itself")),
        ('candidate = "old *"', 'candidate = "older"', 19, ("compare.settings.candidate", "no row")),
        ('who = "the author"\n', "", 17, ("compare.settings.who", "missing")),
        ('"undecided"]', '"undecide"]', 22, ("compare.settings.verdict", "did you mean undecided?")),
        ('verdict = ["same", "undecided"]\n', "", 17, ("compare.settings.verdict", "at least one verdict")),
        ("pooled = true", "pooled = 1", 27, ("compare.new.pooled", "true or false")),
        ("pooled = true", "poled = true", 27, ("compare.new.poled", "did you mean pooled?")),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old: str, new: str, line: int, words: tuple[str, ...]) -> None:
    assert old in FIGURES
    expect_problem(FIGURES.replace(old, new, 1), line, words)


@given(
    st.integers(0, len(FIGURES.splitlines()) - 1),
    st.sampled_from(["", "x = 1", '"old b" = [1]', "rounds = 2", '"old a" = [1, 2, 3, 1.9]', "pooled = true", '"']),
)
def test_whatever_is_written_is_understood_or_refused(line: int, instead: str) -> None:
    expect_understood_or_refused(FIGURES, line, instead)


def test_means_that_are_not_clear_of_zero_are_refused() -> None:
    with pytest.raises(InputError, match=r"figures.toml:11: distributions.build.rows: .* not clear of zero"):
        figures(FIGURES.replace("rounds = 10", "rounds = 2").replace(", 4]", ", 50]"))


def test_the_command_needs_no_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "figures.toml"
    path.write_text(FIGURES)
    assert invoke(["reproduce", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "✗ Nothing favours either." in shown and "slower" in shown
    assert invoke(["reproduce", str(path), "--from", str(tmp_path), "--json", "--fail-on", "aim"]) == 1
    told = capsys.readouterr()
    (found,) = json.loads(told.out)
    assert (found["kind"], found["rows"]["old a"]["sd"]) == ("distribution", 4)
    assert [reading["compared"][0]["verdict"] for reading in found["readings"]] == ["slower", "undecided"]
    assert "figures/build: Nothing favours either." in told.err


# The kernel's sources on twelve disks


@pytest.fixture(scope="module")
def of_2008() -> dict[str, Distribution]:
    return {one.name.partition("/")[2]: one for one in load("kernel-build").distributions}


def settings_in(reading: Reading) -> list[ComparedRows]:
    return [one for one in reading.compared if one.question.name != "kthread"]


def test_by_rounds_no_difference_can_be_deduced(of_2008: dict[str, Distribution]) -> None:
    assert list(of_2008) == ["mkfs", "untar", "make", "clean"]
    for name, distribution in of_2008.items():
        by_disk, by_round = distribution.readings
        verdicts = {one.contrast.verdict for one in settings_in(by_round)}
        assert verdicts == ({"same"} if name == "make" else {"undecided"})
        assert len(settings_in(by_disk)) == len(settings_in(by_round)) == 8


def test_the_authors_worry_hangs_on_what_is_independent(of_2008: dict[str, Distribution]) -> None:
    for name, more in (("mkfs", 0.0349), ("untar", 0.0307)):
        pooled = [reading.compared[-1] for reading in of_2008[name].readings]
        assert [one.contrast.verdict for one in pooled] == ["slower", "undecided"]
        assert [one.contrast.ratio for one in pooled] == pytest.approx([1 + more] * 2, abs=1e-4)
        by_round = pooled[1].rounds_to_see
        assert by_round is not None and 30 <= by_round <= 37
