"""The local stack: Kafka, S3, Postgres, Spark Connect and Airflow as processes of this machine."""
