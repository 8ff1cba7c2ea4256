"""What a trace shows, as tables for a terminal: the slow device's reader first."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from iolab.base.histogram import BEYOND, is_known
from iolab.base.plain_text import counted, listed, one_line
from iolab.base.quantity import change, format_bytes, plain, scale_for

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from iolab.domain import native_types as native
    from iolab.studies.trace.stretches import TraceComparison
    from iolab.studies.trace.synthetic import Difference

STAGES: tuple[tuple[Literal["queue_ns", "scheduler_ns", "device_ns", "whole_ns"], str], ...] = (
    ("queue_ns", "queue"),
    ("scheduler_ns", "scheduler"),
    ("device_ns", "device"),
    ("whole_ns", "whole"),
)
_PERCENTILES: tuple[tuple[Literal["p50", "p90", "p99", "p99_9", "p99_99"], float], ...] = (
    *(("p50", 50), ("p90", 90), ("p99", 99), ("p99_9", 99.9), ("p99_99", 99.99)),
)
GROUPS_SHOWN = 12
DEVICES_SHOWN = 24
CACHES_SHOWN = 8


def shown(figures: native.TraceFigures) -> Iterator[RenderableType]:
    """A table or a paragraph for each question, in the order of docs/traces.md."""
    yield "\n".join(summary(figures))
    yield from tables(figures)
    if figures["slowest"]:
        yield slowest(figures)
    yield "\n".join(remarks(figures))


def tables(figures: native.TraceFigures) -> Iterator[Table]:
    """All but that of the slowest."""
    yield from _stages(figures["all"])
    yield from _layers(figures["devices"])
    yield _devices(figures["devices"], are_known=has_operations(figures))
    yield from _groups("Latency by operation", figures["by_operation"])
    yield from _groups("Latency by size", figures["by_size"])
    yield from _groups("Latency by hardware queue", figures["by_queue"])
    yield from _groups("Latency by process, those of most bytes first", figures["by_process"])


def remarks(figures: native.TraceFigures) -> Iterator[str]:
    """How requests arrive, and what a cache would do; a line each."""
    yield from _bursts(figures["bursts"])
    yield from _reuse(figures["reuse"])


def has_operations(figures: native.TraceFigures) -> bool:
    """Whether the trace states what requests did, and with how many bytes: biosnoop.bt does not."""
    return figures["all"]["bytes"] > 0 or any(one["name"] != "other" for one in figures["by_operation"])


def summary(figures: native.TraceFigures) -> Iterator[str]:
    """What was read, what failed, and what is missing; a line each."""
    elapsed_s = figures["elapsed_ns"] / 1e9
    everything = figures["all"]
    are_known = has_operations(figures)
    yield (
        f"{figures['format']}: {counted(figures['records'], 'record')} over {plain(elapsed_s, 6)} s, "
        f"{counted(everything['count'], 'request')}" + (f", {bytes_in_words(everything['bytes'])}" if are_known else "")
    )
    for one in figures["failed"]:
        yield one_line(
            f"! {counted(one['count'], 'request')} failed: {one['operation']}, {error_name(one['error'])}; the first "
            f"at {one['first_ns'] / 1e9:.6f} s, sector {one['first_sector']} of {one['first_device']} "
            "(--failed shows them)"
        )
    if elapsed_s > 0:
        rate = plain(everything["count"] / elapsed_s, 4)
        yield f"{rate} requests/s" + (f", {bytes_in_words(everything['bytes'] / elapsed_s)}/s" if are_known else "")
    for line in doubts(figures):
        yield f"! {line}"


def doubts(figures: native.TraceFigures) -> Iterator[str]:
    """What is missing, and what the figures therefore leave out; a line each."""
    if figures["losses"]:
        times, events = counted(figures["losses"], "time"), counted(figures["events_lost"], "event")
        yield (
            f"numbers of events are left out {times} ({events} counted), lost or cut out of the text: times across "
            "them are left out (--gaps filtered, if they were filtered)"
            if figures["format"] == "blkparse"
            else f"events were lost {times} ({events} counted): times across a loss are left out"
        )
    no_times = ("request has no times: ", "requests have no times: ")
    late = "came too late in the file to be put in order, and"
    captions = (
        (
            "unknown_lost",
            f"{no_times[0]}events were lost while it was in flight",
            f"{no_times[1]}events were lost while they were in flight",
            "",
        ),
        ("unknown_alike", *no_times, "another request in flight had the same sectors"),
        ("events_unmatched", "event is", "events are", " about requests whose beginning is not in the trace"),
        ("unended", "bio or request has", "bios or requests have", " no end in the trace"),
        ("events_late", f"event {late} counts", f"events {late} count", " as lost"),
        ("restarts", "further recording follows", "further recordings follow", " in the same file"),
        ("malformed", "record", "records", f" could not be understood; the first: {figures['first_malformed']}"),
    )
    counts = {key: value for key, value in figures.items() if isinstance(value, int)}
    for key, one, many, rest in captions:
        if counts[key]:
            yield one_line(counted(counts[key], one, many) + rest)
    for device in figures["devices"]:
        if device["layer"] is not None and (unknown := device["layer"]["unknown"]):
            rest = f" of {device_name(device)} has no time of the layer: what was sent on for it is not determined"
            yield one_line(counted(unknown, "bio") + rest)
    if figures["all"]["count"] and not has_operations(figures):
        yield "no operations, sizes and sectors: the trace states none of them"
    for figure, reason in figures["absent"].items():
        yield f"no {figure}: {reason}"
    yield from (one_line(note) for note in figures["notes"])


def error_name(error: int) -> str:
    """`EIO (-5)`."""
    return f"{errno.errorcode.get(-error, 'error')} ({error})"


def _stages(group: native.GroupFigures) -> Iterator[Table]:
    rows = [(name, known) for stage, name in STAGES if (known := group[stage])]
    if rows:
        yield _quantiles("Where the time went", "stage", rows)


def _layers(devices: Sequence[native.DeviceFigures]) -> Iterator[Table]:
    rows: list[tuple[str, native.Quantiles]] = []
    for device in devices:
        layer = device["layer"]
        if layer is not None and (own := layer["own_ns"]) and (below := layer["below_ns"]):
            rows += [(f"{device_name(device)} itself", own), (f"below it, {', '.join(layer['lower'])}", below)]
    if rows:
        yield _quantiles("Where the time of bios went that a layer sent on", "where", rows)


def device_name(device: native.DeviceFigures) -> str:
    """Its own, or its number."""
    return device["name"] or device["device"]


def _quantiles(title: str, first: str, rows: list[tuple[str, native.Quantiles]]) -> Table:
    from rich.table import Table

    most = max(row["count"] for _, row in rows)
    percentiles = [(key, percent) for key, percent in _PERCENTILES if is_known(percent, most)]
    left_out = any(not is_known(percent, row["count"]) for _, percent in _PERCENTILES for _, row in rows)
    caption = f"A percentile is shown if {BEYOND} requests lie beyond it." if left_out else None
    table = Table(title=f"{title} (µs)", title_justify="left", caption=caption, caption_justify="left")
    table.add_column(first)
    for column in ("requests", "mean", *(f"p{percent:g}" for _, percent in percentiles), "max"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, row in rows:
        # A bucket may end above the maximum.
        known = [min(row[key], row["max"]) if is_known(percent, row["count"]) else None for key, percent in percentiles]
        values = ("" if value is None else microseconds(value) for value in (row["mean"], *known, row["max"]))
        table.add_row(one_line(name), str(row["count"]), *values)
    return table


def microseconds(value_ns: float) -> str:
    """`12,345`, `1,234.5`, `0.25`: never in powers of ten."""
    value = value_ns / 1e3
    decimals = 0 if abs(value) >= 10_000 else 1 if abs(value) >= 100 else 3
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals == 3 else text


def _groups(title: str, groups: list[native.GroupFigures]) -> Iterator[Table]:
    """By the whole time if it is known, otherwise by the device's."""
    rows = [(group["name"], group["whole_ns"] or group["device_ns"]) for group in groups[:GROUPS_SHOWN]]
    known = [(name, row) for name, row in rows if row]
    if known:
        more = len(groups) - GROUPS_SHOWN
        yield _quantiles(title + (f" ({more} more: --json)" if more > 0 else ""), "", known)


