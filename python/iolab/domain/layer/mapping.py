"""Layers of device mapper: linear, striped, delay, flakey, crypt. Their tables are those of
Documentation/admin-guide/device-mapper of Linux 6.1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

from typing_extensions import override

from iolab.base.option import Bytes, Duration, option
from iolab.domain.layer.layer import SECTOR_BYTES, Layer, LayerDevice, Maker, MappedDevice, rounded_up

_MS = 10**6
_NULL_CIPHER = "cipher_null-ecb"
_CIPHER = re.compile(r"(?P<cipher>[a-z0-9_]+)-(?P<mode>[a-z0-9]+)(-(?P<iv>[a-z0-9]+(:[a-z0-9-]+)?))?")
_CIPHER_EXAMPLE = f'a cipher of dm-crypt such as "aes-xts-plain64", or "{_NULL_CIPHER}", which encrypts nothing'


class Linear(Layer):
    """`kind = "linear"`."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod",)
    configuration: ClassVar[str] = "CONFIG_BLK_DEV_DM"

    kind: Literal["linear"] = option("linear", "dm-linear: the device below, as it is.")

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        return maker.mapping(MappedDevice("linear", size_bytes, f"{members[0].node} 0"))


class Striped(Layer):
    """`kind = "striped"`."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod",)
    configuration: ClassVar[str] = "CONFIG_BLK_DEV_DM"

    kind: Literal["striped"] = option("striped", "dm-stripe: chunks of several devices in turn.")
    members: int = option(2, "Number of devices.", ge=2, le=64)
    chunk: Bytes = option(
        64 << 10, "Bytes of one device before the next one's turn.", unit="bytes", ge=4096, le=1 << 30
    )

    @property
    @override
    def width(self) -> int:
        return self.members

    @override
    def fault(self) -> tuple[str, str] | None:
        return chunk_fault(self.chunk)

    @override
    def member_bytes(self, size_bytes: int) -> int:
        return rounded_up(size_bytes, self.members * self.chunk) // self.members

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        of_members = " ".join(f"{member.node} 0" for member in members)
        whole = self.members * self.member_bytes(size_bytes)
        return maker.mapping(
            MappedDevice("striped", whole, f"{self.members} {self.chunk // SECTOR_BYTES} {of_members}")
        )


class Delay(Layer):
    """`kind = "delay"`."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod", "dm_delay")
    configuration: ClassVar[str] = "CONFIG_DM_DELAY"

    kind: Literal["delay"] = option("delay", "dm-delay: each bio waits before it goes on to the device below.")
    delay: Duration = option(
        10**6,
        "How long a bio waits, in whole milliseconds; the kernel adds up to two ticks of its timer.",
        unit="ns",
        le=10**12,
    )
    write_delay: Duration | None = option(
        None, "How long a write waits instead.", unit="ns", le=10**12, default_is="as `delay`"
    )
    flush_delay: Duration | None = option(
        None, "How long a flush waits instead.", unit="ns", le=10**12, default_is="as `write_delay`"
    )

    @override
    def fault(self) -> tuple[str, str] | None:
        for name in ("delay", "write_delay", "flush_delay"):
            if (getattr(self, name) or 0) % _MS:
                return name, "not a whole number of milliseconds, which is what dm-delay takes"
        return None

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        write = self.delay if self.write_delay is None else self.write_delay
        flush = write if self.flush_delay is None else self.flush_delay
        each = [f"{members[0].node} 0 {delay // _MS}" for delay in (self.delay, write, flush)]
        return maker.mapping(MappedDevice("delay", size_bytes, " ".join(each)))


