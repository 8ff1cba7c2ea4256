"""`show --as iostest`: the AVERAGE table, a column per weighted group and their total, in KB/s of 1024 bytes.

A table per setting, a line per number of jobs in each group (NR). Values are means over the rounds. If there are
several sorts of jobs side by side there is a line for each and one for all. Below stand Jain's index against the
weights and the worst-off group's share of what it is entitled to, which the classic table leaves to the reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from iolab.base.errors import InputError
from iolab.domain.metric import ALL
from iolab.domain.record import TargetObservation
from iolab.domain.summary import values_by_setting
from iolab.domain.workload.iostest import IostestOptions, group_name

if TYPE_CHECKING:
    import polars

    from iolab.files.store import RunData

KIB = 1024
RULE_LENGTH = 73
ABSENT = "-"
FAIRNESS = {
    "fairness_jain_weighted": "Jain's index of the rates per weight",
    "share_of_entitlement": "worst-off group's share over its entitlement",
}
"""Metric -> what the line below the table calls it."""


@dataclass(frozen=True)
class Member:
    """One workload of a table: one number of jobs per group."""

    workload: str
    options: IostestOptions

    @property
    def shape(self) -> tuple[Any, ...]:
        """What the members of one table have in common."""
        options = self.options
        return (options.job, options.group_weights, options.file_size, options.block_size, options.controller)


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The tables. InputError if the run has no workload of kind iostest, or if metrics are asked for."""
    if metrics:
        raise InputError("the iostest table has fixed columns", where="--metric", remedy="leave --metric out")
    parts = [_table(run, setting, members) for setting in run.settings for members in _tables(_members(run, setting))]
    if not parts:
        raise InputError(
            "the run has no workload of kind iostest",
            where=str(run.path),
            remedy="show it as plain, csv, markdown or json",
        )
    return "\n".join(parts)


def _members(run: RunData, setting: str) -> list[Member]:
    options = {name: run.experiment.workload_under(name, setting).options for name in run.workloads}
    return [Member(name, found) for name, found in options.items() if isinstance(found, IostestOptions)]


def _tables(members: list[Member]) -> Iterator[list[Member]]:
    """Members of one shape, rising numbers of jobs."""
    shapes = [member.shape for member in members]
    for shape in [shape for place, shape in enumerate(shapes) if shape not in shapes[:place]]:
        alike = [member for member in members if member.shape == shape]
        yield sorted(alike, key=lambda member: member.options.jobs_per_group)


