"""Why rows with named or numbered fields may be left out, beside the reasons of all formats."""

INVALID_JSON, MISSING_FIELD, NOT_A_STRING, LONE_SURROGATE = (
    'invalid_json',
    'missing_field',
    'not_a_string',
    'lone_surrogate',
)
"""Of JSON lines."""

INVALID_CSV = 'invalid_csv'
"""Of columns in quotes."""

NULL = 'null'
"""Of Parquet."""
