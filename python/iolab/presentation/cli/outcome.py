"""How a command that measured ends: the table, the verdicts in words, where the run lies, the exit status;
and `--fail-on`: conditions under which a command that did its work ends with status 1."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from iolab.base.errors import EXIT_CONDITION, InputError, unknown
from iolab.base.plain_text import counted, listed
from iolab.domain.definition import GAINS, LOSSES, Verdict
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.domain.comparison import Comparison
    from iolab.files.store import RunData
    from iolab.studies.run import parts

SEARCHES_SHOWN_MAX = 3
LATE_PERCENT_TOLD = 1.0
"""The percentage of late arrivals, caused by the threads themselves, above which they are reported."""


def show_outcome(
    path: Path, *, as_json: bool, fail_on: Sequence[str], report: Path | None = None, again: str = ""
) -> None:
    """Prints the run in `path`, and ends the command with status 1 if a `fail_on` condition holds, or if no trial was
    measured to its end, of all or of a setting. `again`: the command line that continues a run of several boots."""
    from iolab.domain.machine import Model
    from iolab.domain.summary import summarise
    from iolab.files.store import read
    from iolab.studies.run import parts

    data = read(path)
    boots = parts.progress(data.experiment, data.state) if data.experiment.parts else None
    if boots is not None and not min(boots.done.values()):
        _show_boots(path, boots, again, as_json=as_json)
        if fail_on:
            print("iolab: --fail-on is judged when each part has a trial, and not yet", file=sys.stderr)
        return
    summary = summarise(data)
    if as_json:
        from iolab.presentation.table.json import as_dict

        of_boots = {} if boots is None else {"parts": boots.as_dict()}
        print_json({**as_dict(summary, data), "report": None if report is None else str(report), **of_boots})
    else:
        from rich.text import Text

        from iolab.domain.hosts import host_comparisons
        from iolab.presentation.table import hosts
        from iolab.presentation.table.plain import tables
        from iolab.presentation.terminal import show

        show(tables(summary))
        print(f"\nRun:    {path}")
        for place, of_hosts in enumerate(host_comparisons(data, summary)):
            print(f"{'' if place else 'Hosts:':7} {hosts.sentence(of_hosts)}")
        if verified := _verified(data):
            print(f"Data:   {verified}")
        for metric, (word, title) in LOOKED_FOR.items():
            for place, text in enumerate(_looked_for(data, metric, word)):
                show(Text(f"{'' if place else title:7} {text}"))
        for place, text in enumerate(_replayed(data)):
            print(f"{'' if place else 'Replay:':7} {text}")
        if isinstance(data.experiment.machine, Model):
            from iolab.studies.reproduction.evidence import trust

            for place, text in enumerate(trust(data)):
                print(f"{'' if place else 'Trust:':7} {text}")
        print(f"Report: {report}" if report is not None else f"Next:   iolab report {path} -o report.html")
        _print_what_probes_saw(data)
        if boots is not None:
            print(*parts.lines(boots, again), sep="\n")
    _exit_if_all_failed(data)
    from iolab.presentation.table.words import lacking, without_values

    exit_if_met(
        fail_on,
        summary.comparisons,
        trials_not_ok=summary.trials_not_ok,
        lacking=lacking(summary),
        without_values=without_values(data, summary),
    )


def _show_boots(path: Path, boots: parts.Progress, again: str, *, as_json: bool) -> None:
    """Shows the progress of a run in which a part has nothing to compare with yet."""
    from iolab.studies.run import parts

    if as_json:
        print_json({"run": str(path), "comparisons": [], "parts": boots.as_dict()})
    else:
        print(f"Run:    {path}")
        print(*parts.lines(boots, again), sep="\n")


def _verified(data: RunData) -> str | None:
    """How much was read and checked, of workloads that verify: `2,048 blocks (8 MiB) verified, all as written`."""
    workloads = data.experiment.workloads.values()
    devices = data.experiment.target.devices
    if not any(phase.verifies for one in workloads for phase in one.phases(seed=0, devices=devices)):
        return None
    observed = (data.record(trial).observed for trial in data.trials["trial"])
    found = [one["verified"] for one in observed if "verified" in one]
    blocks, size = sum(one["blocks"] for one in found), sum(one["bytes"] for one in found)
    wrong = sum(one["wrong"] for one in found)
    how = f"{wrong:,} wrong" if wrong else "all as written"
    from iolab.base.quantity import size_in_words  # it loads the engine

    return f"{counted(blocks, 'block')} ({size_in_words(size)}) verified, {how}" if blocks else None


LOOKED_FOR = {"queue_depth_found": ("queue depth", "Search:"), "steady_after_ns": ("steady state", "Steady:")}
"""What a workload was run to find, by metric: the words in a job's note of it, and the title of those lines."""


