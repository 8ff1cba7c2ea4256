"""A directory of runs: found, read once each, kept in an index; labelled and removed."""
