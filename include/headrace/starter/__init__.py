"""Starters: a feed file to begin with, plain or derived from what is already there; every guess is told."""
