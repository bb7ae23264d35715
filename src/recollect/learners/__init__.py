"""Algorithms that learn from a stream, one a file, each to be read beside its paper."""
