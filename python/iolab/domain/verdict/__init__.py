"""Is the difference real? Verdicts on numbers, paired by round or not, a pure function of those numbers.

`docs/reference/statistics.md` explains what is computed, why this and not something else, and how often it errs.
"""

from iolab.domain.verdict.judgement import Judgement, control_false_discovery, judge
from iolab.domain.verdict.looks import FIRST_LOOK, ROUNDS_MAX_UNTIL_DECIDED
from iolab.domain.verdict.sequential import judge_sequential
from iolab.domain.verdict.unpaired_samples import judge_unpaired

__all__ = [
    "FIRST_LOOK",
    "ROUNDS_MAX_UNTIL_DECIDED",
    "Judgement",
    "control_false_discovery",
    "judge",
    "judge_sequential",
    "judge_unpaired",
]
