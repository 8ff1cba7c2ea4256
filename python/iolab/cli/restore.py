"""`iolab restore`: put back what an iolab that was killed could not."""

from __future__ import annotations

from iolab.cli.options import Json
from iolab.cli.output import print_json


def restore(json: Json = False) -> None:
    """Restore tunables, mounts and scratch devices that a killed iolab left behind.

    Every change is journaled before it is made. Changes of an iolab that still runs are left alone. `iolab run` does
    the same before it starts.
    """
    from iolab.machine.undo import restore_abandoned

    restored = restore_abandoned()
    if json:
        print_json({"restored": restored})
    elif restored:
        print("\n".join(restored))
    else:
        print("Nothing to restore.")
