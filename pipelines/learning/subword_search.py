"""The search for subwords with a learner on Beam."""

from collections.abc import Sequence

from pipelines.artifacts.count_tables import read_counts
from pipelines.files import filesystem
from pipelines.files.claims import Claim
from pipelines.learning.find_vocabulary import VocabularySearch
from pipelines.learning.learner_choice import predicted_bytes
from pipelines.learning.learner_rounds import KeptRounds
from pipelines.learning.packed_learner import Limits, PackedLearner
from pipelines.learning.plain_learner import BeamLearner
from pipelines.transforms.count_tokens import write_counts_file
from tokcore.counts.merging import TokenTable
from tokcore.encoding.scheme import Learned
from tokcore.learner_warm_up import compile_learner_kernels
from tokcore.learning.size_search import Report
from tokcore.subword.learner import RESERVED_TOKENS, longest_candidate
from tokcore.subword.subword_search import largest_count, search_subwords
from tokcore.text.unicode_tables import UNICODE_VERSION

_ROUNDS_FORMAT = 1
"""Goes up when files of a learner's rounds change their meaning: then nothing old is taken up."""


def search_on_beam(search: VocabularySearch, report: Report) -> tuple[Learned, int]:
    """Learns on the workers; returns the memory too that was predicted of this process, in bytes.

    Raises:
        InputError, OverflowError: as `VocabularySearch.run`.
    """
    options = search.options
    if options.substring_counting != 'packed':
        table = read_counts(search.counts, search.scheme.unstorable)
        paths = _parquet_paths(search, table)
        learner = BeamLearner(paths, search.work, search.engine.run, **options.learned)
        learned = search_subwords(learner, largest_count(table), options, report)
        return learned, predicted_bytes(
            search.counts.size(), search.scheme.learner_bytes_per_character
        )
    search.counts.let_go(*search.counts.files)  # the workers read them
    kept = _kept_rounds(search)
    with kept.claimed() as claim:
        search.engine.compile_first(compile_learner_kernels)
        packed = PackedLearner(
            _parquet_paths(search),
            kept.folder,
            search.engine.run,
            **options.learned,
            lowest=options.lowest_min_count,
            workers=search.engine.workers,
            label=search.label,
        )
        learner = _Claimed(packed, claim)
        return search_subwords(learner, packed.largest_count, options, report), packed.predicted_peak


class _Claimed:
    """A learner that looks before each round whether its rounds are still its own."""

    def __init__(self, learner: PackedLearner, claim: Claim):
        self._learner, self._claim = learner, claim
        self.smallest_size = learner.smallest_size

    def build(self, min_count: int) -> Sequence[str]:
        self._claim.check()
        return self._learner.build(min_count)


def _kept_rounds(search: VocabularySearch) -> KeptRounds:
    options = search.options
    content = {
        'format': _ROUNDS_FORMAT,
        'unicode': UNICODE_VERSION,
        'counts': [
            (text.bytes, text.crc32c)
            for text in (each.checksum() for each in search.counts.wanted_inputs())
        ],
        'longest': longest_candidate(options.max_subtoken_length),
        'reserved': RESERVED_TOKENS + options.reserved_tokens,
        'lowest': options.lowest_min_count,
        'group_bytes': Limits().group_bytes,
    }
    asked = {
        'vocab_size': options.vocab_size,
        'search': options.search,
        'min_count_range': options.min_count_range,
    }
    return KeptRounds(search.place, content, asked)


def _parquet_paths(search: VocabularySearch, table: TokenTable | None = None) -> list[str]:
    """The count files as Parquet, which is what workers read."""
    counts = search.counts
    if counts.size().all_parquet:
        return [file.path for file in counts.files]
    if table is None:
        table = read_counts(counts, search.scheme.unstorable)
    written = write_counts_file(search.work, 0, table, search.scheme.rules)
    return [filesystem.join(search.work, written.name)]
