"""Benchmarks: one script per claim, its results beside it."""
