"""Checked lines: what was appended is read, what was changed is named, whatever the disk did."""

import errno
import json
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iolab.base import checked_lines
from iolab.base.checked_lines import DamagedLine, append, encode, read
from iolab.base.errors import MachineError

ENTRIES: list[dict[str, Any]] = [
    {"event": "one", "number": 0},
    {"event": "two", "text": 'new\nline "quoted" ü \u2028'},
    {"path": os.fsdecode(b"/tmp/\xff")},
    {},
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ANY_ENTRY = st.dictionaries(st.text().filter(lambda key: key != "sum"), JSON, max_size=5)


@pytest.fixture(params=[os.O_APPEND, 0], ids=["appending", "positioned"])
def fd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path / "lines.jsonl", os.O_RDWR | os.O_CREAT | request.param)
    yield descriptor
    os.close(descriptor)


def content_of(fd: int) -> bytes:
    return os.pread(fd, 1 << 20, 0)


def test_entries_come_back_as_they_were_written(fd: int) -> None:
    for entry in ENTRIES:
        append(fd, entry, where="here")
    lines = read(content_of(fd))
    assert lines.entries == ENTRIES
    assert lines.numbers == [1, 2, 3, 4]
    assert (lines.damaged, lines.torn_end, lines.whole_bytes) == ([], False, len(content_of(fd)))
    assert all(json.loads(line)["sum"] for line in content_of(fd).splitlines())


@given(entries=st.lists(ANY_ENTRY, max_size=5))
@settings(max_examples=2 * settings().max_examples)
def test_any_entries_come_back(entries: list[dict[str, Any]]) -> None:
    assert read(b"".join(map(encode, entries))).entries == entries


def test_every_flipped_bit_is_found_and_costs_no_other_line() -> None:
    whole = [encode(entry) for entry in ENTRIES]
    for bit in range(8 * len(whole[1])):
        changed = bytearray(whole[1])
        changed[bit // 8] ^= 1 << bit % 8
        lines = read(whole[0] + changed + whole[2] + whole[3])
        assert ENTRIES[1] not in lines.entries
        assert lines.entries[0] == ENTRIES[0] and lines.entries[-1] == ENTRIES[3]
        assert 2 in [damage.number for damage in lines.damaged]


def test_a_flipped_bit_in_the_header_is_no_earlier_format() -> None:
    header, other = encode({"format": 2}), encode({"n": 1})
    for bit in range(8 * (len(header) - 1)):
        changed = bytearray(header)
        changed[bit // 8] ^= 1 << bit % 8
        entries = read(changed + other + b'{"n":2}\n', is_earlier=lambda found: found.get("format") != 2).entries
        assert {"format": 2} not in entries
        if bytes(changed).count(b"\n") == 1 and b'"sum"' in changed:
            assert entries == [{"n": 1}]


def test_a_torn_end_at_any_byte_loses_only_the_torn_line() -> None:
    whole = b"".join(map(encode, ENTRIES))
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole) + 1):
        lines = read(whole[:length])
        count = sum(end <= length for end in ends)
        assert lines.entries == ENTRIES[:count]
        assert lines.torn_end == (length not in [0, *ends])
        assert lines.whole_bytes == ([0, *ends])[count]
        assert lines.damaged == []


@given(content=st.binary(max_size=300) | st.text(alphabet='{}[]":,sum01\n\0', max_size=200).map(str.encode))
@settings(max_examples=5 * settings().max_examples)
def test_any_bytes_can_be_read(content: bytes) -> None:
    lines = read(content + b"\n" + encode(ENTRIES[0]), is_earlier=lambda header: "event" in header)
    assert lines.entries[-1] == ENTRIES[0]
    assert len(lines.entries) + len(lines.damaged) == content.count(b"\n") + 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"\x00\xff nonsense", "not a journal entry"),
        (b"[1]", "not a journal entry"),
        (b"[" * 100_000, "not a journal entry"),
        (b'{"n":' + b"9" * 5000 + b"}", "not a journal entry"),
        (b'{"n":NaN}', "not a journal entry"),
        (b'{"n":1}', "not a journal entry: it has no checksum"),
        (b'{"n":1,"sum":"0123456789abcdef"}', "damaged: its checksum does not match"),
        (b'{"sum":"0123456789abcdef","n":1}', "damaged: its checksum is not where it was written"),
    ],
    ids=["bytes", "list", "nested", "digits", "nan", "no sum", "wrong sum", "sum elsewhere"],
)
def test_a_damaged_line_is_named_with_its_reason(line: bytes, reason: str) -> None:
    lines = read(encode(ENTRIES[0]) + line + b"\n" + encode(ENTRIES[1]))
    assert lines.damaged == [DamagedLine(2, reason)]
    assert lines.entries == ENTRIES[:2]


