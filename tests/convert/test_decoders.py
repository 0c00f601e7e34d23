"""Which decoder a converter has, and what is loaded for it."""

import subprocess
import sys

import pyarrow as pa
import pytest

from parquet_sink.convert.converters import CONVERTERS
from parquet_sink.convert.decoders import decoder_for
from parquet_sink.convert.registry.settings import RegistrySettings
from parquet_sink.convert.settings import ConverterSettings

REGISTRY = RegistrySettings(("http://127.0.0.1:9",))
KINDS = ["json_envelope", *(one.word for one in CONVERTERS if one.word not in ("json", "simple_header"))]


@pytest.mark.parametrize("kind", KINDS)
def test_every_converter_has_one_for_a_process(kind: str) -> None:
    """Equal settings give the same decoder in every micro-batch; it takes a block without values."""
    registry = REGISTRY if kind in ("avro", "protobuf", "json_schema") else None
    found = decoder_for(ConverterSettings(kind, registry))
    assert found is not None
    assert found is decoder_for(ConverterSettings(kind, registry))
    assert not found.decode(pa.array([], pa.binary())).invalid


def test_other_options_give_another_decoder() -> None:
    """What a decoder does depends on them."""
    plain = ConverterSettings("avro", REGISTRY)
    assert decoder_for(plain) is not decoder_for(ConverterSettings("avro", REGISTRY, enhanced_names=True))


LIBRARIES = ("google.protobuf", "grpc_tools", "defusedxml", "urllib3")


@pytest.mark.parametrize(
    ("kind", "loaded"),
    [
        ("json", ()),
        ("string", ()),
        ("json_envelope", ()),
        ("xml", ("defusedxml",)),
        ("json_schema", ("urllib3",)),
    ],
)
def test_a_worker_loads_what_its_converter_needs(kind: str, loaded: tuple[str, ...]) -> None:
    """No format loads the libraries of another."""
    registry = "RegistrySettings(('http://127.0.0.1:9',))" if kind == "json_schema" else None
    program = (
        "import sys\n"
        "from parquet_sink.convert.registry.settings import RegistrySettings\n"
        "from parquet_sink.convert.settings import ConverterSettings\n"
        "from parquet_sink.convert.decoders import decoder_for\n"
        f"decoder_for(ConverterSettings({kind!r}, {registry}))\n"
        f"print(*[name for name in {LIBRARIES!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert tuple(done.stdout.split()) == loaded
