"""Trials on guest machines: a kernel of the user's choice in an emulated machine, its instructions counted."""
