"""Warehouses: the databases that teams read."""
