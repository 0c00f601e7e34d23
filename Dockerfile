# The sink, or the reference target: the same image, another command. See compose.yaml.
# Debian 12 (bookworm), because it is the one that carries Java 17.
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE /src/
COPY config /src/config
COPY parquet_sink /src/parquet_sink
# The C compiler builds the reader of Kafka's records (parquet_sink/kafka/native.py), and is not left in the image.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && pip install --no-cache-dir '/src[target,worker,traces,sql,s3,msk]' \
    && apt-get purge --yes --auto-remove gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/* /src

RUN useradd --uid 1000 --create-home sink && install --directory --owner=sink --group=sink --mode=0700 /data
USER sink
WORKDIR /home/sink
ENV PYTHONUNBUFFERED=1
# Java's classes of a start in one file (155 MB), which makes each start some seconds shorter.
RUN python -m parquet_sink.spark.make_archive
# Process 1 inherits what is orphaned, and must take leave of it when it ends: tini does, and hands signals and status on.
ENTRYPOINT ["tini", "--", "parquet-sink"]
CMD ["--help"]
