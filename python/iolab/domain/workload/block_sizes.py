"""The sizes that operations have, with the weight of each: as a file gives them, and as the engine takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from iolab.base import quantity
from iolab.base.option import shown
from iolab.domain import native_types as native


def _read_block_sizes(given: object) -> dict[int, float]:
    """`"4KiB"` or `{"4KiB" = 70, "64KiB" = 30}` -> bytes to weight."""
    weights = given.items() if isinstance(given, Mapping) else [(given, 1.0)]
    sizes: dict[int, float] = {}
    for size, weight in weights:
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
            raise _wrong_block_size(f'weight {shown(weight)}; expected a number above 0, such as {{"4KiB" = 70}}')
        sizes[_read_block_size(size)] = float(weight)
    if not sizes or not all(0 < size < 2**32 for size in sizes):
        raise _wrong_block_size(f"{shown(given)} given; expected sizes from 1 byte to 4 GiB")
    return sizes


def _read_block_size(given: object) -> int:
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if not isinstance(given, str):
        raise _wrong_block_size(f'{shown(given)} given; expected a size such as "4KiB", or sizes with weights')
    try:
        return quantity.parse_bytes(given)
    except ValueError as error:
        raise _wrong_block_size(str(error)) from None


def _wrong_block_size(why: str) -> PydanticCustomError:
    return PydanticCustomError("quantity", "{why}", {"why": why})


BlockSizes = Annotated[dict[int, float], BeforeValidator(_read_block_sizes)]
"""Bytes to weight."""


class AlignedBlocks(NamedTuple):
    """Sizes of operations whose offsets have a unit of their own."""

    sizes: Mapping[int, float]
    align_bytes: int


def block_list(sizes: Mapping[int, float]) -> list[native.BlockSize]:
    """As the engine takes them."""
    return [{"bytes": size, "weight": weight} for size, weight in sizes.items()]


def mean_bytes(sizes: Mapping[int, float]) -> float:
    """Weighted by how often each is drawn."""
    return sum(size * weight for size, weight in sizes.items()) / sum(sizes.values())
