"""The tables of the reference pages, made from the registries that parse and explain the same options.

A page of docs/ marks where a table stands; `make golden` writes it, `make check` compares.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Callable, Iterable
from typing import TypedDict

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from iolab.base import data, toml
from iolab.base.option import expected, extras, written
from iolab.base.plain_text import markdown_table
from iolab.domain import layer
from iolab.domain.control import CONTROLS, settings_table
from iolab.domain.definition import TOOL_METRICS
from iolab.domain.metric import METRICS, ops_of
from iolab.domain.probe import PROBES
from iolab.domain.workload import KINDS
from iolab.domain.workload.fio_file.option import FORBIDDEN, OPTIONS, known
from iolab.domain.workload.group import GroupOptions
from iolab.domain.workload.job import JobOptions, PhaseOptions
from iolab.domain.workload.mix import MixOptions
from iolab.files.experiment.options import TARGETS, CompareOptions, ExperimentOptions
from iolab.files.experiment.tune import TuneOptions
from iolab.files.importer.formats import FORMATS
from iolab.files.machine_file.keys import Key, keys, read_when
from iolab.presentation.table import claim
from iolab.studies.claims import library
from iolab.studies.reproduction import options
from iolab.studies.reproduction.part import Part
from iolab.studies.reproduction.scorecard import (
    distributions_markdown,
    markdown,
    overall,
    statements_markdown,
    stored,
    summary_markdown,
)

PROSE_WIDTH = 100
"""Columns of a line of docs/."""


def render(name: str) -> str:
    """The Markdown of one table: a key of `TABLES`, `KIND-options` for a workload kind's options, or `probe-NAME`."""
    if name in TABLES:
        return TABLES[name]()
    if name.startswith("probe-"):
        return _probe_tables(name.removeprefix("probe-"))

    return options_table(KINDS[name.removesuffix("-options")].options)


class DescribedOption(TypedDict):
    """An option of a table, as `iolab list` prints it."""

    name: str
    takes: str
    unit: str | None
    default: str
    required: bool
    help: str


def options_json(model: type[BaseModel]) -> list[DescribedOption]:
    """The options of a table as data: name, what it takes, unit, default, help."""
    return [_described(name, field) for name, field in model.model_fields.items()]


def options_table(model: type[BaseModel], *, only: Iterable[str] | None = None) -> str:
    """The options of a table as Markdown."""
    wanted = set(model.model_fields if only is None else only)
    rows = [
        (f"`{option['name']}`", option["takes"], option["default"], option["help"])
        for option in options_json(model)
        if option["name"] in wanted
    ]
    return markdown_table(("option", "takes", "default", "what it does"), rows)


def _described(name: str, field: FieldInfo) -> DescribedOption:
    noted = extras(field)
    return {
        "name": name,
        "takes": expected(field),
        "unit": noted.get("unit"),
        "default": noted.get("default_is") or _default(field),
        "required": field.is_required(),
        "help": field.description or "",
    }


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    if field.default is None:
        return "none"
    if isinstance(field.default, dict):  # sizes with weights; there is one size in a default
        return " ".join(f"`{written(size, extras(field).get('unit'))}`" for size in field.default)
    return f"`{written(field.default, extras(field).get('unit'))}`"


def _groups_phase_table() -> str:
    """What a mix with groups takes beside the options of its phase."""
    own = [name for name in MixOptions.model_fields if name not in {*PhaseOptions.model_fields, "jobs", "ends_with"}]
    return options_table(MixOptions, only=own)


def _kinds_table() -> str:
    rows = [(f"[`{kind.name}`](workloads/{kind.name}.md)", kind.help) for kind in KINDS.values()]
    return markdown_table(("kind", "what it is"), rows)


def _fio_job_table() -> str:
    aliases = {name: alias for alias, name in known().names.items() if alias != name}
    rows = [
        (f"`{name}`" + (f", `{aliases[name]}`" if name in aliases else ""), option.state, option.help)
        for name, option in OPTIONS.items()
    ]
    return markdown_table(("option", "on iolab's engine", "effect"), rows)


