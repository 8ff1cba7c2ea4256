"""`iolab list`: the words that an experiment may use, each with unit, default, range and help."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iolab.base.errors import InputError, unknown
from iolab.base.former_names import renewed_word
from iolab.base.strict_json import JsonObject
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json

if TYPE_CHECKING:
    from iolab.base.toml import TomlTable
    from iolab.studies.reproduction.part import Part

Entry = JsonObject
"""What is printed of one name: `name`, `help`, and what the list has beside; `--json` prints it as it is."""
Entries = list[Entry]
RENAMED = {"settings": "controls"}


def list_names(
    what: Annotated[
        str,
        typer.Argument(
            metavar="machines|devices|kernels|experiments|paths|workloads|controls|probes|metrics",
            autocompletion=complete.lists,
        ),
    ],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show only this one, in full.")] = None,
    json: Json = False,
) -> None:
    """List what an experiment can name: machines and the devices in them, kinds of workload and their options, controls
    (what a setting changes), probes, metrics; and the experiments that come with iolab, which `iolab run NAME` runs.

    `iolab list workloads io` shows every option of a workload kind: what it takes, its unit, default, range and help;
    `iolab list probes block` the options and metrics of a probe. `iolab list machines` ends with the accuracy of
    simulated machines against published figures of real ones. `iolab list devices samsung_ssd_990_pro_2tb` shows what
    a device of the library was fitted to, and by how much it is off elsewhere.
    """
    lists = {
        "machines": _machines,
        "devices": _devices,
        "kernels": _kernels,
        "experiments": _experiments,
        "paths": _paths,
        "workloads": _workloads,
        "controls": _controls,
        "probes": _probes,
        "metrics": _metrics,
    }
    asked, what = what, renewed_word(what, RENAMED, "iolab list")
    if what not in lists:
        raise InputError(f"{what}: {unknown('list', what, lists)}", where="iolab list")
    entries = lists[what]()
    if name is not None:
        names = [str(entry["name"]) for entry in entries]
        if name not in names:
            kind, where = what.removesuffix("s"), f"iolab list {what}"
            for other, made in lists.items():
                if name in {entry["name"] for entry in made()}:
                    raise InputError(f"{name}: no {kind}", where=where, remedy=f"iolab list {other} {name}")
            raise InputError(f"{name}: {unknown(kind, name, names)}", where=where)
        entries = [entry for entry in entries if entry["name"] == name]
    of_models = _stored_results() if what == "machines" and name is None else []
    if json:
        print_json({asked: entries, **_scores(of_models)})
    elif name is not None:
        _print_one(entries[0])
    else:
        _print_all(entries, of_models)


def _kernels() -> Entries:
    from iolab.machines.guest import kernel

    return [{**one} for one in kernel.listed()]


def _machines() -> Entries:
    from iolab.files import machine_file

    host: Entry = {"name": "host", "kernel": None, "drives": [], "help": "this Linux machine"}
    return [host, *(_machine(name, machine_file.as_filed(name)) for name in machine_file.names())]


def _devices() -> Entries:
    from iolab.base import toml
    from iolab.files.machine_file import devices

    return [_device(name, toml.parse(text, name).values["kind"], text) for name, text in devices().items()]


def _device(name: str, kind: str, text: str) -> Entry:
    """The file's first comment, and which of its others state errors."""
    comments = _comments(text)
    about = next(iter(comments), "")
    stated = [line for line in comments if line.startswith(("fitted", "fit ", "held back", "odd"))]
    return {"name": name, "kind": kind, "fitted": "yes" if stated else None, "help": about, "comments": comments}


def _comments(text: str) -> list[str]:
    """Each whole: lines that go on are indented, and so may be not those of the first."""
    found: list[str] = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if found and (line.startswith("#   ") or (len(found) == 1 and " = " not in line and "(E)" not in line)):
            found[-1] += f" {line[1:].strip()}"
        else:
            found.append(line[1:].strip())
    return found


def _machine(name: str, table: TomlTable) -> Entry:
    return {
        "name": f"model:{name}",
        "kernel": table["kernel"],
        "drives": [*map(_drive, table.get("drives", ())), *map(_mount, table.get("mounts", ()))],
        "help": table.get("title", ""),
    }


def _drive(drive: TomlTable) -> str:
    """`eva_raid5 (ext3)`, `24 x lun (bare)`."""
    device = drive["device"]
    named = device if isinstance(device, str) else device["kind"]
    filesystem = drive.get("filesystem")
    count = f"{drive['count']} x " if "count" in drive else ""
    return f"{count}{named} ({filesystem['kind'] if filesystem else 'bare'})"


def _mount(mount: TomlTable) -> str:
    return f"{mount.get('mount', 'of its own')} (nfs)"


def _experiments() -> Entries:
    from iolab.base import data, toml

    return [_experiment(path, toml.parse(path.read_text(), str(path)).values) for path in data.experiments().values()]


def _paths() -> Entries:
    """The paths of `iolab cost`."""
    from iolab.base import data, toml

    return [_experiment(path, toml.parse(path.read_text(), str(path)).values) for path in data.cost_paths().values()]


def _experiment(path: Path, table: TomlTable) -> Entry:
    return {
        "name": path.stem,
        "machine": table.get("machine", "host"),
        "help": table.get("title", ""),
        "path": str(path),
        "rounds": table.get("rounds"),
        "workloads": list(table["workloads"]),
        "settings": list(table.get("settings", {"default": {}})),
    }


