"""Workload kinds: what I/O is offered. One file per kind; a kind's options are declared once, in its model."""

from __future__ import annotations

from iolab.domain.workload import (
    aio_stream,
    command,
    commits,
    fio,
    fs_mark,
    io,
    iostest,
    iozone,
    make_sequence,
    mix,
    qsbench,
    tiobench,
    together,
    trace,
)
from iolab.domain.workload.kind import Kind

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        io.KIND,
        mix.KIND,
        together.KIND,
        tiobench.KIND,
        iozone.KIND,
        aio_stream.KIND,
        iostest.KIND,
        qsbench.KIND,
        make_sequence.KIND,
        command.KIND,
        fs_mark.KIND,
        commits.KIND,
        fio.KIND,
        trace.KIND,
    )
}
"""By name; `io` is the default."""

__all__ = ["KINDS", "Kind"]
