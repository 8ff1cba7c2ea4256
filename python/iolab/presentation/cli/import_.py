"""`iolab import`: other tools' files into a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json, print_lines


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Files of other tools, or a log directory of mmtests. The name of a setting comes from the file's "
            "text, else from its name: base-run1.json and base-run2.json are two rounds of the setting base.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The run directory to make.", show_default=False)],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="The format, if the content is not recognised: fio-json, "
            "fio-bw-log, fio-iops-log, "
            "fio-lat-log, fio-lat-log-usec, tiobench, iozone, fs_mark, iostest, mmtests, mmtests-log, hyperfine, "
            "sysbench, pgbench, pgbench-log, time, mountstats, mpstat, iostat, affinity, spread, kernels or csv.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Make a run from files of other tools, for show, compare, explain and report.

    iolab recognises the format by the content. It finds tables in mails and logs, also quoted ones. It reports what is
    cut off or doubtful, and reads the rest.
    """
    from iolab.adapters.importer.opening import import_files as make_run
    from iolab.adapters.store import read

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
    print_lines(data.problems, "! ")
    rounds = data.trials["round"].n_unique()
    print(
        f"{data.trials.height} trials: {len(data.workloads)} workloads, {len(data.settings)} settings, {rounds} rounds"
    )
    print(f"Run:  {out}\nNext: iolab show {out}")
