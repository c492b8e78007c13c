"""A sample of a corpus says what all of its records take on disk, and which ids text has."""

import dataclasses
import gzip
import io
import tarfile

import pytest
from generated_text import as_lines, chinese_lines, english_lines

from pipelines.engines.engine import choose_engine
from pipelines.jobs.corpus import SplitPaths, find_corpus
from pipelines.jobs.job import CorpusReading, Execution
from pipelines.jobs.reading import ReadPlan, plan_reading
from pipelines.shuffle.encoded_sample import DiskNeed, encode_sample
from pipelines.transforms.encode_blocks import BlockEncoder, EncodedFeature
from tokcore.corpus.formats import plan_items, read_blocks
from tokcore.filters.applying import find_end
from tokcore.records.examples import Feature
from tokcore.schemes import find_scheme

ITEM_BYTES = 8 << 10
BYTE = find_scheme('byte')


def plan_of(*given: SplitPaths, item_bytes: int = ITEM_BYTES) -> ReadPlan:
    """Returns the plan of some files of lines."""
    corpus = find_corpus(given)
    items: dict[str, list] = {}
    splits = []
    for split in corpus.splits:
        own = plan_items(split, item_bytes=item_bytes)
        items.setdefault(split.name, []).extend(own)
        if split.max_examples is not None:
            blocks = (block for item in own for block in read_blocks(item, open_binary))
            split = dataclasses.replace(split, end=find_end(blocks, split, BYTE.normalizer))
        splits.append(split)
    corpus = dataclasses.replace(corpus, splits=tuple(splits))
    return ReadPlan(CorpusReading(corpus, scheme=BYTE, on_error='skip'), items, item_bytes)


def open_binary(path):
    return open(path, 'rb')


def encoder_of(plan: ReadPlan) -> BlockEncoder:
    reading = plan.reading
    features = (EncodedFeature(Feature('targets', 0), ''),)
    return BlockEncoder(features, reading.corpus.splits, 0, reading.on_error, reading.scheme)


def need_of_all(plan: ReadPlan) -> DiskNeed:
    """Returns what the records of everything take."""
    loaded = encoder_of(plan).load()
    files = rows = 0
    for item in plan.all_items:
        for block in read_blocks(item, open_binary):
            encoded = loaded.encode(block)
            files += len(encoded.rows.records)
            files += sum(len(each.json_lines) for each in encoded.stats.rejected)
            rows += len(encoded.rows)
    return DiskNeed(files + 20 * rows, files, 20 * rows)


ENGLISH, CHINESE = as_lines(english_lines(6000, 1)), as_lines(chinese_lines(6000, 2))


@pytest.fixture
def text(tmp_path):
    """Writes a text, compressed if its name says so, and returns it as a dataset of `train`."""

    def write(name: str, data: bytes, **options) -> SplitPaths:
        path = tmp_path / name
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == '.gz' else data)
        return SplitPaths('train', 'text', {'text': [str(path)]}, **options)

    return write


def share_of_all(plan: ReadPlan) -> float:
    """Returns what a sample says of all records, as a share of what they take."""
    return encode_sample(plan, encoder_of(plan)).need.bytes / need_of_all(plan).bytes


def test_a_text_of_two_kinds(text):
    assert 0.9 < share_of_all(plan_of(text('a', ENGLISH + CHINESE))) < 1.1


def test_datasets_of_one_kind_each(text):
    plan = plan_of(text('a', ENGLISH), text('b', CHINESE[:9000], dataset='b'))
    assert 0.9 < share_of_all(plan) < 1.1


