"""The rows of blocks of two files, texts and their labels: each line is a row."""

from __future__ import annotations

from tokcore.corpus.arrow_columns import extra_features, side_array
from tokcore.corpus.bitext_reading import BitextReader
from tokcore.corpus.corpus import MAX_LINE_BYTES, BlockText, Rows
from tokcore.corpus.fields import ExtraField
from tokcore.corpus.labelled import Labelled
from tokcore.corpus.line_rows import lines_of_pair, rows_of_lines
from tokcore.text.normalizers import T2T_LINES
from tokcore.text.rows import Normalizer


class LabelledReader(BitextReader):
    """Reads the texts of one file and the labels of another together."""

    format: Labelled

    def rows_of_lines(
        self, source: BlockText, target: BlockText, normalizer: Normalizer, max_line_bytes: int
    ) -> Rows:
        [field] = self.format.extra_fields
        return labelled_rows(source, target, field, normalizer, max_line_bytes)


def labelled_rows(
    text: BlockText,
    labels: BlockText,
    field: ExtraField,
    normalizer: Normalizer,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Rows:
    """Returns the rows, with one side, of equally many lines of texts and of labels.

    A blank text is an empty row, whatever its label is. A label is its line stripped of white space;
    one that `field` does not have rejects the row, in the second file.

    Raises:
        ValueError: the blocks differ in their number of lines.
    """
    files = lines_of_pair(text, labels, max_line_bytes)
    texts, names = normalizer.apply(files[0].side()), T2T_LINES.apply(files[1].side())
    features, unfit = extra_features([side_array(names.side)], [field])
    damages = [texts.damages, names.damages]
    return rows_of_lines(files, damages, [texts.side], features=features, unfit=unfit)