def _looked_for(data: RunData, metric: str, words: str) -> list[str]:
    """What the jobs' searches came to in each trial, of workloads that have one."""
    searched = data.metrics.filter(data.metrics["metric"] == metric)
    notes = []
    for trial, number, setting in searched.select("trial", "round", "setting").unique(maintain_order=True).iter_rows():
        place = f"round {number + 1}" + (f" under {setting}" if len(data.settings) > 1 else "")
        notes += [f"{place}: {note}" for note in data.record(trial).notes if "job " in note and words in note]
    more = [f"{len(notes) - SEARCHES_SHOWN_MAX} more: iolab show {data.path} --metric {metric}"]
    return notes if len(notes) <= SEARCHES_SHOWN_MAX else notes[:SEARCHES_SHOWN_MAX] + more


def _replayed(data: RunData) -> list[str]:
    """How faithful the replays of traces were under each setting, at worst; first the one that was latest."""
    from iolab.base.quantity import plain
    from iolab.domain.trial.phase import REPLAY_MEASURES

    seen = data.metrics
    by_lateness: list[tuple[float, float, str]] = []
    for workload, setting in seen.select("workload", "setting").unique().sort("workload", "setting").iter_rows():
        own = seen.filter((seen["workload"] == workload) & (seen["setting"] == setting))
        of = {name: own.filter(own["metric"] == name)["value"].drop_nulls() for name in REPLAY_MEASURES}
        late, full = of["arrivals_late_percent"], of["arrivals_late_queue_full_percent"]
        p99, rate, depth = of["lateness_ns_p99"], of["arrival_rate_share"], of["queue_depth_distance"]
        refused = of["refused_discards"]
        if late.is_empty():
            continue
        worst = float(late.max())  # type: ignore[arg-type]
        line = f"{plain(worst, 3)} % of arrivals late, by more than 100 µs"
        line += "" if p99.is_empty() else f" (99 % within {plain(float(p99.max()) / 1e3, 3)} µs)"  # type: ignore[arg-type]
        if not full.is_empty() and float(full.max()) > 0:  # type: ignore[arg-type]
            line += f", {plain(float(full.max()), 3)} % late because the queue was full"  # type: ignore[arg-type]
        line += "" if rate.is_empty() else f", at {plain(float(rate.mean()), 4)} x the rate"  # type: ignore[arg-type]
        if not depth.is_empty():
            line += f", queue depth off by {plain(float(depth.max()), 3)}"  # type: ignore[arg-type]
        if not refused.is_empty() and (count := int(refused.max())):  # type: ignore[arg-type]
            line += f"; discards refused: {count} (the target takes none)"
        busy = worst - (0.0 if full.is_empty() else float(full.max()))  # type: ignore[arg-type]
        realtime = getattr(data.experiment.workloads[workload].options, "realtime", None)
        if busy > LATE_PERCENT_TOLD and realtime is False and "model" not in data.machine:
            line += "; other work on the CPUs makes arrivals late: realtime = true (--realtime) goes before it"
        arm = [workload] * (len(data.workloads) > 1) + [setting] * (len(data.settings) > 1)
        latest = 0.0 if p99.is_empty() else float(p99.max())  # type: ignore[arg-type]
        by_lateness.append((worst, latest, ": ".join([*arm, line])))
    return [line for _, _, line in sorted(by_lateness, key=lambda one: one[:2], reverse=True)]


def _print_what_probes_saw(data: RunData) -> None:
    """Names the command that shows their metrics, which are many and not compared unless asked for."""
    from iolab.domain.metric import METRICS
    from iolab.presentation.table import OF_PROBES

    values = data.metrics.filter(data.metrics["value"].is_not_null())
    seen = [
        metric
        for name in values["metric"].unique(maintain_order=True)
        if (metric := METRICS.get(name)) and metric.probe
    ]
    probes = list(dict.fromkeys(metric.probe for metric in seen))
    if not probes:
        return
    print(f"Probes: {', '.join(map(str, probes))}; numbers: iolab show {data.path} --metric {seen[0].name}")
    if tables := [probe for probe in OF_PROBES if probe in probes]:
        print(f"        tables: iolab show {data.path} --as {'|'.join(tables)}")


def _exit_if_all_failed(data: RunData) -> None:
    """If each trial failed, or each of a setting."""
    from iolab.domain.summary import failed_settings

    failed = failed_settings(data)
    if set(data.trials["status"]) <= {"failed", "impossible"}:
        none = f"none of the run's {counted(data.trials.height, 'trial')} was measured to its end"
    elif failed:
        none = f"no trial was measured to its end under {listed(list(failed), NAMED_MAX)}"
    else:
        return
    print(f"iolab: {none}; why: iolab show {data.path}", file=sys.stderr)
    raise typer.Exit(EXIT_CONDITION)


