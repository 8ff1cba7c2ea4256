"""Which of many versions changed a metric: where the changes are, and what to measure next."""
