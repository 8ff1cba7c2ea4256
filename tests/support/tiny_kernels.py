"""Kernels of a few bytes, which QEMU boots at once: what a guest machine's kernel can do, without a kernel."""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HANG = b"\xeb\xfe"
"""jmp to itself"""
DEBUG_PORT, SERIAL_PORT, EXIT_PORT = 0xE9, 0x3F8, 0xF4


def repeats(port: int, byte: bytes) -> bytes:
    """mov dx, port; mov al, byte; out dx, al; jmp to the latter"""
    return _to(port) + b"\xb0" + byte + b"\xee\xeb\xfd"


def says(text: bytes) -> bytes:
    """On the debug port; then it hangs."""
    each = b"".join(b"\xb0" + bytes([byte]) + b"\xee" for byte in text)
    return _to(DEBUG_PORT) + each + HANG


def speaks(messages: Sequence[dict[str, Any]]) -> bytes:
    """What an agent would say; then it ends the machine (out dx, eax)."""
    text = "".join(f"{json.dumps(message)}\n" for message in messages)
    return says(text.encode()).removesuffix(HANG) + _to(EXIT_PORT) + b"\xef" + HANG


def image(path: Path, code: bytes) -> Path:
    """A kernel of that code, after a header of Multiboot (version 0.6.96, sections 3.1.2 and 3.1.3)."""
    magic, flags, at = 0x1BADB002, 0x00010000, 0x100000
    header = struct.pack("<8I", magic, flags, -(magic + flags) & 0xFFFFFFFF, at, at, 0, 0, at + 32)
    path.write_bytes(header + code)
    return path


def _to(port: int) -> bytes:
    """mov dx, port"""
    return b"\x66\xba" + struct.pack("<H", port)