def _devices(devices: list[native.DeviceFigures], *, are_known: bool) -> Table:
    """The table of devices, without the optional columns in which no device has anything. `are_known`: operations and
    sizes; else no column of theirs is needed."""
    from rich.table import Table

    columns: list[tuple[str, str, Callable[[Any], str], bool]] = [
        ("reads", "reads", str, are_known),
        ("writes", "writes", str, are_known),
        ("zeroes", "zeroes", str, False),
        ("discards", "discards", str, False),
        ("other", "others", str, False),
        ("read", "bytes_read", bytes_in_words, are_known),
        ("written", "bytes_written", bytes_in_words, are_known),
        ("zeroed", "bytes_zeroed", bytes_in_words, False),
        ("discarded", "bytes_discarded", bytes_in_words, False),
        ("flush", "flushes", str, False),
        ("FUA", "fua", str, False),
        ("merges", "merges", str, False),
        ("requeues", "requeues", str, False),
        ("splits", "splits", str, False),
        ("seq.", "sequential_share", _share, are_known),
        ("depth", "depth_mean", lambda depth: "" if depth is None else plain(depth, 3), True),
        ("most", "depth_max", lambda depth: "" if depth is None else str(depth), True),
        ("idle", "idle_share", _share, True),
    ]
    by_key: Sequence[Mapping[str, object]] = devices
    shown = [column for column in columns if column[3] or any(device[column[1]] for device in by_key)]
    more = len(devices) - DEVICES_SHOWN
    devices = sorted(devices, key=lambda one: -one["requests"]["count"]) if more > 0 else devices
    title = f"Devices, those of most requests first ({more} more: --json)" if more > 0 else "Devices"
    table = Table(title=title, title_justify="left")
    table.add_column("device")
    for head, *_ in shown:
        table.add_column(head, justify="right")
    for device in devices[:DEVICES_SHOWN]:
        cells = _cells(device, [(key, text) for _, key, text, _ in shown])
        table.add_row(one_line(device_name(device)), *cells)
    return table


