"""Published figures, asked of a simulated machine again: what was published, what comes out, and how far apart
they are.

`published` reads a file of them with its provenance, `tables` and `statements` its parts; `measured` finds each in a
run, `served` states which of it is evidence, `score` how good that is, `null` how good without a model, `scorecard` how
good all are.
"""

from __future__ import annotations

from iolab.studies.reproduction.as_json import objects
from iolab.studies.reproduction.published import Published, load, names
from iolab.studies.reproduction.reproduced import Reproduced, compare, compare_kept, reproduce

__all__ = ["Published", "Reproduced", "compare", "compare_kept", "load", "names", "objects", "reproduce"]
