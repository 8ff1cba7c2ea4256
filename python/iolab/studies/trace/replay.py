"""An experiment that replays a trace somewhere under one or several settings: `iolab replay`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from iolab.base.errors import InputError
from iolab.base.quantity import format_bytes
from iolab.base.schema import first_problem
from iolab.base.toml import written
from iolab.domain import native_model
from iolab.domain.machine import kind_of
from iolab.domain.workload import KINDS
from iolab.domain.workload.conflict import SECTOR_BYTES
from iolab.domain.workload.trace import TraceOptions
from iolab.files import machine_file
from iolab.files.experiment.setting_words import setting_tables
from iolab.machines.system.block import device_at
from iolab.studies.trace.headroom import Headroom, headroom

ALIGN_BYTES = 4096


@dataclass(frozen=True)
class ReplayTarget:
    """Where a trace is replayed: lines of the experiment, and how much there is room for."""

    machine: str | None
    target: Sequence[str]
    """Lines of [target]."""
    room_bytes: int | None
    """None: a directory, which makes files of the size that it gets."""
    block_bytes: int = SECTOR_BYTES
    """What direct I/O there needs multiples of, if that is known."""


def place_of(on: str, *, destroy: bool) -> ReplayTarget:
    """The place that a user names: `model:NAME`, a block device, a directory or a file.

    Raises:
        InputError: there is no such place.
    """
    if kind_of(on) == "model":
        table = machine_file.read(on, Path()).table
        sizes = native_model.drive_sizes(table)
        if not sizes:
            raise InputError("has no drive", where=on, remedy="name a machine with one: iolab list machines")
        return ReplayTarget(on, (), min(sizes))
    path = Path(on)
    if not path.exists():
        raise InputError("no such place", where=f"--on {on}", remedy="name a block device, a directory, or model:NAME")
    shown = written(str(path.absolute()))
    if path.is_dir():
        return ReplayTarget(None, ('kind = "directory"', f"path = {shown}"), None)
    if path.is_block_device():
        lines = ['kind = "device"', f"path = {shown}", *(["destroy = true"] if destroy else [])]
        device = device_at(path.resolve())
        return ReplayTarget(None, lines, device.size_bytes, device.logical_block_bytes)
    return ReplayTarget(None, ('kind = "file"', f"path = {shown}"), path.stat().st_size or None)


def experiment(
    trace: Path, place: ReplayTarget, settings: Sequence[str], options: dict[str, Any], *, rounds: int
) -> str:
    """The text of the experiment.

    Args:
        settings: `CONTROL=VALUE` each, or several with `;` between them; the first is the baseline.
        options: of the workload, as TOML has them; those that are None are left out.

    Raises:
        InputError: the trace can't be read, an option is wrong, or a setting is no pair.
    """
    given = {"file": str(trace.absolute()), **{name: value for name, value in options.items() if value is not None}}
    if place.block_bytes > SECTOR_BYTES:
        given.setdefault("align", format_bytes(place.block_bytes))
    if place.room_bytes is not None and "file_size" not in given:
        reach = _checked(given).bytes_per_file(1)
        room = place.room_bytes // ALIGN_BYTES * ALIGN_BYTES
        if reach > room:
            given["file_size"] = format_bytes(room)
    lines = [f"title = {written(f'Replay of {trace.name}')}", f"rounds = {rounds}"]
    if place.machine is not None:
        lines.append(f"machine = {written(place.machine)}")
    if place.target:
        lines += ["", "[target]", *place.target]
    lines += ["", "[workloads.trace]", 'kind = "trace"']
    lines += [f"{name} = {written(value)}" for name, value in given.items()]
    lines += setting_tables(settings)
    return "\n".join([*lines, ""])


def left_out(trace: Path, options: dict[str, Any]) -> int:
    """How many of the trace's I/Os are not replayed: commands of drivers, and what no device takes.

    Raises:
        InputError: as `experiment`.
    """
    given = {name: value for name, value in options.items() if value is not None}
    return _checked({"file": str(trace.absolute()), **given}).schedule["left_out"]


def expected(trace: Path, on: str, place: ReplayTarget, options: dict[str, Any]) -> Headroom | None:
    """Whether the block device keeps up with the trace, from reads of a third of a second; None for other places.

    Raises:
        InputError: as `experiment`.
    """
    if place.machine is not None or place.room_bytes is None or not Path(on).is_block_device():
        return None
    given = {name: value for name, value in options.items() if value is not None}
    checked = _checked({"file": str(trace.absolute()), **given})
    return headroom(Path(on), checked, min(checked.bytes_per_file(1), place.room_bytes))


def _checked(given: dict[str, Any]) -> TraceOptions:
    try:
        options = TraceOptions.model_validate(given)
    except ValidationError as error:
        raise InputError(first_problem(error), where="iolab replay") from None
    for conflict in KINDS["trace"].conflicts(options):
        raise InputError(conflict.what, where=".".join(conflict.key))
    return options
