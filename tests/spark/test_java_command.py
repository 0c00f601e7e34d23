"""How Spark's Java process is started: directly where nothing needs `spark-submit`."""

import os
from pathlib import Path

import pytest

from parquet_sink.spark import java_command as module
from parquet_sink.spark.java_command import LEFT_OUT, MAIN, MODULE_OPTIONS, JavaCommand, java_command

SETTINGS = {"spark.driver.memory": "300m", "spark.driver.extraJavaOptions": '-Da=b "-Dfolder=/with blanks"'}


def test_a_session_on_this_machine_starts_java_directly() -> None:
    """With the memory and options of the settings, and with all of Spark's jars but those that it never uses."""
    command = java_command("local[2]", ["spark.driver.memory", "spark.ui.enabled"], {"PATH": "", "SPARK_LOCAL_IP": ""})
    java, _, class_path, *rest = command.words("/a/java", SETTINGS)
    assert (java, rest) == ("/a/java", ["-Xmx300m", "-Da=b", "-Dfolder=/with blanks", *MODULE_OPTIONS, MAIN])
    present = {path.name for path in (command.home / "jars").glob("*.jar")}
    assert {name for name in present if name.startswith(LEFT_OUT)} == present - {
        Path(jar).name for jar in class_path.split(os.pathsep)
    }
    assert command.environment() == {"SPARK_HOME": str(command.home), "PYTHONHASHSEED": "0"}


@pytest.mark.parametrize(
    ("master", "given", "variables"),
    [
        ("spark://host:7077", [], {}),
        ("local[1]", ["spark.jars.packages"], {}),
        ("local[1]", ["spark.driver.extraClassPath"], {}),
        ("local[1]", ["spark.sql.catalogImplementation"], {}),
        ("local[1]", [], {"SPARK_SUBMIT_OPTS": "-Da=b"}),
        ("local[1]", [], {"SPARK_CONF_DIR": "/etc/spark"}),
        ("local[1]", [], {"HADOOP_CONF_DIR": "/etc/hadoop"}),
    ],
)
def test_what_only_spark_submit_honours_has_it_asked(master: str, given: list[str], variables: dict[str, str]) -> None:
    """A cluster, jars of the operator's, and the variables of Spark's scripts."""
    command = java_command(master, given, variables)
    assert command.words("java", {"spark.a": "b c"}) == [
        str(command.home / "bin" / "spark-submit"),
        *("--conf", "spark.a=b c", "pyspark-shell"),
    ]
    assert command.environment() == {}
    assert any(jar.name.startswith(LEFT_OUT) for jar in command.jars())


def test_another_spark_is_started_by_its_own_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Java may need other options."""
    monkeypatch.setattr(module.pyspark, "__version__", "4.4.0")
    assert not java_command("local[1]", [], {}).direct


def test_a_folder_of_settings_is_for_spark_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may hold variables, defaults and options of Java."""
    (tmp_path / "conf").mkdir()
    monkeypatch.setattr(module, "_find_spark_home", lambda: str(tmp_path))
    assert not java_command("local[1]", [], {}).direct


def test_the_order_of_jars_is_always_the_same() -> None:
    """Java takes an archive of classes only for the class path that it was made for."""
    jars = JavaCommand(java_command("local[1]", [], {}).home, direct=True).jars()
    assert jars == sorted(jars)
