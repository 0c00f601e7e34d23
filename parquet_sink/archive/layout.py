"""Names within an archive: a folder for each connector, in it one for each topic, in it files under their names.

    <archive>/<connector>/<topic>/<file name>

Connectors and topics are one path component each, whatever they are called, so that none meets another's files.
"""

import posixpath

from parquet_sink.files.naming import component


def topic_folder(topic: str) -> str:
    """Of a topic, within the folder of a connector."""
    return component(topic)


def path_of(topic: str, file_name: str) -> str:
    """Of a file, within the folder of a connector."""
    return posixpath.join(topic_folder(topic), file_name)


def connector_folder(connector: str) -> str:
    """Of a connector, within the archive."""
    return component(connector)
