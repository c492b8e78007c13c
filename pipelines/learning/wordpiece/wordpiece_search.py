"""The search for WordPiece vocabularies with the learner on Beam."""

from pipelines.artifacts.count_tables import read_counts
from pipelines.files import filesystem
from pipelines.learning.find_vocabulary import VocabularySearch
from pipelines.learning.learner_choice import predicted_bytes
from pipelines.learning.wordpiece.wordpiece_learner import BeamPieceLearner
from pipelines.transforms.count_tokens import write_counts_file
from tokcore.encoding.scheme import Learned
from tokcore.learning.size_search import Report
from tokcore.wordpiece.learning.learner import search_pieces
from tokcore.wordpiece.wordpiece_vocabulary import WordPieceVocabulary


def search_on_beam(search: VocabularySearch, report: Report) -> tuple[Learned, int]:
    """Learns on the workers; returns the memory too that was predicted of one in this process.

    Raises:
        InputError: as `VocabularySearch.run`.
    """
    counts, options = search.counts, search.options
    size = counts.size()
    if size.all_parquet:
        paths = [file.path for file in counts.files]
        counts.let_go(*counts.files)  # the workers read them
    else:
        table = read_counts(counts, search.scheme.unstorable)
        written = write_counts_file(search.work, 0, table, search.scheme.rules)
        paths = [filesystem.join(search.work, written.name)]
    learner = BeamPieceLearner(paths, search.work, search.engine.run, search.scheme, options)
    found = search_pieces(learner.build, learner.smallest_size, learner.bounds, options, report)
    learned = Learned(
        WordPieceVocabulary(found.pieces, options.joiner),
        found.min_count,
        found.tried,
        found.reachable,
        found.smallest_size,
    )
    return learned, predicted_bytes(size, search.scheme.learner_bytes_per_character)
