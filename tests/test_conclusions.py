"""What a comparison comes to, in sentences."""

from __future__ import annotations

from iolab.domain.comparison import Comparison
from iolab.domain.verdict.judgement import judge
from iolab.presentation.table.conclusions import conclusions


def compared(metric: str, baseline: float, candidate: float) -> Comparison:
    ours, theirs = ([level * (1 + 0.001 * round_) for round_ in range(5)] for level in (baseline, candidate))
    return Comparison(metric, None, "b", "a", judge(ours, theirs, nature="cost"), "cost", 0)


def test_what_hardly_ever_happens_is_no_conclusion() -> None:
    rare, often = compared("switches_per_op", 0.0014, 0.0039), compared("switches_per_op", 0.5, 1.4)
    assert conclusions([rare]) == []
    assert [one.verdict for one in conclusions([often])] == ["worse"]
    slower = compared("cpu_ns_per_io", 0.001, 0.002)
    (one,) = conclusions([rare, slower])
    assert "CPU per I/O" in one.text and "switches" not in one.text
