"""`show --as json`: every value and verdict of the table, for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from iolab.base.strict_json import JsonObject, dumps
from iolab.domain.hosts import host_comparisons
from iolab.domain.machine import Model
from iolab.domain.summary import Jobs, Summary, summarise
from iolab.files.store import RunData
from iolab.presentation.table import axis, hosts
from iolab.presentation.table.conclusions import conclusions
from iolab.studies.reproduction.evidence import evidence


def render(run: RunData, metrics: Sequence[str] = (), jobs: Jobs | None = None) -> str:
    """The documented JSON of the run (`as_dict`); with `metrics` only those keys."""
    return dumps(as_dict(summarise(run, metrics=metrics, jobs=jobs), run)) + "\n"


def as_dict(summary: Summary, run: RunData) -> JsonObject:
    """The documented JSON of a run: what `show --json` and `run --json` print."""
    return {
        "run": str(run.path),
        "title": summary.title,
        "machine": summary.machine.name,
        "seed": summary.seed,
        "held_against_measurements": [asdict(one) for one in evidence(run)]
        if isinstance(summary.machine, Model)
        else None,
        "baseline": summary.baseline,
        "settings": summary.settings,
        "rounds": summary.rounds,
        "trials": summary.trials,
        "trials_not_ok": summary.trials_not_ok,
        "same_within": summary.same_within,
        "values": [
            {
                "workload": row.workload,
                "job": row.job,
                "metric": row.metric,
                "unit": row.unit,
                "better": row.better,
                "setting": setting,
                "median": cell.typical,
                "half_interquartile_range": cell.spread,
                "n": cell.n,
                "reason": cell.reason,
            }
            for row in summary.rows
            for setting, cell in row.cells.items()
        ],
        "conclusions": [
            {"verdict": one.verdict, "setting": one.setting, "text": one.text}
            for one in conclusions(summary.comparisons)
        ],
        "sweeps": axis.as_dicts(summary),
        "comparisons": [comparison.as_dict() for comparison in summary.comparisons],
        "hosts": [hosts.as_dict(one) for one in host_comparisons(run, summary)],
        "problems": summary.problems,
        "doubts": summary.doubts,
    }
