"""Other people's numbers as runs: one file per format, recognised by content; `opening` reads files and directories."""
