"""A percentile is told where ten values lie beyond it, and is never above the maximum, wherever it comes from."""

import pytest
from iolab.base.histogram import known_quantile
from iolab.presentation.table.trace import _quantiles
from iolab.presentation.terminal import text_of


@pytest.mark.parametrize(("share", "needed"), [(0.5, 20), (0.9, 100), (0.99, 1000), (0.999, 10_000)])
def test_ten_values_lie_beyond(share: float, needed: int) -> None:
    assert known_quantile([(1, 1, needed - 1)], share, 1.0) is None
    assert known_quantile([(1, 1, needed)], share, 1.0) == 1


def test_a_bucket_may_end_above_the_maximum_and_a_percentile_does_not() -> None:
    assert known_quantile([(5_063_000, 5_112_000, 1000)], 0.99, 5_103_000.0) == 5_103_000


def test_a_trace_of_few_requests_has_no_far_percentiles() -> None:
    def row(count: int) -> dict[str, float]:
        told = dict.fromkeys(("p50", "p90", "p99", "p99_9", "p99_99"), 2_010_000.0)
        return {"count": count, "mean": 1_000_000.0, "max": 2_000_000.0, **told}

    few = text_of(_quantiles("Stages", "stage", [("device", row(18))]))
    assert "p50" not in few and "max" in few
    assert "A percentile is shown if 10 requests lie beyond it." in " ".join(few.split())
    many = text_of(_quantiles("Stages", "stage", [("device", row(1000))]))
    assert "p99 " in many and "p99.9" not in many and "2,010" not in many
