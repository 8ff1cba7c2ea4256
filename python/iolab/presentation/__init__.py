"""What a user sees: command line, tables, report, progress."""