def _cells(row: Mapping[str, object], columns: Iterable[tuple[str, Callable[[Any], str]]]) -> Iterator[str]:
    return (text(row[key]) for key, text in columns)


def slowest(figures: native.TraceFigures) -> Table:
    """Step by step, with those in front."""
    from rich.table import Table

    table = Table(
        title="The slowest requests (times in µs), and whose requests completed while they were in flight",
        title_justify="left",
    )
    failed = any(slow["error"] for slow in figures["slowest"])
    are_known = has_operations(figures)
    for head in ("at (s)", "device", *(("what", "sector", "size") if are_known else ()), "process"):
        table.add_column(head, justify="right" if head in ("at (s)", "sector", "size") else "left")
    for _, stage in STAGES:
        table.add_column(stage, justify="right", no_wrap=True)
    if failed:
        table.add_column("error")
    table.add_column("in front")
    for slow in figures["slowest"]:
        table.add_row(
            f"{slow['arrived_ns'] / 1e9:.6f}",
            slow["device"],
            *((slow["rwbs"], str(slow["sector"]), bytes_in_words(slow["bytes"])) if are_known else ()),
            task(slow["pid"], figures),
            *("" if value is None else microseconds(value) for value in slow["stages_ns"]),
            *([error_name(slow["error"]) if slow["error"] else ""] if failed else []),
            in_front(slow, figures),
        )
    return table


def total(slow: native.SlowRequest) -> float:
    """The latency that made it one of the slowest, in nanoseconds."""
    _, _, device, whole = slow["stages_ns"]
    return float(whole if whole is not None else device or 0)


def in_front(slow: native.SlowRequest, figures: native.TraceFigures) -> str:
    """`fio 12 requests, 48 KiB; kworker ...`."""
    tasks = (
        (f"{task(one['pid'], figures)} {one['requests']}" if one["pid"] else counted(one["requests"], "request"))
        + (f" ({bytes_in_words(one['bytes'])})" if has_operations(figures) else "")
        for one in slow["ahead"][:3]
    )
    return "; ".join(tasks) or "none"


UNKNOWN = "unknown"
"""A task that the trace does not name."""
NULL = "(null)"
"""What blkparse calls it."""


def task(pid: int, figures: native.TraceFigures) -> str:
    """`fio-1234`, or what is known of it."""
    name = figures["names"].get(str(pid))
    return one_line(f"{name}-{pid}") if name and name != NULL else f"task {pid}" if pid else UNKNOWN


