"""Published figures, asked of a modelled machine again: what was published, what comes out, and how far apart they are.

`published` reads the figures with their provenance, `measured` finds each in a run, `score` says how good that is.
"""

from __future__ import annotations

from iolab.reproduction.published import Published, load, names
from iolab.reproduction.reproduced import Reproduced, compare, reproduce

__all__ = ["Published", "Reproduced", "compare", "load", "names", "reproduce"]
