"""Published claims about performance: what asking one came to."""
