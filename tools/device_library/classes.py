"""What the devices of a class have in common: everything but the three fitted keys, and how long a stall is.

All of it is estimated (E) or the link's own. The number of dies follows from the capacity.
"""

import math
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEVICES = Path(__file__).parents[2] / "machines" / "devices"
DIE_GB = 32
"""Of three bits a cell in 64 to 96 layers, 256 Gb (E)."""
CHANNELS = 8


@dataclass(frozen=True)
class DeviceClass:
    """Devices on the same link."""

    name: str
    link_bytes_per_s: int
    read_key: str
    """What random reads are limited by, and so what is fitted to them."""


SATA = DeviceClass("SATA, 6 Gb/s", 550_000_000, "firmware.command_ns")
PCIE_3 = DeviceClass("PCIe 3.0 x4", 3_500_000_000, "timing.page_read_ns")
PCIE_4 = DeviceClass("PCIe 4.0 x4", 7_100_000_000, "timing.page_read_ns")
"""Rates that the fastest devices of such links have in their data sheets."""
_LINKS = (
    (r"Samsung_SSD_8[67]0", SATA),
    (r"CT1000P3P|Lexar_SSD_NM790|MTFDKBA|Samsung_SSD_9[89]0|WD_BLACK_SN(770|850X)|WD_Blue_SN580", PCIE_4),
)
"""By the beginning of the model's name; the others are PCIe 3.0. From the manufacturers' data sheets."""
STALL_WRITES = 8192
"""From one stall to the next: several times what the benchmark has in flight (E)."""
READ_KEY, PROGRAM_KEY, WRITE_KEY = "read_key", "timing.page_program_ns", "firmware.write_ns"


def class_of(model: str) -> DeviceClass:
    """The class of a model, by its name."""
    return next((found for pattern, found in _LINKS if re.match(pattern, model)), PCIE_3)


def device_of(model: str, gb: int) -> dict[str, Any]:
    """The device's table before its keys are fitted."""
    kind = class_of(model)
    if kind is SATA:
        return tomllib.loads((DEVICES / "sata_ssd_2018.toml").read_text())
    device = tomllib.loads((DEVICES / "hp_ex920.toml").read_text())
    dies = max(CHANNELS, 2 ** round(math.log2(gb / DIE_GB)))
    device["geometry"] |= {"channels": CHANNELS, "dies_per_channel": dies // CHANNELS}
    device["timing"]["channel_bytes_per_s"] = 1_200_000_000
    device["firmware"] = {"command_ns": 1000, "write_ns": 20_000, **device["firmware"]}
    device["firmware"] |= {"command_ns": 1000, "cores": 1, "buffer_bytes": 2**26}
    device["interface"]["bytes_per_s"] = kind.link_bytes_per_s
    return device
