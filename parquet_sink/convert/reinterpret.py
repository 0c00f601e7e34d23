"""Arrow arrays under another type of the same layout."""

import pyarrow as pa


class _Reinterpreted:
    """An array's data offered under another type, by the Arrow PyCapsule protocol."""

    def __init__(self, array: pa.Array, arrow: pa.DataType) -> None:
        self._array, self._arrow = array, arrow

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        _, data = self._array.__arrow_c_array__()
        return self._arrow.__arrow_c_schema__(), data


def reinterpreted(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    """The same bytes under another type of the same layout: other names, or a map as its entries. Nothing is copied."""
    return pa.array(_Reinterpreted(array, arrow))
