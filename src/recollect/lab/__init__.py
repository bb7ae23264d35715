"""Experiments: what the paper shows, run again beside honest controls."""
