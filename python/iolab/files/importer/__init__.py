"""Other people's numbers as runs: one file per format, recognised by content; `run_import` reads them."""
