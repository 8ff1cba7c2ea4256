"""Which of many keys, in which two settings differ, make the difference: a design of mixtures, and its analysis."""
