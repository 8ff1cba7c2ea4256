"""The report of `iolab cost`: a table of one screen, then functions, other counts and what counts cannot see; as text
of 72 columns, which a mail can quote, or as Markdown."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence

from iolab.base.plain_text import counted, one_line
from iolab.base.quantity import plain
from iolab.base.version import VERSION
from iolab.domain.cost.measure import MEASURES, Change
from iolab.domain.cost.path_cost import PathCost
from iolab.domain.cost.repeatable import REPEATABLE
from iolab.domain.cost.report import CostReport, FunctionChange, KernelVersion, functions_of, unseen_of
from iolab.domain.cost.unseen import ALWAYS
from iolab.presentation.table.probe_observations import columns

WIDTH = 72
FUNCTIONS_SHOWN = 10
PATHS_NAMED_MAX = 4
SYMBOL_WIDTH = 34
MARKS = {"more": "+", "less": "-", "same": "", "unclear": "?", "not measured": ""}
LEGEND = (
    "Instructions of the kernel per operation, means over the rounds; 95 %: half the width of the interval of the "
    "change; user: the change in user mode. + and -: more and fewer for certain, with a function that changed; ?: "
    "neither a change nor its absence is certain; no mark: the same within 0.1 %; (+) and (-): more and fewer for "
    "certain in the functions whose counts repeat from boot to boot; (=): none of them changed."
)
MARKS_OF_REPEATABLE = {"more": " (+)", "less": " (-)", "same": " (=)", None: ""}
REPEATABLE_HEADING = ["functions that repeat, on path", "change", "95 %"]
OTHER_FROM = 0.01
"""The smallest change of another count that is shown, per operation; nor less than `OTHER_SHARE` of it."""
OTHER_SHARE = 1e-3
OTHER_COUNTS = tuple(name for name in MEASURES if name not in ("instructions", "kernel", "user"))


def text(report: CostReport) -> str:
    """The report as text of at most `WIDTH` columns."""
    return "\n".join(line for block in _blocks(report) for line in (*block, "")).rstrip("\n") + "\n"


def mail(report: CostReport) -> str:
    """The same with all that determines the counts, and the command that repeats them."""
    return f"{text(report)}\n" + "\n".join(_provenance(report)) + "\n"


def markdown(report: CostReport) -> str:
    """The same as `mail`, in Markdown."""
    lines = [f"**{report.conclusion}**", "", f"- base: {_escaped(report.base.label)}"]
    lines += [f"- tip: {_escaped(report.tip.label)}", ""]
    rows = [_row(path) for path in report.paths if not path.why]
    if rows:
        heading = ["path", "kernel, base", "kernel, tip", "change", "95 %", "user", ""]
        lines += [*_markdown_table(heading, rows), "", _escaped(LEGEND), ""]
    for title, heading, found in (
        ("Functions whose counts repeat", REPEATABLE_HEADING, _repeatable_rows(report)),
        ("Functions that changed", ["function", "change", "paths"], _function_rows(report)),
        ("Other counts that changed", ["path", "count", "base", "tip"], _other_rows(report)),
        ("By patch", ["patch", "path", "change", "95 %"], _patch_rows(report)),
    ):
        if found:
            lines += [f"**{title}**", "", *_markdown_table(heading, found), ""]
    lines += [f"- {_escaped(line)}" for line in (*_not_measured(report), *_not_seen(report), *report.notes)]
    lines += ["", "```text", *_provenance(report), "```"]
    return "\n".join(lines) + "\n"


def _blocks(report: CostReport) -> Iterator[list[str]]:
    yield [*_wrapped(report.conclusion), *_wrapped(_side(report.base)), *_wrapped(_side(report.tip))]
    if rows := [_row(path) for path in report.paths if not path.why]:
        yield _columns(("path", "base", "tip", "change", "95 %", "user", ""), rows, left=1)
        yield _wrapped(LEGEND)
    if rows := _repeatable_rows(report):
        yield _columns(REPEATABLE_HEADING, rows, left=1)
    if rows := _function_rows(report):
        yield _columns(("function", "change", "paths"), [[_shortened(row[0]), *row[1:]] for row in rows], left=1)
    if rows := _other_rows(report):
        yield _columns(("path", "other count, per operation", "base", "tip"), rows, left=2)
    if rows := _patch_rows(report):
        yield _columns(("patch", "path", "change", "95 %"), [[_shortened(row[0]), *row[1:]] for row in rows], left=2)
    if missing := _not_measured(report):
        yield [part for line in missing for part in _wrapped(line)]
    yield [part for line in _not_seen(report) for part in _wrapped(line, "- ")]
    if report.notes:
        yield [part for line in report.notes for part in _wrapped(line, "- ")]


def _side(one: KernelVersion) -> str:
    return f"{f'{one.setting}:':6}{one_line(one.label)}"


def _row(path: PathCost) -> list[str]:
    kernel, user = path.changes["kernel"], path.changes["user"]
    return [
        path.name,
        f"{kernel.base:,.0f}",
        f"{kernel.tip:,.0f}",
        _share(kernel),
        _half_width(kernel),
        f"{user.difference:+,.1f}",
        f"{MARKS[path.outcome]}{MARKS_OF_REPEATABLE[path.of_repeatable]}".strip(),
    ]


def _repeatable_rows(report: CostReport) -> list[list[str]]:
    """What is certain of functions whose counts repeat."""
    rows = []
    for path in report.paths:
        if path.of_repeatable in ("more", "less"):
            change = path.changes[REPEATABLE]
            rows.append([path.name, f"{change.difference:+,.1f}", f"±{change.half_width:,.1f}"])
    return rows


def _share(change: Change) -> str:
    return "" if change.share is None else f"{100 * change.share:+.2f} %"


def _half_width(change: Change) -> str:
    if change.half_width is None or not change.base:
        return ""
    return f"±{100 * change.half_width / change.base:.2f} %"


def _function_rows(report: CostReport) -> list[list[str]]:
    found = functions_of(report.paths)
    rows = [[_symbol(one), f"{one.largest:+,.1f}", _paths(list(one.changes))] for one in found[:FUNCTIONS_SHOWN]]
    if len(found) > FUNCTIONS_SHOWN:
        rows.append([f"and {len(found) - FUNCTIONS_SHOWN} more", "", ""])
    return rows


def _symbol(one: FunctionChange) -> str:
    return f"{one.symbol} [{one.module}]" if one.module else one.symbol


def _paths(names: Sequence[str]) -> str:
    """The first of them, where the change is largest, and how many more."""
    return names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1}"


def _other_rows(report: CostReport) -> list[list[str]]:
    """Amounts beside instructions that differ for certain."""
    rows = []
    for path in report.paths:
        for name in OTHER_COUNTS:
            change = path.changes.get(name)
            least = max(OTHER_FROM, OTHER_SHARE * change.base) if change is not None else 0.0
            if change is not None and change.differs and abs(change.difference) >= least:
                rows.append([path.name, MEASURES[name].words, plain(change.base, 4), plain(change.tip, 4)])
    return rows


def _patch_rows(report: CostReport) -> list[list[str]]:
    """The paths that each patch changes."""
    rows = []
    for patch in report.patches:
        changed = [path for path in patch.paths if path.outcome in ("more", "less")]
        for path in changed:
            of_kernel = path.changes["kernel"]
            rows.append([one_line(patch.label), path.name, _share(of_kernel), _half_width(of_kernel)])
        if not changed:
            rows.append([one_line(patch.label), "none changed", "", ""])
    return rows


def _not_measured(report: CostReport) -> list[str]:
    return [f"{path.name} was not measured: {one_line(path.why)}" for path in report.paths if path.why]


def _not_seen(report: CostReport) -> list[str]:
    """What counts cannot see: of all, then of the paths that depend on it."""
    found = [ALWAYS]
    for line, names in unseen_of(report.paths).items():
        more = f" and {len(names) - PATHS_NAMED_MAX} more" if len(names) > PATHS_NAMED_MAX else ""
        found.append(f"{', '.join(names[:PATHS_NAMED_MAX])}{more}: {line}.")
    return found


def _provenance(report: CostReport) -> list[str]:
    """The versions, the configurations and the command."""
    rounds = max((path.rounds for path in report.paths), default=0)
    lines = [f"Counted by iolab {VERSION}, {report.machine}; {counted(rounds, 'boot')} of each kernel and path."]
    lines += [f"{one.setting}: {one.kernel}{f', {one.how}' if one.how else ''}" for one in (report.base, report.tip)]
    wrapped = [part for line in lines for part in _wrapped(one_line(line))]
    return [*wrapped, "Again:", *_command(report.command)]


def _command(command: str) -> list[str]:
    """In lines that a shell joins again."""
    lines = [""]
    for word in map(shlex.quote, shlex.split(one_line(command))):
        if lines[-1] and len(f"  {lines[-1]} {word}") > WIDTH - 2:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{word}"
    return [f"  {line} \\" for line in lines[:-1]] + [f"  {lines[-1]}"]


def _wrapped(line: str, first: str = "") -> list[str]:
    return textwrap.wrap(
        line,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _columns(heading: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    return columns([tuple(heading), *map(tuple, rows)], left=left).splitlines()


def _shortened(text_: str) -> str:
    return text_ if len(text_) <= SYMBOL_WIDTH else f"{text_[: SYMBOL_WIDTH - 3]}..."


def _markdown_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(heading)} |",
        f"|{'---|' * len(heading)}",
        *(f"| {' | '.join(map(_escaped, row))} |" for row in rows),
    ]


def _escaped(text_: str) -> str:
    return one_line(text_).replace("\\", "\\\\").replace("|", "\\|").replace("_", "\\_").replace("*", "\\*")
