"""Names that the sink looks for after transforms gave them others."""

from collections.abc import Mapping

import pytest

from tests.connectors.ems.connector_files import E, load_file
from tests.messages import assert_says

RENAME = {
    "transforms": "r",
    "transforms.r.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
    "transforms.r.renames": "email:mail, qty:quantity",
}
HOIST = {"transforms": "h", "transforms.h.type": "HoistField", "transforms.h.field": "w"}
EXTRACT = {"transforms": "e", "transforms.e.type": "ExtractField", "transforms.e.field": "customer"}
FIX = {f"{E}obfuscation.method": "fix"}


@pytest.mark.parametrize(
    ("changes", "key", "name", "by", "moved", "otherwise"),
    [
        (
            {**RENAME, f"{E}obfuscation.fields": "email"},
            "obfuscation.fields",
            "email",
            "r",
            "mail",
            "in clear",
        ),
        (
            {**RENAME, f"{E}obfuscation.fields": "id,email.work"},
            *("obfuscation.fields", "email.work", "r", "mail.work", "in clear"),
        ),
        (
            {**HOIST, f"{E}obfuscation.fields": "email"},
            "obfuscation.fields",
            "email",
            "h",
            "w.email",
            "in clear",
        ),
        (
            {**EXTRACT, f"{E}obfuscation.fields": "customer.name"},
            *("obfuscation.fields", "customer.name", "e", "name", "in clear"),
        ),
        (
            {**RENAME, f"{E}data.primary.key": "qty"},
            *("data.primary.key", "qty", "r", "quantity", "no record has its primary key"),
        ),
        (
            {**RENAME, f"{E}data.primary.key": "id", f"{E}order.field.name": "qty"},
            *("order.field.name", "qty", "r", "quantity", "no record has its order"),
        ),
    ],
)
def test_a_name_that_a_transform_changes(
    changes: Mapping[str, str], key: str, name: str, by: str, moved: str, otherwise: str
) -> None:
    """It is told with the name that the field has in the end, and what happens otherwise."""
    (warning,) = load_file({**(FIX if "obf" in key else {}), **changes}).warnings
    assert_says(warning, f"[{E}{key}]", f'"{name}"', f'transforms.{by} makes "{moved}"', "name it so", otherwise)


@pytest.mark.parametrize(
    "changes",
    [
        {f"{E}obfuscation.fields": "mail"},
        {f"{E}obfuscation.fields": "email,mail"},
        {f"{E}obfuscation.fields": "email", "transforms.r.renames": "email:mail,other:email"},
        {f"{E}obfuscation.fields": "email", "transforms.r.type": "ReplaceField$Key"},
        {f"{E}obfuscation.fields": "email", "transforms": "r,b", "transforms.b.type": "ReplaceField"}
        | {"transforms.b.renames": "mail:email"},
        {**HOIST, f"{E}obfuscation.fields": "w.email,w_email"},
    ],
)
def test_names_that_are_right(changes: Mapping[str, str]) -> None:
    """What a field is called in the end is what counts."""
    warnings = load_file({**RENAME, **FIX, **changes}).warnings
    assert not [one for one in warnings if "comes before" in one or "come before" in one]
