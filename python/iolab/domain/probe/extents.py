"""Fragmentation: the extents of the files that a phase left, and how the files interleave on their device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, TypeGuard

from iolab.base.option import Options, option
from iolab.domain.definition import Metric, Nature
from iolab.domain.native_types import Examination, LayoutOfExamination
from iolab.domain.phase_record import ExtentsObservation
from iolab.domain.probe.probe import Probe, ProbeReader

NAME = "extents"
READER = ProbeReader[ExtentsObservation](NAME, lambda probes: probes.get("extents"))


class ExtentsOptions(Options):
    """The options of the probe `extents`."""

    files_max: int = option(1000, "Most files to examine; if there are more, an even selection.", ge=1, le=100_000)
    extents_max: int = option(1_000_000, "Most extents to read per file.", ge=1, le=10_000_000)
    listed: int = option(
        20, "Extents per file that the record lists; all extents that are read are counted.", ge=0, le=10_000
    )
    method: Literal["auto", "fiemap", "fibmap"] = option(
        "auto",
        "The kernel call: FIEMAP returns extents; FIBMAP (root only) returns single blocks. auto: FIBMAP only "
        "if FIEMAP fails.",
    )


def layouts(found: ExtentsObservation) -> list[LayoutOfExamination]:
    """The files whose extents were reported."""
    return [file for file in found["files"] if _is_layout(file)]


def _is_layout(file: Examination) -> TypeGuard[LayoutOfExamination]:
    return "absent" not in file


def _metrics() -> Iterator[Metric]:
    what: tuple[tuple[str, str, Nature, str, Callable[[ExtentsObservation], float | None]], ...] = (
        (
            "extents_per_file_mean",
            "count",
            "cost",
            "Extents of a file; those that touch in the file and on the device count as one.",
            lambda found: _ratio(_sum(found, "extents"), len(layouts(found))),
        ),
        (
            "extents_per_file_max",
            "count",
            "cost",
            "Extents of the file with the most extents.",
            lambda found: max(file["extents"] for file in layouts(found)),
        ),
        (
            "extent_bytes_mean",
            "bytes",
            "benefit",
            "Bytes of an extent.",
            lambda found: _ratio(_sum(found, "mapped_bytes"), _sum(found, "extents")),
        ),
        (
            "interleave_switches",
            "count",
            "cost",
            "Changes from one file's extents to another's along the device, ignoring gaps.",
            lambda found: _sum_of_devices(found, "switches"),
        ),
        (
            "interleave_share",
            "share",
            "cost",
            "0 if each file lies in one stretch, 1 if each extent is followed by another file's.",
            _interleave_share,
        ),
        (
            "stretch_bytes_mean",
            "bytes",
            "benefit",
            "Bytes of a file that lie between two changes of the file along the device.",
            lambda found: _ratio(
                _sum_of_devices(found, "bytes"), _sum_of_devices(found, "switches") + len(found["interleaving"])
            ),
        ),
        (
            "file_hole_bytes",
            "bytes",
            "neutral",
            "Bytes within the files' sizes where nothing is allocated.",
            lambda found: float(sum(file["hole_bytes"] or 0 for file in layouts(found))),
        ),
        *(
            (
                f"file_{flag}_bytes",
                "bytes",
                "neutral",
                f"Bytes in extents that are {means}.",
                partial(_bytes_with, flag=flag),
            )
            for flag, means in (("unwritten", "allocated and not yet written"), ("shared", "shared with other files"))
        ),
    )
    for name, unit, nature, help, of in what:
        yield READER.metric(name, unit, nature, help, "no file has an extent", of)


def _interleave_share(found: ExtentsObservation) -> float | None:
    """Over devices, of the changes that could be."""
    avoidable = _sum_of_devices(found, "extents") - _sum_of_devices(found, "files")
    unavoidable = _sum_of_devices(found, "files") - len(found["interleaving"])
    if not found["interleaving"]:
        return None
    return (_sum_of_devices(found, "switches") - unavoidable) / avoidable if avoidable else 0.0


def _sum(found: ExtentsObservation, name: Literal["extents", "mapped_bytes"]) -> float:
    return float(sum(file[name] for file in layouts(found)))


def _sum_of_devices(found: ExtentsObservation, name: Literal["bytes", "extents", "files", "switches"]) -> float:
    return float(sum(device[name] for device in found["interleaving"]))


def _bytes_with(found: ExtentsObservation, flag: str) -> float:
    return float(sum(dict(file["bytes_by_flag"]).get(flag, 0) for file in layouts(found)))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


PROBE = Probe(
    NAME,
    "Where the phase's files lie on their device: extents per file, their sizes, how files interleave.",
    ExtentsOptions,
    ("FIEMAP",),
    tuple(_metrics()),
)
