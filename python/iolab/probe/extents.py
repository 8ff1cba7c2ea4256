"""Fragmentation: the extents of the files that a phase left."""

from __future__ import annotations

from iolab.option import Options
from iolab.probe.probe import Probe


class ExtentsOptions(Options):
    pass


PROBE = Probe(
    "extents",
    "Where the phase's files lie on their device: extents per file, their sizes, how files interleave.",
    ExtentsOptions,
    ("FIEMAP",),
    (),
)
