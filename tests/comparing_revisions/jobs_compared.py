"""The commands that both revisions run, each into a folder of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .materials import Materials

_SIZE = ['--vocab-size', 8192]
_LARGE = ['--vocab-size', 32768]  # above the number of different characters of Chinese verse
_SKIP = ['--on-error', 'skip']
_BEAM = ['--learner', 'beam', '--min-count-range', '2:60']
_DATASET = ['--name', 'n', '--shards', 7]

OUTPUTS = {'count': 'counts', 'vocab': 'vocab', 'encode': 'data', 'build': 'data'}
"""What the output is called in its job's folder, by command."""


@dataclass(frozen=True)
class Job:
    """A command line without its output."""

    name: str  # of its folder
    arguments: tuple[object, ...]

    @property
    def command(self) -> str:
        return str(self.arguments[0])

    def output(self, root: Path) -> Path:
        return root / self.name / OUTPUTS[self.command]

    def line(self, root: Path, extra: Sequence[object]) -> list[object]:
        return [*self.arguments, *extra, '--output', self.output(root)]


def jobs_in(root: Path, given: Materials) -> list[Job]:
    """Returns the jobs in an order in which each finds what it goes on from below `root`."""
    jobs: list[Job] = []

    def add(name: str, *arguments: object) -> Path:
        jobs.append(Job(name, arguments))
        return jobs[-1].output(root)

    english = add('count-gzip-text', 'count', '--text', given.english_gz)
    add('count-text', 'count', '--text', given.english)
    rejecting = add('count-bad-text', 'count', '--text', given.bad_english, *_SKIP)
    chinese = add('count-chinese', 'count', '--text', given.chinese_gz)
    pairs = add('count-gzip-tsv', 'count', '--tsv', given.pairs_gz)
    add('count-bad-tsv', 'count', '--tsv', given.bad_pairs, *_SKIP, '--side', 'inputs')
    bitext = ['--source', given.source, '--target', given.target]
    add('count-bitext', 'count', *bitext, '--side', 'targets')
    few = add('count-few', 'count', '--text', given.few_english)
    merged = add('count-merged', 'count', '--merge', rejecting, pairs)

    for search in ('t2t', 'closest'):
        how = ['--search', search]
        add(f'vocab-english-{search}', 'vocab', '--counts', english, *_SIZE, *how)
        add(f'vocab-chinese-{search}', 'vocab', '--counts', chinese, *_LARGE, *how)
        add(f'vocab-merged-{search}', 'vocab', '--counts', merged, *_SIZE, *how)
        add(f'vocab-beam-{search}', 'vocab', '--counts', few, *_SIZE, *how, *_BEAM)
    add('vocab-bad-text', 'vocab', '--text', given.bad_english, *_SIZE, *_SKIP)
    reserved = ['--reserved-token', '<x>', '--max-subtoken-length', 6]
    add('vocab-bad-tsv', 'vocab', '--tsv', given.bad_pairs, *_SIZE, *_SKIP, *reserved)
    vocabulary = add('vocab-pairs', 'vocab', '--counts', pairs, *_SIZE)

    for shuffle in ('files', 'engine'):
        how = ['--vocab', vocabulary, *_DATASET, '--shuffle', shuffle]
        dev = ['--dev-tsv', given.few_pairs]
        add(f'encode-tsv-{shuffle}', 'encode', '--tsv', given.pairs_gz, *dev, *how)
        add(f'encode-bad-tsv-{shuffle}', 'encode', '--tsv', given.bad_pairs, *how, *_SKIP)
        prefixes = ['--source-prefix', 'to zh: ', '--seed', 5]
        add(f'encode-bitext-{shuffle}', 'encode', *bitext, *dev, *how, *prefixes)
        add(f'encode-text-{shuffle}', 'encode', '--text', given.few_english, *how)
    build = ['build', *_DATASET, *_SIZE]
    add('build-bitext', *build, *bitext, '--dev-tsv', given.few_pairs)
    add('build-bad-tsv', *build, '--tsv', given.bad_pairs, *_SKIP, '--shared-vocab')
    add('build-text', *build, '--text', given.few_english, *_BEAM)
    return jobs
