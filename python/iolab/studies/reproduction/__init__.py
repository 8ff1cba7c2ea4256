"""Published figures, asked of a simulated machine again: what was published, what comes out, and how far apart
they are.

`publication` reads a file of them with its provenance, `tables` and `statements` its parts. `run_values` finds each
figure in a run, `cell_role` states which of them are evidence, `score` how good that evidence is, `null` how good a
predictor without a model is, `scorecard` how good all tables are.
"""

from __future__ import annotations

from iolab.studies.reproduction.as_json import objects
from iolab.studies.reproduction.publication import Publication, load, names
from iolab.studies.reproduction.reproduction import Reproduction, compare, compare_kept, reproduce

__all__ = ["Publication", "Reproduction", "compare", "compare_kept", "load", "names", "objects", "reproduce"]
