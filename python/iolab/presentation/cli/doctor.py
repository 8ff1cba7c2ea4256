"""`iolab doctor`: what can be controlled and observed on this machine, and how to get the rest."""

from __future__ import annotations

from iolab.presentation.cli.options import Json
from iolab.presentation.cli.output import print_json

_STYLES = {"ok": "green", "limited": "yellow", "missing": "red"}


def doctor(json: Json = False) -> None:
    """Show what can be controlled and observed on this machine, and the command that would make the rest available."""
    from iolab.machines.host.doctor import findings

    found = findings()
    if json:
        keys = ("area", "what", "state", "detail", "remedy")
        print_json({"findings": [{key: getattr(finding, key) for key in keys} for finding in found]})
        return

    from rich import box
    from rich.table import Table
    from rich.text import Text

    from iolab.presentation.terminal import show

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("area", "what", "state", "detail"):
        table.add_column(heading, overflow="fold")
    area = None
    for finding in found:
        detail = finding.detail or ""
        if finding.state != "ok" and finding.remedy:
            detail = f"{detail}; {finding.remedy}" if detail else finding.remedy
        first_of_area = finding.area != area
        area = finding.area
        state = Text(finding.state, style=_STYLES[finding.state])
        table.add_row(Text(area if first_of_area else ""), Text(finding.what), state, Text(detail))
    lacking = sum(finding.state != "ok" for finding in found)
    show(table, f"{len(found) - lacking} of {len(found)} available." if lacking else "Everything is available.")
