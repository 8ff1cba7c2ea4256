"""The best of many settings: what may be changed, what trials say of it, and which trial to do next."""
