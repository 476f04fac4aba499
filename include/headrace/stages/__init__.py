"""The stages of a run: extract, transform, check, publish, load, reconcile."""
