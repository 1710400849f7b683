"""Intervals and tests: score intervals of ratios of sums, and exact tests over whole games."""
