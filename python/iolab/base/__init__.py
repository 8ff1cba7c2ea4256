"""What everything else is built on: errors, units, TOML with line numbers, options, durable files. Knows nothing of
trials."""
