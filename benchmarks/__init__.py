"""Speed, always as a ratio within one run. ``python -m benchmarks.NAME --record`` keeps the figures in results/."""