class Flakey(Layer):
    """`kind = "flakey"`."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod", "dm_flakey")
    configuration: ClassVar[str] = "CONFIG_DM_FLAKEY"

    kind: Literal["flakey"] = option("flakey", "dm-flakey: the device below, with times at which I/O fails.")
    up: Duration = option(10**10, "How long I/O works, in whole seconds.", unit="ns", le=10**13)
    down: Duration = option(0, "How long it then fails, in whole seconds.", unit="ns", le=10**13)
    when_down: Literal["error", "drop_writes", "error_writes"] = option(
        "error", "What happens then: every I/O fails, writes are lost in silence, or writes alone fail."
    )

    @override
    def fault(self) -> tuple[str, str] | None:
        for name in ("up", "down"):
            if getattr(self, name) % 10**9:
                return name, "not a whole number of seconds, which is what dm-flakey takes"
        return (
            ("up", "0 with down = 0; expected one of the two to be a second or more")
            if self.up == self.down == 0
            else None
        )

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        features = "" if self.when_down == "error" else f" 1 {self.when_down}"
        arguments = f"{members[0].node} 0 {self.up // 10**9} {self.down // 10**9}{features}"
        return maker.mapping(MappedDevice("flakey", size_bytes, arguments))


class Crypt(Layer):
    """`kind = "crypt"`."""

    modules: ClassVar[tuple[str, ...]] = ("dm_mod", "dm_crypt")
    configuration: ClassVar[str] = "CONFIG_DM_CRYPT"

    kind: Literal["crypt"] = option("crypt", "dm-crypt: what is written is encrypted, with a key that is no secret.")
    cipher: str = option(
        "aes-xts-plain64", f"Cipher, mode and initialisation vector; {_NULL_CIPHER} encrypts nothing.", max_length=100
    )
    key_bits: int | None = option(
        None, "Length of the key, in bits.", ge=0, le=1024, default_is="512 with xts, 0 with cipher_null, else 256"
    )
    sector_size: Literal[512, 4096] = option(512, "Bytes that are encrypted at a time.", expected="512 or 4096")
    no_read_workqueue: bool = option(
        False, "Decrypt where the read completes, and not in a thread of the workqueue kcryptd (since Linux 5.9)."
    )
    no_write_workqueue: bool = option(
        False, "Encrypt in the task that writes, and not in a thread of kcryptd (since Linux 5.9)."
    )
    same_cpu_crypt: bool = option(False, "Encrypt on the CPU that submitted the I/O.")
    submit_from_crypt_cpus: bool = option(False, "Submit writes from the CPU that encrypted, unsorted.")
    allow_discards: bool = option(False, "Pass discards on.")

    @property
    @override
    def needed_modules(self) -> tuple[str, ...]:
        words = _CIPHER.fullmatch(self.cipher)
        assert words is not None, "`fault` refuses others"
        cipher, mode, iv = words["cipher"], words["mode"], words["iv"] or ""
        if cipher == "cipher_null":
            return ("crypto_null",)
        of_mode = {"xts": ("ecb", "xts")}.get(mode, (mode,))
        of_iv = ("essiv", "sha256_generic") if iv.startswith("essiv") else ()
        return (f"{cipher}_generic", *of_mode, *of_iv)

    @override
    def fault(self) -> tuple[str, str] | None:
        if _CIPHER.fullmatch(self.cipher) is None:
            return "cipher", f'"{self.cipher}" given; expected {_CIPHER_EXAMPLE}'
        return None if self._key_bits % 8 == 0 else ("key_bits", f"{self.key_bits} given; expected a multiple of 8")

    @property
    def _key_bits(self) -> int:
        if self.key_bits is not None:
            return self.key_bits
        if self.cipher.startswith("cipher_null"):
            return 0
        return 512 if "-xts-" in self.cipher else 256

    @override
    def member_bytes(self, size_bytes: int) -> int:
        return rounded_up(size_bytes, self.sector_size)

    @override
    def make(self, members: Sequence[LayerDevice], size_bytes: int, maker: Maker) -> LayerDevice:
        # Its halves differ, as xts needs it.
        key = bytes(number % 256 for number in range(self._key_bits // 8)).hex() or "-"
        features = [] if self.sector_size == SECTOR_BYTES else [f"sector_size:{self.sector_size}"]
        flags = (
            "no_read_workqueue",
            "no_write_workqueue",
            "same_cpu_crypt",
            "submit_from_crypt_cpus",
            "allow_discards",
        )
        features += [flag for flag in flags if getattr(self, flag)]
        counted = f" {len(features)} {' '.join(features)}" if features else ""
        arguments = f"{self.cipher} {key} 0 {members[0].node} 0{counted}"
        return maker.mapping(MappedDevice("crypt", self.member_bytes(size_bytes), arguments))


def chunk_fault(chunk: int) -> tuple[str, str] | None:
    """What is wrong with the bytes of a chunk: the kernel takes powers of two."""
    if chunk & (chunk - 1):
        return "chunk", f"{chunk} bytes given; expected a power of two"
    return None


KINDS: tuple[type[Layer], ...] = (Linear, Striped, Delay, Flakey, Crypt)