def _workloads() -> Entries:
    from iolab.domain.workload import KINDS
    from iolab.domain.workload.job import JobOptions
    from iolab.presentation.reference import options_json

    entries: Entries = [
        {"name": kind.name, "help": kind.help, "options": options_json(kind.options)} for kind in KINDS.values()
    ]
    for entry in entries:
        if entry["name"] == "mix":
            entry["options of a job"] = options_json(JobOptions)
    return entries


def _controls() -> Entries:
    from iolab.domain.control import CONTROLS

    return [
        {
            "name": control.name,
            "help": control.help,
            "takes": control.values,
            "unit": control.unit,
            "example": control.example_line,
        }
        for control in CONTROLS.values()
    ]


def _probes() -> Entries:
    from iolab.domain.probe import PROBES
    from iolab.presentation.reference import options_json

    return [
        {
            "name": probe.name,
            "help": probe.help,
            "reads from": list(probe.needs),
            "options": options_json(probe.options),
            "metrics": [
                {"name": m.name, "unit": m.unit, "nature": m.nature, "better": m.better, "help": m.help}
                for m in probe.metrics
            ],
        }
        for probe in PROBES.values()
    ]


def _metrics() -> Entries:
    from iolab.domain.definition import TOOL_METRICS
    from iolab.domain.metric import METRICS, ops_of

    measured = {name: {"kept for": list(ops_of(metric)), "probe": metric.probe} for name, metric in METRICS.items()}
    imported = {"kept for": _OF_IMPORTS, "probe": None}
    return [
        {
            "name": metric.name,
            "help": metric.help,
            "unit": metric.unit,
            "nature": metric.nature,
            "better": metric.better,
            **measured.get(metric.name, imported),
        }
        for metric in (*METRICS.values(), *TOOL_METRICS.values())
    ]


_OF_IMPORTS = ["imported numbers"]
_HELP_BESIDE_FROM = 110
"""Columns of the console."""
_SHORT_LISTS = ("drives",)
_NEEDS_ITS_NAME = ("better", "default", "example")
_OF_OPTIONS = ["name", "takes", "default", "help"]
_OF_METRICS = ["name", "unit", "better", "help"]


def _stored_results() -> list[Part]:
    """What simulated machines made of published figures; nothing if iolab was installed without them."""
    from iolab.studies.reproduction.scorecard import stored

    return stored()


def _scores(of_models: list[Part]) -> dict[str, Entries]:
    from iolab.studies.reproduction.scorecard import scores

    return {"scorecard": [{**asdict(score), "skill": score.skill} for score in scores(of_models)]} if of_models else {}


def _print_all(entries: Entries, of_models: list[Part]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from iolab.presentation.terminal import show

    parts: list[Any] = []
    for heading, group in _groups(entries).items():
        columns = [key for key, value in group[0].items() if key in _SHORT_LISTS or _is_column(key, value)]
        if heading:
            parts.append(Padding(Text(heading, style="bold cyan"), (1 if parts else 0, 0, 0, 0), expand=False))
        parts.append(_table([*columns, "help"], group))
    if of_models:
        from iolab.presentation.table.scorecard import scorecard

        title = Text.assemble(("How well the models meet published figures", "bold cyan"), "  iolab reproduce")
        parts += [Padding(title, (1, 0, 0, 0), expand=False), *scorecard(of_models)]
    show(*parts)


def _is_column(key: str, value: Any) -> bool:
    return key not in ("help", "path", "probe", "rounds") and not isinstance(value, list)


def _groups(entries: Entries) -> dict[str, Entries]:
    """Metrics by what gives them; the other lists are one group without a heading."""
    if "kept for" not in entries[0]:
        return {"": entries}
    found: dict[str, Entries] = {}
    for entry in entries:
        imported = entry["kept for"] == _OF_IMPORTS
        heading = f"probe {entry['probe']}" if entry["probe"] else "imported" if imported else "workload"
        found.setdefault(heading, []).append(entry)
    return found


def _print_one(entry: Entry) -> None:
    from rich.text import Text

    from iolab.presentation.terminal import show

    parts: list[Any] = [Text.assemble((str(entry["name"]), "bold"), "  ", str(entry["help"]))]
    for key, value in entry.items():
        if key in ("name", "help") or value in (None, []):
            continue
        if key == "comments" and isinstance(value, list):
            parts += [Text(f"{line}") for line in value[1:]]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            parts.append(Text(f"\n{key}", style="bold"))
            parts.append(_table(_OF_OPTIONS if "takes" in value[0] else _OF_METRICS, value))
        else:
            parts.append(Text(f"{key}: {', '.join(value) if isinstance(value, list) else value}"))
    show(*parts)


def _table(columns: list[str], entries: Entries) -> Any:
    """A line per entry, its help in the last column; below the line if that column would be narrow."""
    from rich import box
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from iolab.presentation.table.layout import WidthAlternatives

    wide = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        wide.add_column(column, overflow="fold", no_wrap=column == "name")
    narrow: list[Any] = []
    for entry in entries:
        texts = [_text(entry.get(column)) for column in columns]
        wide.add_row(*map(Text, texts))
        name, *facts = zip(columns[:-1], texts, strict=False)
        rows = (f"  {f'{column} ' if column in _NEEDS_ITS_NAME else ''}{fact}" for column, fact in facts if fact)
        narrow += [
            Text.assemble((name[1], "bold"), *rows),
            Padding(texts[-1], (0, 0, 0, 4)),
        ]
    return WidthAlternatives(_HELP_BESIDE_FROM, wide, Group(*narrow))


def _text(value: Any) -> str:
    words = ", ".join(value) if isinstance(value, list) else str(value or "")
    return words.replace("`", "")
