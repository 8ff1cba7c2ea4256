"""Is the difference real? Verdicts on numbers, paired by round or not, a pure function of those numbers.

`docs/reference/statistics.md` explains what is computed, why this and not something else, and how often it errs.
"""
