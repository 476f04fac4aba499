"""The Spark jobs: the only code that imports pyspark."""
