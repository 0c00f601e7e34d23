"""The programs of docs/how-to/pyspark.md."""

import ast
import inspect
import re
from typing import Final

from parquet_sink import spark
from tests.docs.program import ROOT

PAGE: Final = (ROOT / "docs/how-to/pyspark.md").read_text(encoding="utf-8")
PROGRAMS: Final = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_programs_are_python_and_call_what_there_is() -> None:
    """Each compiles, and each function of ours that it calls has the arguments that it gives."""
    calls = 0
    for program in PROGRAMS:
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("parquet_sink."):
                function = getattr(spark, ast.unparse(node.func).removeprefix("parquet_sink."))
                names = {str(given.arg): given.value for given in node.keywords}
                inspect.signature(function).bind(*node.args, **names)
                calls += 1
    assert calls >= len(PROGRAMS) - 1


def test_signatures_are_those_of_the_functions() -> None:
    """The page shows each function's parameters with their defaults."""
    for name in ("connector", "dataframes"):
        parameters = [str(one) for one in inspect.signature(getattr(spark, name)).parameters.values()]
        plain = [re.sub(r": [^=]+?(?= = |$)", "", one).replace(" = ", "=") for one in parameters]
        assert f"{name}({plain[0]}, *, {', '.join(plain[1:])})" in PAGE
