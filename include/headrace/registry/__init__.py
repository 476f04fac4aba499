"""The schema registry: subjects, their versions and the ids that records carry."""