VERDICT_CONDITIONS: dict[str, frozenset[Verdict]] = {
    "slower": LOSSES,
    "worse": LOSSES,
    "faster": GAINS,
    "better": GAINS,
    "undecided": frozenset({"undecided"}),
}
"""The verdicts under which each holds: whatever a metric's nature calls a change in its bad direction, or its good one.
A metric of which neither way is better meets none of them."""
NAMED_MAX = 5
CONDITIONS = (*VERDICT_CONDITIONS, "faulty")


def check_conditions(given: Sequence[str] | None) -> list[str]:
    """The conditions as given, one by one or with commas. InputError names one that doesn't exist."""
    conditions = [word for text in given or () for word in text.split(",")]
    for word in conditions:
        if word not in CONDITIONS:
            raise InputError(f"{word}: {unknown('condition', word, CONDITIONS)}", where="--fail-on")
    return conditions


def refuse_without_comparison(conditions: Sequence[str], without_values: str = "") -> None:
    """For whoever has nothing to compare: InputError if a condition is of a verdict, as a gate that cannot fail is
    none. `without_values`: why settings have no values, if that is the cause."""
    of_verdicts = [word for word in conditions if word in VERDICT_CONDITIONS]
    if of_verdicts:
        raise InputError(
            f"{of_verdicts[0]}: can never hold, {without_values or 'nothing is compared'}",
            where="--fail-on",
            remedy="measure longer, or name a metric that has values"
            if without_values
            else "give the experiment a second setting, or compare two runs: iolab compare OLD NEW --fail-on slower",
        )


def exit_if_met(
    conditions: Sequence[str],
    comparisons: Sequence[Comparison],
    *,
    trials_not_ok: int = 0,
    lacking: Sequence[str] = (),
    without_values: str = "",
) -> None:
    """Prints on stderr which conditions hold, and ends the command with status 1 if any does.

    InputError if a condition is of a verdict and none can have it, because no metric has a better direction or values
    under both settings: a gate that cannot fail is none. Of some metrics without values, a line on stderr.

    Args:
        lacking: what was asked for and has no value under any setting.
        without_values: why settings have no values, if nothing is compared for that.
    """
    from iolab.domain.comparison import RARE
    from iolab.presentation.table.words import label, undirected

    directed = [word for word in conditions if VERDICT_CONDITIONS.get(word, frozenset()) & (LOSSES | GAINS)]
    if directed and comparisons and all(comparison.nature == "neutral" for comparison in comparisons):
        raise InputError(
            f"{directed[0]}: can never hold, neither way is better of {label(comparisons[0].metric)}",
            where="--fail-on",
            remedy="compare a metric with a direction too (`iolab list metrics`), or give one: iolab compare "
            "--lower-is-better METRIC",
        )
    if directed and (lines := undirected(comparisons)):
        print(f"iolab: --fail-on leaves some out, as {lines[0]}", file=sys.stderr)
    verdicts = frozenset[str]().union(*(VERDICT_CONDITIONS.get(condition, ()) for condition in conditions))
    met: list[str] = []
    rare: list[str] = []
    for one in comparisons:
        if one.judgement.verdict in verdicts:
            named = " ".join(filter(None, (one.place, label(one.metric), one.setting, one.judgement.verdict)))
            (rare if one.is_rare else met).append(named)
    if rare:
        left_out = f"--fail-on leaves out what happens less than {RARE:g} times per operation"
        print(f"iolab: {left_out}: {listed(rare, NAMED_MAX)}", file=sys.stderr)
    if "faulty" in conditions and trials_not_ok:
        met.append(f"{counted(trials_not_ok, 'trial is', 'trials are')} not ok")
    if met:
        rest = f"; and {len(met) - NAMED_MAX} more" if len(met) > NAMED_MAX else ""
        print(f"iolab: --fail-on holds: {'; '.join(met[:NAMED_MAX])}{rest}", file=sys.stderr)
        raise typer.Exit(EXIT_CONDITION)
    unseen = [f"{label(one.metric)} of {one.place or one.setting}" for one in comparisons if not one.judgement.has_both]
    unseen = list(dict.fromkeys([*lacking, *unseen]))
    if not any(one.judgement.has_both for one in comparisons):
        why = f"no round has values of both settings of {listed(unseen, NAMED_MAX)}" if comparisons else ""
        refuse_without_comparison(conditions, without_values or why)
    elif unseen and verdicts:
        print(f"iolab: --fail-on cannot see what lacks values to compare: {listed(unseen, NAMED_MAX)}", file=sys.stderr)
