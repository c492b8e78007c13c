"""The options of one dataset of a job file, beside those of its format."""

from dataclasses import dataclass

from tokcore.corpus.filters.registry import filter_list
from tokcore.corpus.formats.registry import format_names
from tokcore.options.option_fields import option
from tokcore.options.values import LARGEST_INT64, WholeNumber, dataset_name, line_of_text


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """What a dataset is called, and what is taken of it.

    Attributes:
        name: in the manifest and in the names of rejected lines; needed where a split has several.
        format: of its files.
        max_examples: as many of its rows are taken, the first by file and place.
        source_prefix: put before its source texts; None for what holds for all datasets.
        target_prefix: put before its target texts.
        clean: filters that its rows go through, in this order.
    """

    name: str = option('name of the dataset', dataset_name, default='')
    format: str = option('format of its files', format_names())
    max_examples: int | None = option(
        'take so many examples, the first, {range}', WholeNumber(1, LARGEST_INT64), default=None
    )
    source_prefix: str | None = option('put before each source text', line_of_text, default=None)
    target_prefix: str | None = option('put before each target text', line_of_text, default=None)
    clean: tuple[str, ...] = option('filters of its rows, in this order', filter_list, default=())
