"""The report that fio writes as JSON: found in what it was printed among, and read in iolab's units."""
