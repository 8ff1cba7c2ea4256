"""`show --as extents`: where files lie on their device, in blocks: logical range, physical range, count; and totals.

The listing is that of the first round in which the probe saw files; the totals are means over the rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolab.base.errors import InputError
from iolab.base.plain_text import counted
from iolab.domain import native_types as native
from iolab.domain.phase_record import ExtentsObservation, probes_of
from iolab.domain.probe import extents as probe
from iolab.presentation.table.means import PhaseMeans, phase_means

if TYPE_CHECKING:
    from iolab.files.store import RunData

ABSENT = "-"
FILES_SHOWN = 4
EXTENTS_SHOWN = 10


def render(run: RunData, metrics: Sequence[str] = ()) -> str:
    """The listings. InputError if the run was not measured with the probe, or if metrics are asked for."""
    if metrics:
        raise InputError("the extents table has fixed columns", where="--metric", remedy="leave --metric out")
    blocks: list[str] = []
    phases: dict[tuple[str, ...], str] = {}
    for place in phase_means(run):
        found = _observed(run, place) if place.get("extents_per_file_mean") is not None else None
        if found:
            lines = body(place, found)
            # What reads and overwrites leaves every block where it was.
            earlier = phases.setdefault((place.workload, place.setting, *lines), place.phase)
            blocks.append(_block(place, lines if earlier == place.phase else [f"as after {earlier}"]))
    if not blocks:
        raise InputError(
            "no file's extents were looked at",
            where=str(run.path),
            remedy="measure with [probes] extents = true, on a filesystem other than tmpfs",
        )
    return "\n".join(blocks)


def body(place: PhaseMeans, found: ExtentsObservation) -> list[str]:
    """One setting in one phase: the files' extents, and the totals."""
    return [*_listing(found), *_totals(place)]


def _block(place: PhaseMeans, lines: list[str]) -> str:
    title = ", ".join(filter(None, (place.workload, place.phase, place.setting)))
    return "\n".join([title, "", *lines, ""])


def _observed(run: RunData, place: PhaseMeans) -> ExtentsObservation | None:
    """The observation of the first round that has any."""
    for trial, workload, setting in run.trials.select("trial", "workload", "setting").iter_rows():
        if (workload, setting) == (place.workload, place.setting):
            phases = run.record(trial).phases
            for phase in phases:
                found = probes_of(phase).get("extents")
                if found and place.phase in ("", phase["phase"]):
                    return found
    return None


def _listing(found: ExtentsObservation) -> Iterator[str]:
    files = probe.layouts(found)
    for file in files[:FILES_SHOWN]:
        yield from _file(file)
        yield ""
    left = found["files_found"] - min(len(files), FILES_SHOWN)
    if left:
        yield f"... {counted(left, 'more file')}"
        yield ""


def _file(file: native.LayoutOfExamination) -> Iterator[str]:
    """A line per extent, in the filesystem's blocks; a range has both its ends."""
    count, size = file["extents"], file["block_bytes"]
    mean = f", {file['mapped_bytes'] / count:.0f} bytes each" if count > 1 else ""
    yield f"{file['path']}: {file['size_bytes']} bytes in {counted(count, 'extent')}{mean} (blocks of {size} bytes)"
    shown = file["listed"][:EXTENTS_SHOWN]
    for logical, physical, length, flags in shown:
        blocks = -(-length // size)
        where = ABSENT if physical is None else _range(physical // size, blocks)
        words = f" {', '.join(flags)}" if flags else ""
        yield f"{_range(logical // size, blocks)}: {where} ({blocks}){words}"
    if count > len(shown):
        yield f"... {counted(count - len(shown), 'more extent')}" + (
            "" if file["complete"] else ", and what was not read"
        )


def _range(first: int, blocks: int) -> str:
    return f"{first}-{first + blocks - 1}"


def _totals(place: PhaseMeans) -> Iterator[str]:
    for metric, words, form in (
        ("extents_per_file_mean", "extents per file", "{:.1f}"),
        ("extent_bytes_mean", "bytes per extent", "{:.0f}"),
        ("interleave_switches", "changes of the file along the device", "{:.0f}"),
        ("stretch_bytes_mean", "bytes between two changes", "{:.0f}"),
        ("interleave_share", "interleaved, of 1", "{:.3f}"),
        ("file_hole_bytes", "bytes in holes", "{:.0f}"),
        ("file_unwritten_bytes", "bytes allocated and not written", "{:.0f}"),
        ("file_shared_bytes", "bytes shared with other files", "{:.0f}"),
    ):
        value = place.get(metric)
        if value or metric.startswith(("extent", "interleave")):
            yield f"{words + ':':<38} {ABSENT if value is None else form.format(value)}"
