"""`iolab machine`: this machine as the file of a simulated one, and devices calibrated by what was measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from iolab.base import output_file
from iolab.base.errors import InputError
from iolab.presentation.cli import complete
from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json, print_lines

if TYPE_CHECKING:
    from iolab.domain.calibration.result import Calibration

OF_CALIBRATE = "Of calibrate: "


def machine(
    action: Annotated[
        Literal["describe", "calibrate"],
        typer.Argument(
            help="describe: write what the kernel shows of this machine. calibrate: fit a simulated device to "
            "measurements, and write its file."
        ),
    ],
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DEVICE|DIRECTORY|FILE...]",
            help=OF_CALIBRATE + "a block device or a directory, which is measured for about two minutes, "
            "three at most; or what was measured: fio's JSON, six rates of io.cost.model, iolab's run directories.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.toml", help="The file to write. `-`: standard output.")
    ] = Path("-"),
    like: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.toml",
            help=OF_CALIBRATE + "the device file whose other keys it keeps.  [default: the class of the device, else "
            "nvme_mqsim]",
        ),
    ] = None,
    around: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="model:NAME",
            help=OF_CALIBRATE + "the simulated machine in which the device is asked.  [default: this machine, of what "
            "is measured here; else model:nvme]",
            autocompletion=complete.machines,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help=OF_CALIBRATE + "the run directory of what is measured here.")
    ] = None,
    json: Json = False,
) -> None:
    """Write this machine's file (describe), or the file of a device like the one measured (calibrate).

    describe: CPUs, memory, kernel, and each drive with its scheduler and queue are as the kernel shows them; a comment
    states where. CPU times and what is inside a drive are estimates of its class unless a device file of its model is
    shipped, and say so. It needs no privilege and reads no device.

    calibrate: fits the physical keys of a simulated device (flash, lun or null) to two thirds of the cells, with
    intervals, and reports its errors on the last third beside predictors without a model; the file holds both. A device
    that is in use or holds data is only read (docs/safety.md). It ends within five minutes, if need be with fewer cells
    or without intervals.
    """
    if json and not output_file.is_stdout(output) and action == "describe":
        raise InputError("prints the file on standard output", where="--json", remedy="leave --output out")
    if action == "calibrate":
        _calibrate(sources or [], output, like=like, around=around, out=out, json=json)
        return
    given = {"--like": like, "--machine": around, "--out": out, "SOURCE": sources}
    if (name := next((name for name, value in given.items() if value), None)) is not None:
        raise InputError("is of calibrate; describe takes only --output", where=name, remedy="leave it out")
    from iolab.machines.host.machine_file import estimated_drives, text

    written = text()
    for device, known in estimated_drives(written):
        remedy = f"measure it: iolab machine calibrate /dev/{known.partition(',')[0]} -o FILE.toml"
        print(f"iolab: {device} stands for {known}; {remedy}", file=sys.stderr)
    if json:
        print_json({"machine": written})
    else:
        output_file.write(output, written.encode())


def _calibrate(
    sources: list[Path], output: Path, *, like: str | None, around: str | None, out: Path | None, json: bool
) -> None:
    from iolab.presentation.progress import display
    from iolab.presentation.table.calibration import calibration_tables
    from iolab.presentation.terminal import show
    from iolab.studies.calibrate import device_file
    from iolab.studies.calibrate.sources import Question, answered

    if not sources:
        raise InputError(
            "nothing to calibrate by", where="iolab machine calibrate", remedy="name a device, a directory or files"
        )
    found = answered(Question(tuple(sources), like, around, out), display(as_json=json))
    written = device_file.text(found, _title(sources), "; ".join(map(str, sources)))
    to_stdout = output_file.is_stdout(output)
    if json:
        print_json(_as_dict(found, written))
        if to_stdout:
            return
    output_file.write(output, written.encode())
    if not json and not to_stdout:
        show(*calibration_tables(found))
        print_lines([f"Device file: {output}"], "")


def _title(sources: list[Path]) -> str:
    return f"{', '.join(source.name for source in sources)}, calibrated by iolab machine calibrate."


def _as_dict(found: Calibration, written: str) -> dict[str, object]:
    keys = {one.key.name: {"value": one.value, "low": one.low, "high": one.high} for one in found.keys}
    return {
        "device": found.device,
        "file": written,
        "keys": keys,
        "cells": [answer.as_dict() for answer in found.answers],
        "errors": {name: vars(errors) for name, errors in found.summary()},
        "left_out": list(found.left_out),
        "unfinished": found.unfinished,
    }
