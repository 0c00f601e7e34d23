# The sink, or the reference target: the same image, another command. See compose.yaml.
# Debian 12 (bookworm), because it is the one that carries Java 17. The digest is that of Python 3.12.14 for all platforms,
# as Docker's own list has it (github.com/docker-library/repo-info); `docker buildx imagetools inspect` shows today's.
FROM python:3.12-slim-bookworm@sha256:0f5b26b9518d002b6173fd61daad821fa340635ebfec5bba471013f9ca114579

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE requirements-build.txt requirements-image.txt /src/
COPY config /src/config
COPY parquet_sink /src/parquet_sink
# Packages are those of the lock files (`make lock`), by their hashes; what PySpark is built with, too.
# The C compiler builds the reader of Kafka's records (parquet_sink/kafka/native.py), and is not left in the image.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && pip install --no-cache-dir --require-hashes -r /src/requirements-build.txt \
    && pip install --no-cache-dir --require-hashes --no-build-isolation -r /src/requirements-image.txt \
    && pip install --no-cache-dir --no-deps --no-build-isolation '/src[target,worker,traces,sql,s3,msk]' \
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