def test_a_text_of_one_item_is_measured_to_the_byte(text):
    plan = plan_of(text('a', ENGLISH[: ITEM_BYTES // 2]))
    assert encode_sample(plan, encoder_of(plan)).need == need_of_all(plan)


@pytest.mark.parametrize('names', [['a.gz'], ['a', 'b.gz']])
def test_compressed_text_takes_what_its_text_does(text, names):
    """Files are read by 32 KiB, of which the last are read for text that is not in the sample."""
    given = [text(name, ENGLISH * 4, dataset=name) for name in names]
    assert 0.7 < share_of_all(plan_of(*given, item_bytes=512 << 10)) <= 1.02


def test_a_compressed_text_that_repeats_itself_is_not_thought_larger(text):
    assert share_of_all(plan_of(text('a.gz', ENGLISH[:20_000] * 100))) <= 1.02


def archive(path, members: list[bytes]) -> SplitPaths:
    with tarfile.open(path, 'w:gz' if path.suffix == '.gz' else 'w') as tar:
        for number, data in enumerate(members):
            member = tarfile.TarInfo(f'{number:04d}.txt')
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return SplitPaths('train', 'text', {'text': [f'{path}!*']})


@pytest.mark.parametrize('name', ['a.tar', 'a.tar.gz'])
@pytest.mark.parametrize('lines', [20, 2000])
def test_members_of_an_archive_count_by_their_own_sizes(tmp_path, name, lines):
    whole = ENGLISH.splitlines(keepends=True)
    members = [b''.join(whole[start : start + lines]) for start in range(0, len(whole), lines)]
    assert 0.85 < share_of_all(plan_of(archive(tmp_path / name, members))) < 1.15


def test_compressed_members_are_not_thought_larger(tmp_path):
    members = [gzip.compress(ENGLISH, mtime=0)] * 20
    share = share_of_all(plan_of(archive(tmp_path / 'a.tar', members), item_bytes=512 << 10))
    assert 0.2 < share <= 1.02


@pytest.mark.parametrize('most', [1, 300, 10**9])
def test_the_first_examples_of_a_dataset_alone(text, most):
    plan = plan_of(text('a', ENGLISH + CHINESE, max_examples=most))
    share = share_of_all(plan)
    assert share <= 1.3
    assert most < 10**9 or share > 0.9


def test_rows_left_out_take_no_room_but_for_what_is_kept_of_them(text):
    half_bad = b''.join(
        line + (b'\xff\n' if number % 2 else b'\n')
        for number, line in enumerate(ENGLISH.splitlines())
    )
    assert 0.9 < share_of_all(plan_of(text('a', half_bad))) < 1.1


def test_filters_are_part_of_it(text):
    plan = plan_of(text('a', ENGLISH + CHINESE, clean=['script:Hani:0.5']))
    assert 0.8 < share_of_all(plan) < 1.2


@pytest.fixture
def small_samples(monkeypatch):
    """Of each item a beginning of 1 KiB is taken."""
    monkeypatch.setattr('pipelines.shuffle.encoded_sample._SAMPLED_BYTES', 1 << 10)


def test_of_large_items_the_beginnings_stand_for_all(text, small_samples):
    plan = plan_of(text('a', ENGLISH * 4), item_bytes=64 << 10)
    assert 0.85 < share_of_all(plan) < 1.15
    sample = encode_sample(plan, encoder_of(plan))
    assert 0 < sample.text_bytes < 20 << 10
    [ids] = sample.ids
    assert 0 < ids.ids <= sample.text_bytes


def test_of_pairs_too(tmp_path, small_samples):
    paths = {}
    for role, lines in (('source', ENGLISH), ('target', CHINESE)):
        paths[role] = [str(tmp_path / role)]
        (tmp_path / role).write_bytes(b''.join(lines.splitlines(keepends=True)[:5000]))
    corpus = find_corpus([SplitPaths('train', 'bitext', paths)])
    reading = CorpusReading(corpus, scheme=BYTE)
    plan = plan_reading(
        reading, Execution(engine=choose_engine([], 1), item_bytes=64 << 10), str(tmp_path)
    )
    features = tuple(
        EncodedFeature(Feature(name, side), '') for side, name in enumerate(('inputs', 'targets'))
    )
    sample = encode_sample(plan, BlockEncoder(features, corpus.splits, 0, 'stop', BYTE))
    assert 4 << 10 < sample.text_bytes < 24 << 10
    inputs, targets = sample.ids
    assert 0 < inputs.ids and 0 < targets.ids
    assert inputs.ids + targets.ids <= sample.text_bytes


def test_a_line_longer_than_the_sample_is_read_whole(text, small_samples):
    plan = plan_of(text('a', (b'x' * 5000 + b'\n') * 20), item_bytes=64 << 10)
    assert 0.9 < share_of_all(plan) < 1.1