def test_lines_without_sums_are_taken_from_earlier_formats_only() -> None:
    content = b'{"format":1}\n{"n":1}\n' + encode({"n": 2}) + encode({"n": 3}).replace(b'"n":3', b'"n":4')
    lines = read(content, is_earlier=lambda header: header["format"] == 1)
    assert lines.entries == [{"format": 1}, {"n": 1}, {"n": 2}]
    assert lines.damaged == [DamagedLine(4, "damaged: its checksum does not match")]
    assert read(content).entries == [{"n": 2}]


def test_reserved_room_is_no_damage(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "reserved", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(fd, 0, 4096)
    append(fd, ENTRIES[0], where="here")
    assert read(content_of(fd)).entries == ENTRIES[:1]
    assert len(content_of(fd)) == 4096
    os.pwrite(fd, b'{"torn', read(content_of(fd)).whole_bytes)
    lines = read(content_of(fd))
    assert (lines.damaged, lines.torn_end, lines.torn_bytes) == ([], True, 6)
    os.close(fd)


def test_short_writes_are_completed(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))
    append(fd, ENTRIES[1], where="here")
    assert read(content_of(fd)).entries == [ENTRIES[1]]


@pytest.mark.parametrize("taken", [0, 1, 20])
def test_a_refused_line_leaves_nothing_before_the_next(fd: int, taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    append(fd, ENTRIES[0], where="here")
    write = os.write
    budget = [taken]

    def filling_up(fd: int, data: bytes) -> int:
        if not budget[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(fd, bytes(data)[: budget[0]])
        budget[0] -= written
        return written

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", filling_up)
        with pytest.raises(MachineError, match=r"^here: can't be written: No space left on device; make room$"):
            append(fd, ENTRIES[1], where="here", remedy="make room")
    append(fd, ENTRIES[3], where="here")
    lines = read(content_of(fd))
    assert lines.entries == [ENTRIES[0], ENTRIES[3]]
    assert (lines.damaged, lines.torn_end) == ([], False)


def test_a_line_that_cannot_be_synced_is_an_error(fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(MachineError, match="can't be written: Input/output error"):
            append(fd, ENTRIES[0], where="here")
    append(fd, ENTRIES[1], where="here")
    assert read(content_of(fd)).entries == [ENTRIES[1]]


def test_the_kernels_own_short_write_is_noticed(tmp_path: Path) -> None:
    """A file size limit takes the first half of a line and refuses the rest, as a full disk does."""
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    fd = os.open(tmp_path / "lines.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    try:
        append(fd, ENTRIES[0], where="here")
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.fstat(fd).st_size + 10, limits[1]))
        with pytest.raises(MachineError, match="File too large"):
            append(fd, ENTRIES[1], where="here")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, previous)
    assert read(content_of(fd)).entries == ENTRIES[:1]
    assert not read(content_of(fd)).torn_end
    os.close(fd)


@pytest.mark.parametrize("entry", [{"sum": 1}, {"n": float("nan")}, {"n": {1, 2}}, {"text": "x" * 300}])
def test_an_entry_that_could_not_be_read_again_is_not_written(
    fd: int, entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked_lines, "LINE_BYTES_MAX", 200)
    with pytest.raises((ValueError, TypeError)):
        append(fd, entry, where="here")
    assert content_of(fd) == b""


def test_a_line_longer_than_the_limit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encode({"text": "x" * 300}) + encode(ENTRIES[0])
    monkeypatch.setattr(checked_lines, "LINE_BYTES_MAX", 200)
    lines = read(content)
    assert lines.entries == ENTRIES[:1]
    assert "200 are the most" in lines.damaged[0].reason


def test_an_entry_that_is_nested_deeper_than_its_readers_follow_is_damaged() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    found = checked_lines.read(checked_lines.encode({"a": deep}) + checked_lines.encode({"b": 1}))
    assert found.entries == [{"b": 1}] and found.damaged == [(1, "not a journal entry")]
