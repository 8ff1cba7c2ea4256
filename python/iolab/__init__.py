"""A laboratory for storage I/O on Linux.

    import iolab

    run = iolab.run("model", rounds=3)          # or iolab.load("a run directory, or a file of fio, any CSV ...")
    iolab.compare(run)                          # verdicts; .frame has them as a table
    run.figures("latency")[0]                   # plotly
    iolab.report(run, "report.html")

What is named here is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iolab.base.errors import InputError, InterruptedRun, IolabError, MachineError
    from iolab.presentation.api import Comparisons, Explanations, Run, compare, explain, load, report, run
    from iolab.presentation.trace_frames import Trace, trace

__version__: str
__all__ = [
    "Comparisons",
    "Explanations",
    "InputError",
    "InterruptedRun",
    "IolabError",
    "MachineError",
    "Run",
    "Trace",
    "compare",
    "explain",
    "load",
    "report",
    "run",
    "trace",
]
_OF_TRACES = ("Trace", "trace")
_OF_ERRORS = ("InputError", "InterruptedRun", "IolabError", "MachineError")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("iolab.base.version").VERSION
    if name not in __all__:
        raise AttributeError(f"module 'iolab' has no attribute {name!r}")
    of_traces, of_errors = name in _OF_TRACES, name in _OF_ERRORS
    home = "iolab.base.errors" if of_errors else f"iolab.presentation.{'trace_frames' if of_traces else 'api'}"
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
