"""Published claims about performance: the library, what asking them came to, and skeletons of new ones."""
