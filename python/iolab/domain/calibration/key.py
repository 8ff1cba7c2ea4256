"""The physical keys of a device that a calibration may fit, by its kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from iolab.base.toml import TomlTable

NS_MAX = 1_000_000_000
RATE_MAX = 100_000_000_000


@dataclass(frozen=True)
class Key:
    """A whole number in a device's table, above 0."""

    name: str
    """Dotted: `timing.page_read_ns`."""
    least: int
    most: int
    start: int
    """What the search starts from if the table has none, or 0."""

    def of(self, device: TomlTable) -> int:
        """Its value in the device's table, or where the search starts."""
        return self._in(device) or self.start

    def given_in(self, device: TomlTable) -> bool:
        """Whether the device's table has it, above 0."""
        return self._in(device) > 0

    def _in(self, device: TomlTable) -> int:
        place: Any = device
        for part in self.name.split("."):
            place = place.get(part, 0) if isinstance(place, dict) else 0
        return int(place)

    def clipped(self, value: float) -> int:
        """The nearest whole number within the key's range."""
        return min(max(round(value), self.least), self.most)


FLASH = (
    Key("timing.page_read_ns", 1000, NS_MAX, 60_000),
    Key("firmware.command_ns", 100, NS_MAX, 5000),
    Key("interface.bytes_per_s", 1_000_000, RATE_MAX, 1_000_000_000),
    Key("timing.page_program_ns", 1000, NS_MAX, 1_000_000),
    Key("firmware.write_ns", 10, NS_MAX, 1000),
)
OF_FLUSHES = Key("firmware.flush_ns", 100, NS_MAX, 100_000)
"""Fitted if cells have durable writes, and the device a cache to flush."""
LUN = (
    Key("back_end.access_ns", 1000, NS_MAX, 1_000_000),
    Key("back_end.servers", 1, 4096, 4),
    Key("back_end.bytes_per_s", 1_000_000, RATE_MAX, 1_000_000_000),
)
LUN_IF_GIVEN = (
    Key("adapter_ns", 100, NS_MAX, 10_000),
    Key("back_end.write_access_ns", 1000, NS_MAX, 1_000_000),
    Key("back_end.write_bytes_per_s", 1_000_000, RATE_MAX, 1_000_000_000),
    Key("flush_ns", 1000, NS_MAX, 1_000_000),
)
"""Fitted if the device's table has them, above 0."""
NULL = (Key("latency_ns", 100, NS_MAX, 10_000), Key("queue_depth", 1, 4096, 64))
OF_KINDS = {"flash": (*FLASH, OF_FLUSHES), "lun": (*LUN, *LUN_IF_GIVEN), "null": NULL}
OF_FLUSHED = frozenset({OF_FLUSHES.name, "flush_ns"})
OF_WRITES = OF_FLUSHED | {
    "timing.page_program_ns",
    "firmware.write_ns",
    "back_end.write_access_ns",
    "back_end.write_bytes_per_s",
}
"""Keys that nothing shows without writes."""


def read_by(operation: str, keys: Sequence[str]) -> list[str]:
    """Of the keys, those that a cell of this operation (`Cell.operation`) reads."""
    unread = {"read": OF_WRITES, "durable write": frozenset()}.get(operation, OF_FLUSHED)
    return [key for key in keys if key not in unread]


def keys_of(device: TomlTable, *, flushes: bool) -> tuple[Key, ...]:
    """The keys to fit of a device of this kind; none for kinds that calibration does not take."""
    keys = OF_KINDS.get(str(device.get("kind")), ())
    given = [key for key in keys if key not in LUN_IF_GIVEN or key.given_in(device)]
    return tuple(key for key in given if key.name not in OF_FLUSHED or (flushes and _has_cache(device)))


def _has_cache(device: TomlTable) -> bool:
    if device.get("kind") == "lun":
        return True  # its table has the key
    firmware = device.get("firmware", {})
    return bool(firmware.get("reports_write_cache", not firmware.get("power_loss_protection", False)))


def with_values(device: TomlTable, values: dict[str, int]) -> TomlTable:
    """The device's table with other values of some keys; the argument stays as it is."""
    changed = dict(device)
    for name, value in values.items():
        first, _, rest = name.partition(".")
        changed[first] = with_values(changed.get(first, {}), {rest: value}) if rest else value
    return changed