def _fio_refused_table() -> str:
    by_reason: dict[str, list[str]] = {}
    for name, reason in FORBIDDEN.items():
        by_reason.setdefault(reason, []).append(f"`{name}`")
    return markdown_table(("option", "why"), [(", ".join(names), reason) for reason, names in by_reason.items()])


def _metrics_table() -> str:
    rows = [
        (f"`{m.name}`", m.unit, m.nature, ", ".join(ops_of(m)), "yes" if m.per_job else "", m.help)
        for m in METRICS.values()
        if m.probe is None
    ]
    return markdown_table(("metric", "unit", "nature", "of", "per job", "what it is"), rows)


def _probes_table() -> str:
    rows = [(f"[`{probe.name}`](#{probe.name})", probe.help, ", ".join(probe.needs)) for probe in PROBES.values()]
    return markdown_table(("probe", "what it reads", "from"), rows)


def _probe_tables(name: str) -> str:
    """A probe's options, and the metrics that it gives."""
    probe = PROBES[name]
    options = options_table(probe.options) if probe.options.model_fields else "No options.\n"
    metrics = [(f"`{m.name}`", m.unit, m.nature, m.help) for m in probe.metrics]
    return options + "\n" + markdown_table(("metric", "unit", "nature", "what it is"), metrics)


def _tool_metrics_table() -> str:
    rows = [(f"`{m.name}`", m.unit, m.nature, m.help) for m in TOOL_METRICS.values()]
    return markdown_table(("metric", "unit", "nature", "what it is"), rows)


def _formats_table() -> str:
    return markdown_table(("format", "what it reads"), [(f"`{one.name}`", one.help) for one in FORMATS.values()])


def _model_settings_table() -> str:
    """The controls that reach a simulated machine, with the keys of its file that they set, from their own examples."""
    rows = []
    for control in CONTROLS.values():
        example = control.validate_for_model(tomllib.loads(control.example_line)[control.name])
        keys = control.on_model(example, drives=1)
        if keys is not None:
            paths = ", ".join(f"`{'.'.join(path)}`".replace("drives.0", "drives.N") for path in keys)
            rows.append((f"`{control.name}`", paths or "none: each measured phase"))
    return markdown_table(("setting", "keys of the machine's file"), rows)


def _examples_table() -> str:
    known = data.experiments()
    asked = {name: toml.parse(known[name].read_text(), str(known[name])).values for name in data.EXAMPLES}
    rows = [(f"`{name}`", str(one["title"]), f"`{one.get('machine', 'host')}`") for name, one in asked.items()]
    return markdown_table(("example", "question", "machine"), rows)


def _tune_ranges_table() -> str:
    """What `iolab tune` tries of a control whose values an experiment leaves out."""
    rows = []
    for control in CONTROLS.values():
        if isinstance(control.tried, tuple):
            rows.append((f"`{control.name}`", ", ".join(map(str, control.tried))))
        elif control.tried is not None:
            way = ", each twice the one before" if control.tried.log else ""
            rows.append((f"`{control.name}`", f"{control.tried.low} to {control.tried.high}{way}"))
    return markdown_table(("setting", "tried with `{}`"), rows)


def _options(model: type[BaseModel]) -> Callable[[], str]:
    return lambda: options_table(model)


def _claims() -> str:
    rows = [
        (
            f"[{one.published.name}](claims/{one.published.name}.md)",
            one.date,
            claim.summary(one)["asked_by"],
            claim.summary(one)["state"],
        )
        for one in library.stated()
    ]
    return markdown_table(("claim", "date", "asked by", "state"), rows)


def _claim_counts() -> str:
    return _filled(claim.claims_in_words([library.load(name) for name in library.names()]))


def _scorecard(written: Callable[[list[Part]], str]) -> Callable[[], str]:
    return lambda: written(stored())


def _filled(text: str) -> str:
    return textwrap.fill(text, PROSE_WIDTH, break_on_hyphens=False, break_long_words=False) + "\n"


def _machine_keys(belongs: Callable[[Key], bool]) -> Callable[[], str]:
    """The keys of machine files that belong to one table of the page, with unit, range and reader."""

    def table() -> str:
        chosen = [key for key in keys() if belongs(key)]
        readers = read_when([key.name for key in chosen])
        rows = [
            (
                f"`{key.name}`",
                key.unit,
                _range(key),
                "yes" if key.required else "",
                readers.get(key.name, "never: it is for people"),
            )
            for key in chosen
        ]
        return markdown_table(("key", "unit", "range", "must be given", "read when"), rows)

    return table


