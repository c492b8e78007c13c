"""The option that names fields, of all formats that have some."""

import dataclasses

from tokcore.corpus.features.field_paths import fields
from tokcore.options.option_fields import option


def fields_option() -> dataclasses.Field:
    """Returns the option of which field is the text, or which two are a pair."""
    return option(
        'field of the text, or of source and target, of each object or row; dots lead into objects, '
        '\\. is a dot in a name',
        fields,
        'F[,G]',
        default=('text',),
        told_default='text',
        changes_bytes=True,
    )
