"""Traces of block I/O: which files are one, what is in them, and their other forms."""

from iolab.base.trace_files import trace_of
from iolab.studies.trace.export import export
from iolab.studies.trace.figures import shortened, study
from iolab.studies.trace.histograms import Histogram, histograms_of
from iolab.studies.trace.queues import queues_of

__all__ = ["Histogram", "export", "histograms_of", "queues_of", "shortened", "study", "trace_of"]
