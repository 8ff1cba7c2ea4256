"""`iolab import`: other tools' files into a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.base.plain_text import counted
from iolab.presentation.cli.options import GroupBy, Json
from iolab.presentation.cli.output import print_json, print_lines


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Files of other tools, directories of them, or a log directory of mmtests. The name of a setting "
            "comes from the file's text, else from its name: base-run1.json and base-run2.json are two rounds of the "
            "setting base. Files are grouped as iolab compare groups them.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The run directory to make.")],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="The format, if the content is not recognised: one of those that docs/reference/importers.md lists, "
            "such as fio-text, iostat or csv.",
        ),
    ] = None,
    group_by: GroupBy = None,
    json: Json = False,
) -> None:
    """Make a run from files of other tools, for show, compare, explain and report.

    iolab recognises the format by the content. It finds tables in mails and logs, also quoted ones. It reports what is
    cut off or doubtful, and reads the rest.
    """
    from iolab.files.importer.groups import groups_of
    from iolab.files.importer.run_import import import_groups
    from iolab.files.store import read

    groups = groups_of(files, group_by)
    data = read(import_groups(groups, out, from_).path)
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
    print_lines([groups.read_as] if groups.read_as else [])
    print_lines(data.problems, "! ")
    rounds = data.trials["round"].n_unique()
    counts = ((len(data.workloads), "workload"), (len(data.settings), "setting"), (rounds, "round"))
    print(f"{counted(data.trials.height, 'trial')}: {', '.join(counted(*one) for one in counts)}")
    print(f"Run:  {out}\nNext: iolab show {out}")
