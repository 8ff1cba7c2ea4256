"""Why? Which of the things that were measured moved together with a result that differs.

Pure statistics on a table of numbers: nothing here knows machines or files. Two kinds of evidence are kept apart: a
metric moved with the setting, and it moves with the result within settings. Neither shows a cause. docs/why.md
says what is computed, and how often it errs.
"""

from iolab.domain.explain.ranking import Explained, Finding, explain

__all__ = ["Explained", "Finding", "explain"]
"""`explain(frame, comparisons)`."""
