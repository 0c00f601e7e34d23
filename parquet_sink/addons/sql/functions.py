"""Which functions, types and operators a query may use: what depends on its arguments alone.

An allow-list, so that a function that a later DuckDB brings is refused until somebody has looked at it.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

LONGEST: Final = 10_000
_LENGTHS: Final = {"lpad": 1, "rpad": 1, "list_resize": 1, "array_resize": 1, "bar": 3, "to_base": 2}
"""Which argument is the length."""
_SPECS: Final = {"format": re.compile(r"\{[^}]*"), "printf": re.compile(r"%[^a-zA-Z%]*")}
"""What says how a value is filled into a text; that is the first argument."""
_OPEN: Final = {"format": re.compile(r"\{[^{}]*\{"), "printf": re.compile(r"%[^a-zA-Z%]*\*")}
"""A width that another argument gives."""
_FUNCTIONS: Final = """
    + - * / // % ** ^ @ & | ~ << >> !__postfix || ~~ !~~ ~~* !~~* ~~~ ^@ ->> && @> <@
    abs acos acosh add asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees divide even exp
    factorial fdiv floor fmod gamma gcd greatest_common_divisor isfinite isinf isnan lcm least_common_multiple lgamma ln
    log log10 log2 mod multiply nextafter pi pow power radians round round_even roundbankers sign signbit sin sinh sqrt
    subtract tan tanh trunc xor
    ascii bar base64 bin bit_length char_length character_length chr concat concat_ws contains damerau_levenshtein
    decode encode ends_with format format_bytes formatreadabledecimalsize formatreadablesize from_base64 from_binary
    from_hex hamming hex ilike_escape instr jaccard jaro_similarity jaro_winkler_similarity lcase left left_grapheme
    length length_grapheme levenshtein like_escape lower lpad ltrim md5 mismatches nfc_normalize not_ilike_escape
    not_like_escape octet_length ord overlay parse_dirname parse_dirpath parse_filename parse_path position prefix
    printf regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace
    regexp_split_to_array replace reverse right right_grapheme rpad rtrim sha1 sha256 split split_part starts_with
    str_split str_split_regex string_split string_split_regex string_to_array strip_accents strlen strpos substr
    substring substring_grapheme suffix to_base to_base64 to_binary to_hex translate trim ucase unbin unhex unicode
    upper url_decode url_encode
    century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth
    dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns epoch_us era hour isodow isoyear julian last_day
    make_date make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium
    millisecond minute month monthname nanosecond quarter second strftime strptime time_bucket timezone timezone_hour
    timezone_minute to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes
    to_months to_quarters to_seconds to_timestamp to_weeks to_years try_strptime week weekday weekofyear year yearweek
    array_append array_apply array_cat array_concat array_contains array_distinct array_extract array_filter array_has
    array_has_all array_has_any array_indexof array_intersect array_length array_pop_back array_pop_front
    array_position array_prepend array_push_back array_push_front array_reduce array_resize array_reverse
    array_reverse_sort array_select array_slice array_sort array_to_string array_transform array_unique array_value
    array_where array_zip element_at filter flatten len list_any_value list_append list_apply list_avg list_bool_and
    list_bool_or list_cat list_concat list_contains list_count list_distinct list_element list_extract list_filter
    list_first list_has list_has_all list_has_any list_indexof list_intersect list_last list_max list_median list_min
    list_pack list_position list_prepend list_product list_reduce list_resize list_reverse list_reverse_sort
    list_select list_slice list_sort list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform
    list_unique list_value list_var_pop list_var_samp list_where list_zip reduce unnest
    cardinality map map_concat map_contains map_entries map_extract map_extract_value map_from_entries map_keys
    map_values row struct_concat struct_contains struct_extract struct_extract_at struct_has struct_indexof
    struct_insert struct_keys struct_pack struct_position struct_update struct_values
    array_to_json from_json from_json_strict json json_array json_array_length json_contains json_exists json_extract
    json_extract_path json_extract_path_text json_extract_string json_keys json_merge_patch json_object json_quote
    json_structure json_transform json_transform_strict json_type json_valid json_value row_to_json to_json
    greatest if least nullif
"""
FUNCTIONS: Final = frozenset(_FUNCTIONS.split())
_TYPES: Final = """
    bool boolean logical tinyint int1 smallint int2 short integer int int4 signed bigint int8 long hugeint int128
    utinyint uint8 usmallint uint16 uinteger uint32 ubigint uint64 uhugeint uint128 int16 int32 int64
    float float4 real float8 double decimal dec numeric varchar char bpchar nvarchar text string
    blob bytea binary varbinary date time timestamp datetime timestamp_s timestamp_ms timestamp_us timestamp_ns
    timestamptz interval uuid guid json list array struct row map
"""
TYPES: Final = frozenset({*_TYPES.split(), "timestamp with time zone", "double precision"})
OPERATORS: Final = frozenset(
    {
        "OPERATOR_COALESCE",
        "OPERATOR_IS_NULL",
        "OPERATOR_IS_NOT_NULL",
        "OPERATOR_NOT",
        "OPERATOR_TRY",
        "COMPARE_IN",
        "COMPARE_NOT_IN",
        "ARRAY_EXTRACT",
        "ARRAY_SLICE",
        "STRUCT_EXTRACT",
        "ARRAY_CONSTRUCTOR",
    }
)
UNNEST: Final = "unnest"
CLOCK: Final = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
"""What stands for the time of day without brackets."""


def too_long(function: str, literals: Sequence[Mapping[str, Any]]) -> str | None:
    """Why its length is not bounded, None where it is. literals: of the arguments, {} for what is none."""
    at = _LENGTHS.get(function, len(literals))
    if at < len(literals) and not (literals[at].get("kind") == "INTEGER" and int(literals[at]["text"]) <= LONGEST):
        return f"{function} takes a number of at most {LONGEST:,} for the length, no field"
    if function not in _SPECS or not literals:
        return None
    if literals[0].get("kind") != "STRING":
        return f"{function} takes a text for what it fills, no field"
    text = str(literals[0]["text"]).replace("{{", "").replace("%%", "")
    widths = [int(found) for spec in _SPECS[function].findall(text) for found in re.findall(r"\d+", spec)]
    if _OPEN[function].search(text) or any(width > LONGEST for width in widths):
        return f"{function} takes a number of at most {LONGEST:,} for a width, no field"
    return None
