"""Why a JSON line may be left out."""

INVALID_JSON = 'invalid_json'
MISSING_FIELD = 'missing_field'
NOT_A_STRING = 'not_a_string'
LONE_SURROGATE = 'lone_surrogate'
