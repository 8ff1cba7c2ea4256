"""Why? Which of the things that were measured moved together with a result that differs.

Pure statistics on a table of numbers: nothing here knows machines or files. Two kinds of evidence are kept apart: a
metric moved with the setting, and it moves with the result within settings. Neither shows a cause. `causes` puts what
moved in the order in which one follows from the other. docs/why.md explains what is computed, and how often it errs.
"""

from iolab.domain.explain.cause import Cause, causes
from iolab.domain.explain.ranking import Explanation, Finding, explain

__all__ = ["Cause", "Explanation", "Finding", "causes", "explain"]
"""`causes(frame, comparisons, changes)`: the mechanism that moved first; `explain(frame, comparisons)`: what moved
together with each result."""
