"""What tests of several rooms make: shared, so that each thing is made in one way."""

from pathlib import Path


def with_java(folder: Path, script: str) -> dict[str, str]:
    """JAVA_HOME whose `java` is this script."""
    java = folder / "home" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(script)
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder / "home")}
