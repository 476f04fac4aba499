"""History: what already lies in a database or in files, staged once and brought into a feed's topic."""
