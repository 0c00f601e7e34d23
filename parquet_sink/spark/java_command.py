"""The command that Spark's Java process is started with: Java's own where that is known, else `spark-submit`.

`spark-submit` starts a shell and another Java to find the command out, then looks for what this program never has (an
application's jars, packages, a main class). And one of Spark's jars costs each session half a second of CPU: Spark ML
registers its functions by Scala's reflection. So a session on this machine alone starts without all that, and without
the jars of what it never uses, unless the operator asks for something that only `spark-submit` honours.
"""

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark
from pyspark.find_spark_home import _find_spark_home

VERSION: Final = "4.3."
"""Of the PySpark that MODULE_OPTIONS are of; another is started by its own `spark-submit`."""
MODULE_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            *("java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.io"),
            *("java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent"),
            *("java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref", "java.base/sun.nio.ch"),
            *("java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar"),
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""What Spark's launcher gives Java (`JavaModuleOptions`), but for the vectors of Spark ML."""
MAIN: Final = "org.apache.spark.api.python.PythonGatewayServer"
LEFT_OUT: Final = (
    *("spark-mllib_", "breeze", "spire", "cats-kernel", "algebra_", "arpack", "spark-graphx", "spark-pipelines"),
    *("spark-hive", "hive-", "datanucleus", "derby", "spark-connect", "spark-repl", "scala-compiler"),
    *("spark-yarn", "spark-kubernetes", "kubernetes-", "volcano-", "vertx-", "curator-", "zookeeper"),
)
"""Jars, by the beginnings of their names: of ML and graphs, of Hive, of Connect and shells, of clusters.

Java keeps a directory of each jar on its class path in memory."""
SUBMITTED: Final = (
    *("spark.jars", "spark.files", "spark.archives", "spark.submit.", "spark.log.", "spark.hadoop."),
    *("spark.plugins", "spark.sql.catalogImplementation", "spark.sql.hive.", "spark.sql.extensions"),
    *("spark.driver.defaultJavaOptions", "spark.driver.extraClassPath"),
    *("spark.driver.extraLibraryPath", "spark.driver.userClassPathFirst"),
)
"""What `spark-submit` alone honours, by the beginning of the key."""
_MEMORY: Final = "spark.driver.memory"
_OPTIONS: Final = "spark.driver.extraJavaOptions"
_HARMLESS: Final = frozenset(
    {"SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_DIRS", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
)
"""Variables that Spark itself reads, however it was started; PySpark sets the last two once there was a session."""
_HADOOP: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


@dataclass(frozen=True)
class JavaCommand:
    """home: Spark's folder. direct: without `spark-submit`."""

    home: Path
    direct: bool

    def jars(self) -> list[Path]:
        """Those on Java's class path, in its order where it is ours."""
        found = sorted(Path(self.home, "jars").resolve().glob("*.jar"))
        return [jar for jar in found if not (self.direct and jar.name.startswith(LEFT_OUT))]

    def words(self, java: str, settings: Mapping[str, str]) -> list[str]:
        """The command. java: the program, by its path. settings: Spark's."""
        if not self.direct:
            given = (word for key, value in settings.items() for word in ("--conf", f"{key}={value}"))
            return [str(self.home / "bin" / "spark-submit"), *given, "pyspark-shell"]
        class_path = os.pathsep.join(map(str, self.jars()))
        options = shlex.split(settings.get(_OPTIONS, ""))
        return [java, "-cp", class_path, f"-Xmx{settings[_MEMORY]}", *options, *MODULE_OPTIONS, MAIN]

    def environment(self) -> dict[str, str]:
        """Variables that `spark-submit` would set."""
        return {"SPARK_HOME": str(self.home), "PYTHONHASHSEED": "0"} if self.direct else {}


def java_command(master: str, given: Iterable[str], environment: Mapping[str, str]) -> JavaCommand:
    """given: the keys of Spark's settings that are the operator's. environment: of this process."""
    home = Path(_find_spark_home())
    variables = (name for name in environment if name.startswith("SPARK_") or name in _HADOOP)
    direct = (
        master.startswith("local")
        and pyspark.__version__.startswith(VERSION)
        and not set(variables) - _HARMLESS
        and not any(key.startswith(SUBMITTED) for key in given)
        and not (home / "conf").exists()
    )
    return JavaCommand(home, direct)
