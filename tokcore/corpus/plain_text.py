"""Plain text: each line of a file is a row of one side."""

from dataclasses import dataclass

from tokcore.corpus.formats import CorpusFormat


@dataclass(frozen=True)
class PlainText(CorpusFormat):
    """Rows of one side."""

    name = 'text'
    what = 'plain lines'
    roles = ('text',)
    help = ('text, a line each; without --line-labels it is the targets',)
    reader = 'tokcore.corpus.line_rows:PlainTextReader'
    sides = ('targets',)
    forbidden_characters = '\n'
    rows_are_lines = True
