"""NVMe: what drives count of themselves."""

from __future__ import annotations

from iolab.base.option import Options
from iolab.domain.phase_record import NvmeObservation
from iolab.domain.probe.probe import Probe, ProbeReader

NAME = "nvme"
READER = ProbeReader[NvmeObservation](NAME, lambda probes: probes.get("nvme"))
UNITS_MIN = 50
UNIT_BYTES = 512_000
"""A drive counts in these, so that of fewer than `UNITS_MIN` no ratio can be told."""
_SAYS_NOT = "the drive does not say what it programs (log page C0h of the Open Compute Project)"


class NvmeOptions(Options):
    """The probe `nvme` has no options."""


def _host_bytes(found: NvmeObservation) -> float:
    return float(sum(drive["host_bytes_written"] for drive in found["drives"].values()))


def _media_bytes(found: NvmeObservation) -> float | None:
    stated = [drive["media_bytes_written"] for drive in found["drives"].values() if "media_bytes_written" in drive]
    return float(sum(stated)) if len(stated) == len(found["drives"]) else None


def _amplification(found: NvmeObservation) -> float | None:
    host, media = _host_bytes(found), _media_bytes(found)
    return None if media is None or host < UNITS_MIN * UNIT_BYTES else media / host


PROBE = Probe(
    NAME,
    "What the target's NVMe drives count of themselves: bytes written by the host and by the drive, temperature "
    "(log pages 02h and C0h). On a host only.",
    NvmeOptions,
    ("NVMe",),
    (
        READER.metric(
            "drive_host_bytes",
            "bytes",
            "neutral",
            "Bytes that hosts wrote, as the drives count them, in steps of 512,000.",
            "no drive was asked",
            _host_bytes,
        ),
        READER.metric(
            "drive_media_bytes",
            "bytes",
            "cost",
            "Bytes that the drives programmed for these, moved data included.",
            _SAYS_NOT,
            _media_bytes,
        ),
        READER.metric(
            "drive_write_amplification",
            "ratio",
            "cost",
            "Bytes that the drives programmed over those that hosts wrote.",
            f"less than {UNITS_MIN} units of 512,000 bytes were written, or {_SAYS_NOT}",
            _amplification,
        ),
        READER.metric(
            "drive_celsius",
            "°C",
            "cost",
            "Temperature of the warmest drive at the end.",
            "no drive was asked",
            lambda found: float(max(drive["celsius"] for drive in found["drives"].values())),
        ),
    ),
)
