"""The example feeds' generator, the oracle that knows what must come of them, and the demo that compares the two."""
