"""What a job is, and the jobs over ordinary text: large vocabularies, two searches, a learner on Beam."""

from dataclasses import dataclass
from pathlib import Path

from .materials import Materials

_SIZE = ['--vocab-size', 8192]
_LARGE = ['--vocab-size', 32768]  # above the number of different characters of Chinese verse
_SKIP = ['--on-error', 'skip']
_BEAM = ['--learner', 'beam', '--min-count-range', '2:60']
_DATASET = ['--name', 'n', '--shards', 7]

_OUTPUTS = {
    'count': 'counts',
    'vocab': 'vocab',
    'encode': 'data',
    'build': 'data',
    'convert': 'data',
    'export': 'files',
}
"""What the output is called in its job's folder, of the commands that have one."""

_WITH_WORKERS = ('count', 'vocab', 'encode', 'build', 'convert')


@dataclass(frozen=True)
class Job:
    """A command line without its output, and what is on its standard input.

    Relative paths begin in the folder of a revision's results, which has a folder for each job.
    """

    name: str  # of its folder
    arguments: tuple[object, ...]
    stdin: Path | None = None

    @property
    def command(self) -> str:
        return str(self.arguments[0])

    @property
    def output(self) -> Path:
        is_table = self.command == 'count' and '--pieces' in self.arguments
        return Path(self.name, 'pieces' if is_table else _OUTPUTS[self.command])

    def line(self, workers: int) -> list[object]:
        """Returns the whole command line."""
        line = [*self.arguments]
        line += ['--workers', workers] if self.command in _WITH_WORKERS else []
        return line + (['--output', self.output] if self.command in _OUTPUTS else [])

    @property
    def uses(self) -> set[str]:
        """The names of the jobs whose results this one reads."""
        read = [each for each in (*self.arguments, self.stdin) if isinstance(each, Path)]
        return {path.parts[0] for path in read if not path.is_absolute()}


def ordinary_jobs(given: Materials) -> list[Job]:
    """Returns the jobs in an order in which each finds what it goes on from."""
    jobs: list[Job] = []

    def add(name: str, *arguments: object) -> Path:
        jobs.append(Job(name, arguments))
        return jobs[-1].output

    english = add('count-gzip-text', 'count', '--text', given.english_gz)
    add('count-text', 'count', '--text', given.english)
    rejecting = add('count-bad-text', 'count', '--text', given.bad_english, *_SKIP)
    chinese = add('count-chinese', 'count', '--text', given.chinese_gz)
    pairs = add('count-gzip-tsv', 'count', '--tsv', given.pairs_gz)
    add('count-bad-tsv', 'count', '--tsv', given.bad_pairs, *_SKIP, '--side', 'inputs')
    bitext = ['--source', given.source, '--target', given.target]
    dev_bitext = ['--dev-source', given.source, '--dev-target', given.target]
    add('count-bitext', 'count', *bitext, '--side', 'targets')
    few = add('count-few', 'count', '--text', given.few_english)
    merged = add('count-merged', 'count', '--counts', rejecting, pairs)

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
        how = ['--vocab', vocabulary, *_DATASET, '@shuffle', shuffle]
        dev = ['--dev', given.few_pairs]
        add(f'encode-tsv-{shuffle}', 'encode', '--tsv', given.pairs_gz, *dev, *how)
        add(f'encode-bad-tsv-{shuffle}', 'encode', '--tsv', given.bad_pairs, *how, *_SKIP)
        prefixes = ['--source-prefix', 'to zh: ', '--seed', 5]
        add(f'encode-bitext-{shuffle}', 'encode', *bitext, *dev_bitext, *how, *prefixes)
        add(f'encode-text-{shuffle}', 'encode', '--text', given.few_english, *how)
    build = ['build', *_DATASET, *_SIZE]
    add('build-bitext', *build, *bitext, *dev_bitext)
    add('build-bad-tsv', *build, '--tsv', given.bad_pairs, *_SKIP, '--shared-vocab')
    add('build-text', *build, '--text', given.few_english, *_BEAM)
    return jobs
