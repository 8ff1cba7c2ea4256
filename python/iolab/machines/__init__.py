"""What runs a trial: this host, a guest, a simulated machine, other hosts."""
