"""The registry's routes: thin, one module per resource; each makes a router over a registry."""
