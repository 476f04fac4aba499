# One image for everything of ours: Airflow's components, Spark and the S3 server.
# bookworm, because its default Java is 17.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends default-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && pip install --no-cache-dir uv==0.13.7

WORKDIR /opt/headrace
COPY requirements.txt ./
RUN uv pip install --system --no-cache --compile-bytecode -r requirements.txt

COPY stack/ stack/
RUN M2_REPO=/tmp/m2 python -m stack.jars && rm -rf /tmp/m2

COPY pyproject.toml README.md LICENSE ./
COPY include/ include/
COPY spark_jobs/ spark_jobs/
COPY demo/ demo/
COPY plugins/ plugins/
COPY dags/ dags/
COPY schemas/ schemas/
COPY warehouses/ warehouses/
COPY jobs/ jobs/
RUN uv pip install --system --no-cache --no-deps -e . \
    && useradd --create-home headrace \
    && install -d -o headrace /var/lib/headrace /var/lib/headrace/airflow /var/lib/headrace/logs /var/lib/headrace/s3

USER headrace
ENV AIRFLOW_HOME=/var/lib/headrace/airflow \
    JAVA_HOME=/usr/lib/jvm/default-java \
    SPARK_HOME=/usr/local/lib/python3.11/site-packages/pyspark
ENTRYPOINT ["tini", "--"]
