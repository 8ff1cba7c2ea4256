"""Settings that `alone = true` of a mix adds: each group of it by itself, under everything else of each setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iolab.base.problem import Problems
from iolab.domain.workload.mix import MixOptions
from iolab.files.experiment.setting import Setting
from iolab.files.experiment.workloads import Workload


def with_groups_alone(settings: list[Setting], workloads: Sequence[Workload], problems: Problems) -> list[Setting]:
    """The settings, each followed by those in which one group runs alone; none are added unless a mix asks for them."""
    asking = [workload for workload in workloads if _groups_of(workload)]
    if not asking:
        return settings
    first = asking[0]
    key = ("workloads", first.written_as, "alone")
    others = [workload for workload in workloads if _groups_of(workload) != _groups_of(first)]
    if others:
        what = f"adds settings, which {others[0].name} would have too; give each workload alone and the same groups"
        problems.add(key, what)
        return settings
    found: list[Setting] = []
    for setting in settings:
        found.append(setting)
        if "only" in setting.changes:
            problems.add(
                setting.change_paths["only"], f"{first.name} has alone = true, which sets it; keep one of them"
            )
            continue
        for group in _groups_of(first):
            found.append(
                replace(
                    setting,
                    name=f"{setting.name} {group} alone",
                    changes={**setting.changes, "only": [group]},
                    change_paths={**setting.change_paths, "only": key},
                )
            )
    names = [setting.name for setting in settings]
    for setting in found:
        if setting.name in names and setting not in settings:
            problems.add(("settings", setting.name), "the name of a setting that alone = true adds; choose another")
    return found


def _groups_of(workload: Workload) -> list[str]:
    """The groups that are to run alone."""
    options = workload.compiled.options
    return options.with_jobs if isinstance(options, MixOptions) and options.alone else []
