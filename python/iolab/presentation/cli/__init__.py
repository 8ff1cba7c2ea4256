"""The command line: arguments in, exit status out. One file per command."""

import atexit
import gc
import os
import signal
import sys

GC_THRESHOLD = 300_000
"""So many new objects that have not been freed before the first collection; 700 by default."""


def main() -> None:
    """Entry point of the `iolab` program."""
    status, process = 1, os.getpid()

    def leave() -> None:
        # Freeing the modules one by one takes a quarter of a short command's CPU time.
        if os.getpid() == process and _is_all_written():
            os._exit(status)

    # The first to be registered is called last.
    atexit.register(leave)
    # In the middle of an import Ctrl-C would end in a traceback, or be lost if a library drops the exception: it waits
    # until the command is imported.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # What is imported stays: a fifth of the start was spent looking for garbage in it.
    gc.set_threshold(GC_THRESHOLD)
    # Our matrices are small: threads of linear algebra would only spin, and keep this process from forking workers
    # (iolab/machines/module_process.py).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from iolab.presentation.cli.invoke import invoke

    status = invoke(sys.argv[1:], mask)
    sys.exit(status)


def _is_all_written() -> bool:
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return False
    return True
