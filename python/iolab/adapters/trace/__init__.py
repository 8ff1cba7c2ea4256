"""Traces of block I/O: which files are one, what is in them, and their other forms."""

from iolab.adapters.trace.export import FORMS, export
from iolab.adapters.trace.figures import Figures, shortened, study
from iolab.adapters.trace.histograms import Histogram, histograms_of
from iolab.adapters.trace.queues import queues_of
from iolab.base.trace_files import Trace, trace_of

__all__ = [
    "FORMS",
    "Figures",
    "Histogram",
    "Trace",
    "export",
    "histograms_of",
    "queues_of",
    "shortened",
    "study",
    "trace_of",
]
