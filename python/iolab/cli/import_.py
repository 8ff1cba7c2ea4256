"""`iolab import`: other tools' files into a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.cli.options import Json
from iolab.cli.output import print_json


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Files of other tools. A setting is named by what the file says, else by the file's name; "
            "of base-run1.json and base-run2.json it is base, with a round each.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The run directory to make.", show_default=False)],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="The format, instead of the one that the content is recognised by: fio-json, "
            "fio-bw-log, fio-iops-log, "
            "fio-lat-log, fio-lat-log-usec, tiobench, iozone, fs_mark, iostest, mmtests, time, mountstats, mpstat, "
            "iostat, affinity, spread, kernels or csv.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make a run of other tools' files, for show, compare and report.

    The format is recognised by the content. Tables are found in mails and logs, quoted ones too. What is cut off or
    doubtful is said, and the rest is read.
    """
    from iolab.importer import import_files as make_run
    from iolab.store import read

    data = read(make_run(files, out, from_).path)
    if json:
        print_json(
            {
                "run": str(out),
                "trials": data.trials.height,
                "workloads": data.workloads,
                "settings": data.settings,
                "problems": data.problems,
            }
        )
        return
    for problem in data.problems:
        print(f"! {problem}")
    rounds = data.trials["round"].n_unique()
    print(
        f"{data.trials.height} trials: {len(data.workloads)} workloads, {len(data.settings)} settings, {rounds} rounds"
    )
    print(f"Run:  {out}\nNext: iolab show {out}")