def _range(key: Key) -> str:
    if key.takes == "boolean":
        return "true or false"
    if key.takes not in ("integer", "number"):
        return "a text" if key.takes == "string" else key.takes
    least = f"{key.least or 0:,.0f}"
    return f"{least} or more" if key.most is None else f"{least} to {key.most:,.0f}"


def _of_machine(*tables: str) -> Callable[[Key], bool]:
    return lambda key: key.kind is None and key.path[0] in tables


def _of_drive(key: Key) -> bool:
    return key.kind is None and key.path[0] == "drives" and key.path[2] != "filesystem"


def _of_filesystem(kind: str | None) -> Callable[[Key], bool]:
    return lambda key: key.path[2:3] == ("filesystem",) and key.kind == kind


def _of_device(kind: str) -> Callable[[Key], bool]:
    return lambda key: key.path[2:3] == ("device",) and key.kind == kind


MACHINE_KEYS: dict[str, Callable[[Key], bool]] = {
    "machine": lambda key: len(key.path) == 1,
    "cpus": _of_machine("cpus"),
    "completion": _of_machine("completion"),
    "memory": _of_machine("memory", "swap", "cgroups"),
    "drives": _of_drive,
    "null": _of_device("null"),
    "disk": _of_device("disk"),
    "lun": _of_device("lun"),
    "array": _of_device("array"),
    "flash": _of_device("flash"),
    "filesystem": _of_filesystem(None),
    "xfs": _of_filesystem("xfs"),
    "mounts": _of_machine("mounts"),
}
"""The tables of docs/reference/machine-keys.md, together every key."""

TABLES: dict[str, Callable[[], str]] = {
    "examples": _examples_table,
    "experiment": _options(ExperimentOptions),
    "compare": _options(CompareOptions),
    "tune-options": _options(TuneOptions),
    "tune-ranges": _tune_ranges_table,
    "target-scratch": _options(TARGETS["scratch"]),
    "target-directory": _options(TARGETS["directory"]),
    "target-file": _options(TARGETS["file"]),
    "target-device": _options(TARGETS["device"]),
    **{f"layer-{name}": _options(kind) for name, kind in layer.KINDS.items()},
    "workloads": _kinds_table,
    "job-options": _options(JobOptions),
    "phase-options": _options(PhaseOptions),
    "group-options": _options(GroupOptions),
    "groups-options": _groups_phase_table,
    "fio-job-options": _fio_job_table,
    "fio-refused-options": _fio_refused_table,
    "settings": settings_table,
    "model-settings": _model_settings_table,
    "probes": _probes_table,
    "metrics": _metrics_table,
    "tool-metrics": _tool_metrics_table,
    "formats": _formats_table,
    "published-file": _options(options.FileOptions),
    "published-fitted": _options(options.FittedOptions),
    "published-table": _options(options.TableOptions),
    "published-cell": _options(options.CellOptions),
    "published-aim": _options(options.AimOptions),
    "published-claims": _options(options.StatementOptions),
    "published-distribution": _options(options.DistributionOptions),
    "published-question": _options(options.QuestionOptions),
    "published-chosen": _options(options.ChosenOptions),
    "published-follows": _options(options.FollowsOptions),
    "published-null": _options(options.NullOptions),
    "claims": _claims,
    "claim-counts": _claim_counts,
    "claim-score": lambda: claim.score(library.stated()),
    "published-effects": _options(options.EffectOptions),
    "published-asks": _options(options.AskOptions),
    **{f"machine-keys-{name}": _machine_keys(belongs) for name, belongs in MACHINE_KEYS.items()},
    "scorecard": _scorecard(markdown),
    "scorecard-statements": _scorecard(statements_markdown),
    "scorecard-distributions": _scorecard(distributions_markdown),
    "scorecard-overall": _scorecard(lambda parts: _filled(" ".join(overall(parts)))),
    "scorecard-summary": _scorecard(summary_markdown),
}
"""Name of a table -> what writes it."""
