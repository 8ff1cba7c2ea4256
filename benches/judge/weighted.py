"""Groups that share a drive by weights under BFQ: the loads that are asked of io.cost, on the same drives."""

from dataclasses import replace

from judge import costed
from judge.configuration import Configuration

KERNEL = costed.KERNEL


def configurations() -> list[Configuration]:
    return [_by_bfq(asked) for asked in costed.configurations()]


def _by_bfq(asked: Configuration) -> Configuration:
    return replace(asked, scheduler="bfq", tunables={"low_latency": 0}, cost_model="", cost_qos="")
