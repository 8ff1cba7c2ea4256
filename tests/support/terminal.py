"""A command on a terminal: what is typed there, and all that it sends."""

import os
import pty
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path


def on_a_terminal(
    arguments: Sequence[str | Path], *, cwd: Path, environment: Mapping[str, str], typed: str = ""
) -> tuple[int, str]:
    """Its exit status, and what both its streams sent: whole, since the kernel hands it on piece by piece."""
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    said = bytearray()

    def read() -> None:
        while True:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:  # nobody has the terminal any more
                return
            if not chunk:
                return
            said.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    done = subprocess.run(arguments, cwd=cwd, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, check=False)
    os.close(theirs)
    reader.join()
    os.close(ours)
    return done.returncode, said.decode(errors="replace")