def _table(run: RunData, setting: str, members: list[Member]) -> str:
    options = members[0].options
    groups = [group_name(number) for number in range(1, options.groups + 1)]
    rows = [row for member in members for row in _rows(run, setting, member, groups)]
    widths = [max(map(len, column)) for column in zip(("job", "Set", "NR", *groups, "total"), *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        return " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    dashes = f"{'-' * widths[0]} --- {'-' * widths[2]} {'-' * (sum(widths[3:]) + len(groups))}"
    return "\n".join(
        (
            *_header(run, setting, members[0]),
            "=" * RULE_LENGTH,
            f"AVERAGE[{options.job}] [bw in KB/s]",
            "-------",
            line(("job", "Set", "NR", *groups, "total")),
            dashes,
            *(line(row) for row in rows),
            "",
            *_fairness(run, setting, members),
            "",
        )
    )


def _header(run: RunData, setting: str, member: Member) -> Iterator[str]:
    """What the table holds for, as pairs."""
    options = member.options
    trials = run.trials.filter(_of(member.workload, setting))
    observed = run.record(trials["trial"][0]).observed if trials.height else TargetObservation()
    device, filesystem = observed.get("device", {}), observed.get("filesystem", {})
    scheduler = _in_force(device.get("scheduler"))
    yield f"*** {setting}"
    model = observed.get("model", {})
    yield f"Kernel={model.get('kernel') or _fact(_release(run))}"
    yield f"GROUPMODE={int(options.controller != 'none')} NRGRP={options.groups}"
    on = model.get("name") or f"/dev/{_fact(device.get('name'))}"
    yield f"DIR={_fact(filesystem.get('mount_point'))} DEV={on}"
    yield (
        f"Workload={options.job} iosched={scheduler} Filesz={_size(options.file_size)} bs={_size(options.block_size)}"
    )
    tunables = _tunables(run, device.get("scheduler_tunables"))
    weights = ",".join(map(str, options.group_weights))
    controller = [f"controller={_controller(options, scheduler)}"] if options.controller != "none" else []
    yield " ".join([*tunables, *controller, f"weights={weights}", f"rounds={trials['round'].n_unique()}"])


def _release(run: RunData) -> Any:
    kernel = run.machine.get("kernel")
    return kernel.get("release") if isinstance(kernel, dict) else None


def _controller(options: IostestOptions, scheduler: str) -> str:
    """Who enforced the weights: auto takes the scheduler when it can, else io.cost."""
    if options.controller != "auto":
        return options.controller
    return scheduler if scheduler in ("bfq", "cfq") else "cost"


def _tunables(run: RunData, in_force: Any) -> list[str]:
    """Those that any setting of the run names, with the value in force."""
    named = {
        name
        for controls in run.experiment.settings.values()
        if isinstance(scheduler := controls.get("scheduler"), dict)
        for name in scheduler
        if name != "name"
    }
    found = in_force if isinstance(in_force, dict) else {}
    return [f"{name}={_fact(value)}" for name, value in found.items() if name in named]


def _rows(run: RunData, setting: str, member: Member, groups: list[str]) -> Iterator[list[str]]:
    """The line of all jobs; before it, of several sorts, a line for each."""
    options = member.options
    rates = _rates(run, setting, member.workload)
    number = str(options.jobs_per_group)
    if len(options.sorts) > 1:
        for sort in options.sorts:
            jobs = [[f"{group}.{sort}.{job}" for job in range(1, options.jobs_per_group + 1)] for group in groups]
            values = [_sum(rates.get(name) for name in names) for names in jobs]
            yield [sort, "1", number, *map(_kib, values), _kib(_sum(values))]
    values = [rates.get(group) for group in groups]
    yield [options.job, "1", number, *map(_kib, values), _kib(_sum(values))]


def _rates(run: RunData, setting: str, workload: str) -> dict[str, float]:
    """Means over the rounds, in bytes per second, by job and by group."""
    import polars as pl

    rows = run.job_metrics(workload=workload, setting=setting)
    rates = rows.filter(
        (pl.col("metric") == "rate_bytes_per_s") & (pl.col("op") == ALL) & pl.col("value").is_not_null()
    )
    return dict(rates.group_by("job").agg(pl.col("value").mean()).iter_rows())


def _fairness(run: RunData, setting: str, members: list[Member]) -> Iterator[str]:
    values = values_by_setting(run, list(FAIRNESS))
    for key, words in FAIRNESS.items():
        cells = []
        for member in members:
            numbers = values.get((member.workload, key), {}).get(setting, [])
            found = [number for number in numbers if number is not None]
            cells.append(f"NR={member.options.jobs_per_group} {f'{fmean(found):.4f}' if found else ABSENT}")
        yield f"{words}: {', '.join(cells)}"


def _of(workload: str, setting: str) -> polars.Expr:
    import polars as pl

    return (pl.col("workload") == workload) & (pl.col("setting") == setting)


def _sum(values: Any) -> float | None:
    """None when any is."""
    found = list(values)
    return None if None in found else sum(found)


def _kib(rate_bytes_per_s: float | None) -> str:
    return ABSENT if rate_bytes_per_s is None else f"{rate_bytes_per_s / KIB:.0f}"


def _size(size_bytes: int) -> str:
    """512M, 4K: as the tool's command line has it."""
    for unit, suffix in ((2**30, "G"), (2**20, "M"), (KIB, "K")):
        if size_bytes % unit == 0:
            return f"{size_bytes // unit}{suffix}"
    return str(size_bytes)


def _in_force(shown: Any) -> str:
    """`none [bfq]` -> bfq."""
    text = _fact(shown)
    return text.partition("[")[2].partition("]")[0] or text


def _fact(fact: Any) -> str:
    return ABSENT if fact is None or isinstance(fact, dict) else str(fact)
