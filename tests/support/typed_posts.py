"""Lists, blocks and sentences as people type them into posts, drawn from a seed, and the figures in them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

SETTINGS = [
    ["ext4", "xfs", "btrfs"],
    ["before", "after"],
    ["6.6", "6.12"],
    ["5.15.0-91", "6.8.0-31"],
    ["old server", "new server"],
    ["/dev/sda (WD Red 4TB)", "/dev/nvme0n1 (Intel P3600)"],
    ["tank", "backup", "scratch"],
    ["virtio-blk", "virtio-scsi"],
    ["NFS", "SMB"],
]
OF_ONE_LINE = [one for one in SETTINGS if "/dev/" not in one[0] and "server" not in one[0]]
INTROS = ["", "Hi all,\n\nI ran some tests today.\n", "Screenshots below.\n"]
MB, IOPS, MS = 1e6, 1.0, 1e6


@dataclass
class TypedPost:
    """A text, and what it states."""

    text: str
    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """By setting and what was done, in units of metrics."""
    suffix: str = ".txt"


def typed_post(seed: int) -> TypedPost:
    """The post of this number."""
    draw = random.Random(seed)
    post = draw.choice(FORMS)(draw)
    post.text = f"{draw.choice(INTROS)}\n{post.text}\n"
    return post


def _rate(draw: random.Random) -> int:
    return draw.randint(40, 3900)


def _ways_in_a_line(draw: random.Random) -> TypedPost:
    form = draw.choice(
        [
            "- {}: {} MB/s read, {} MB/s write",
            "{}: read {} MB/s, write {} MB/s",
            "{} -> Read {} MB/s, write {} MB/s",
            "{}: {}/{} MB/s (read/write)",
            "* {} - {} MB/s read, {} MB/s write",
        ]
    )
    post, lines = TypedPost(""), []
    for setting in draw.choice(OF_ONE_LINE):
        read, write = _rate(draw), _rate(draw)
        lines.append(form.format(setting, read, write))
        post.values[setting, "read"], post.values[setting, "write"] = [read * MB], [write * MB]
    post.text = "\n".join(lines)
    return post


def _blocks_by_title(draw: random.Random) -> TypedPost:
    title = draw.choice(["{}:", "{}\n", "## {}\n", "**{}**\n"])
    line = draw.choice(["{}: {} MB/s", "{}   {} MB/s", "- {}: {} MB/s"])
    settings = draw.choice(SETTINGS if title == "{}:" else OF_ONE_LINE)
    post, lines = TypedPost(""), []
    for setting in settings:
        lines.append(title.format(setting))
        for test in ("seq read", "seq write", "rand read"):
            lines.append(line.format(test, rate := _rate(draw)))
            post.values[setting, "write" if "write" in test else "read"] = [
                *post.values.get((setting, "write" if "write" in test else "read"), []),
                rate * MB,
            ]
        lines.append("")
    post.text = "\n".join(lines)
    return post


def _blocks_by_unit(draw: random.Random) -> TypedPost:
    head = draw.choice(["{}:", "**{}**\n", "{}", "## {}"])
    post, lines = TypedPost(""), []
    settings = draw.choice([one for one in OF_ONE_LINE if not one[0][0].isdigit()])
    for unit, scale in (("MB/s", MB), ("IOPS", IOPS)):
        lines.append(head.format(unit))
        for setting in settings:
            lines.append(f"{setting}: {(value := _rate(draw) * 10)}")
            post.values.setdefault((setting, ""), []).append(value * scale)
        lines.append("")
    post.text = "\n".join(lines)
    return post


def _metrics_in_a_line(draw: random.Random) -> TypedPost:
    form = draw.choice(
        [
            "{}: iops={}, lat={}ms",
            "{}: {} IOPS @ {} ms",
            "{} - iops={}, lat avg={}ms",
            "{}: {} IOPS, {} ms access time",
        ]
    )
    post, lines = TypedPost(""), []
    for setting in draw.choice(OF_ONE_LINE):
        iops, latency = _rate(draw) * 31, _rate(draw) / 100
        lines.append(form.format(setting, iops, latency))
        post.values[setting, ""] = [iops, latency * MS]
    post.text = "\n".join(lines)
    return post


def _change_in_a_line(draw: random.Random) -> TypedPost:
    form = draw.choice(
        [
            "{}: {} MB/s -> {} MB/s",
            "{}: {} MB/s before, {} MB/s after",
            "{}: before {} MB/s, after {} MB/s",
            "{}: {} MB/s (before) vs {} MB/s (after)",
        ]
    )
    post, lines = TypedPost(""), []
    for test in ("seq read", "rand write"):
        before, after = _rate(draw), _rate(draw)
        lines.append(form.format(test, before, after))
        way = test.split()[1]
        post.values["before", way], post.values["after", way] = [before * MB], [after * MB]
    post.text = "\n".join(lines)
    return post


def _prompts_of_hosts(draw: random.Random) -> TypedPost:
    prompt = draw.choice(["root@{}:~# ", "[root@{} ~]# ", "jan@{}:/mnt$ "])
    post, lines = TypedPost(""), []
    for host in ("alpha", "beta", "gamma"):
        lines.append(f"{prompt.format(host)}dd if=/dev/zero of=f bs=1M count=1024 conv=fsync")
        lines.append(f"1073741824 bytes (1.1 GB, 1.0 GiB) copied, {(time := _rate(draw) / 100)} s, 1 MB/s")
        lines.append(f"{prompt.format(host)}dd if=f of=/dev/null bs=1M")
        lines.append(f"1073741824 bytes (1.1 GB, 1.0 GiB) copied, {(other := _rate(draw) / 100)} s, 1 MB/s")
        post.values[host, "of=f"], post.values[host, "of=/dev/null"] = [time], [other]
    post.text = "\n".join(lines)
    return post


FORMS: list[Callable[[random.Random], TypedPost]] = [
    _ways_in_a_line,
    _blocks_by_title,
    _blocks_by_unit,
    _metrics_in_a_line,
    _change_in_a_line,
    _prompts_of_hosts,
]
