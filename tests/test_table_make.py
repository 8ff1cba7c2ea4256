"""The make table against the columns in which its seed posted it."""

from iolab.presentation.table.make import block

POSTED = """\
mkfs          Min     Avg     Max Std Dev
--------- ------- ------- ------- -------
q0.c0.rq0  17.814  23.850  30.322   6.265
q0.c0.rq1 526.265 526.265 526.265       -
q0.c1.rq0       -       -       -       -
"""


def test_a_line_per_setting_in_seconds() -> None:
    seconds = {"q0.c0.rq0": [30.322, 17.814, 23.414], "q0.c0.rq1": [526.265], "q0.c1.rq0": []}
    assert block("mkfs", seconds) == POSTED


def test_names_are_one_word_and_the_step_may_be_the_longest() -> None:
    lines = block("untar", {"a b": [1.0, 3.0]}).splitlines()
    assert lines[0].startswith("untar     Min")
    assert lines[2] == "a_b     1.000   2.000   3.000   1.414"
    assert len({len(line) for line in lines}) == 1