def compared(found: Iterable[TraceComparison]) -> Iterator[RenderableType]:
    """Two traces in a sentence, a line per metric of them, and why one has no verdict."""
    from rich.table import Table

    found, reasons = list(found), dict[str, None]()
    yield _sentence(found)
    table = Table(title="By stretches of time, the first trace the baseline", title_justify="left")
    for head in ("metric", "baseline", "candidate", "change", "95 % interval", "verdict", "stretches"):
        table.add_column(head)
    for one in found:
        judged = one.judgement
        if judged is None:
            table.add_row(one.metric, "", "", "", "", "none", "")
            reasons.setdefault(f"! none: {one.why_not}")
            continue
        scale = scale_for("ns" if "_ns" in one.metric else "1/s", [judged.baseline, judged.candidate])
        known = judged.ci_low is not None and judged.ci_high is not None
        interval = f"{change(judged.ci_low)} to {change(judged.ci_high)}" if known else ""  # type: ignore[arg-type]
        table.add_row(
            one.metric,
            scale.with_unit(judged.baseline),
            scale.with_unit(judged.candidate),
            "" if judged.ratio is None else change(judged.ratio),
            interval,
            judged.verdict,
            f"{one.baseline_blocks} and {one.candidate_blocks} of {plain(one.block_s, 3)} s",
        )
    yield table
    yield from reasons


def _sentence(found: Sequence[TraceComparison]) -> str:
    """`The second trace is slower in device mean (+131.7 %) and device p50 (+33.5 %); undecided in requests per s.`"""
    by_verdict: dict[str, list[str]] = {}
    for one in found:
        if one.judgement is not None:
            name = one.metric.replace("_ns_", " ").replace("_", " ")
            is_certain = one.judgement.verdict != "undecided" and one.judgement.ratio is not None
            by = f" ({change(one.judgement.ratio)})" if is_certain else ""  # type: ignore[arg-type]
            by_verdict.setdefault(one.judgement.verdict, []).append(name + by)
    names = sorted(by_verdict, key=("same", "undecided").count)
    parts = [f"{'the same' if name == 'same' else name} in {listed(by_verdict[name])}" for name in names]
    return f"The second trace is {'; '.join(parts)}." if parts else "No verdict."


def beside(found: Iterable[Difference], machine: str) -> Iterator[RenderableType]:
    """A trace and what stands for it on a simulated machine, a line per figure, and what is not alike."""
    from rich.table import Table

    table = Table(title=f"On {machine}", title_justify="left")
    for head in ("figure", "trace", "synthetic", "difference"):
        table.add_column(head, justify="left" if head in ("figure", "difference") else "right")
    missed = []
    for one in found:
        table.add_row(one.figure, one.trace, one.synthetic, one.words)
        if not one.alike:
            missed.append(f"! the synthetic one misses: {one.figure}, {one.words}")
    yield table
    yield from missed or ["Alike there in all of these."]


def _bursts(bursts: Iterable[native.BurstFigures]) -> Iterator[str]:
    for one in bursts:
        if one["dispersion"] is not None:
            yield (
                f"In windows of {one['window_ns'] / 1e6:g} ms: {plain(one['mean'], 4)} arrivals on average, "
                f"{one['most']} at most, {one['empty_share']:.0%} empty, variance over mean "
                f"{plain(one['dispersion'], 3)} "
                "(1: independent arrivals)"
            )


def _reuse(reuse: native.ReuseFigures) -> Iterator[str]:
    if not reuse["touched_bytes"]:
        return
    working, touched = bytes_in_words(reuse["working_set_bytes"]), bytes_in_words(reuse["touched_bytes"])
    yield f"Working set: {working} of {touched} touched"
    caches = reuse["hit_share_by_cache_bytes"]
    shares = [
        f"{bytes_in_words(size)} {share:.1%}" + (f" ± {error:.1%}" if error else "")
        for size, share, error in caches[-CACHES_SHOWN:]
    ]
    if shares:
        sampled = " (± the standard error of the sample)" if any(error for *_, error in caches) else ""
        yield f"A cache that keeps what was touched last would serve{sampled}: {', '.join(shares)}"


def bytes_in_words(count: float) -> str:
    """`48 KiB`."""
    for power, unit in ((50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count >= 2**power:
            return f"{plain(count / 2**power, 4)} {unit}"
    return format_bytes(int(count)) if count == int(count) else f"{plain(count, 3)} B"


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"
