"""The manifest tells what went in and came out, and nothing that differs between equal runs."""

import google_crc32c
from dataset_files import lines_of, manifest_of, read_shards, strings_in
from jobs import write


def test_it_is_the_same_wherever_and_however_the_job_ran(small, small_build, build, tmp_path):
    path = write(tmp_path / 'else' / 'where' / small.tsv.name, small.tsv.read_bytes())
    folder = build(
        *('--tsv', path, '--workers', 1, '@item-size', '1KiB', '--learner', 'memory'),
        '--runner=DirectRunner',
    )
    for name in ('tokbeam.json', 'counts.inputs/tokbeam.json', 'counts.targets/tokbeam.json'):
        assert (folder / name).read_bytes() == (small_build / name).read_bytes()
    read_shards(folder)


def test_it_holds_no_path_and_nothing_of_the_run(small, small_build):
    for path in small_build.rglob('tokbeam.json'):
        strings = strings_in(manifest_of(path.parent))
        assert small.tsv.name in strings
        relative = [each.removeprefix('index/') for each in strings]
        assert not [each for each in relative if '/' in each or '\\' in each]
        text = path.read_text().lower()
        for word in ('runner', 'worker', 'item', 'attempt', 'seconds', 'time'):
            assert word not in text


def test_an_inputs_checksum_is_of_its_text(small, small_build, build, tmp_path):
    data = small.tsv.read_bytes()
    [expected] = manifest_of(small_build)['inputs']
    assert (expected['name'], expected['bytes']) == ('pairs.tsv', len(data))
    assert expected['crc32c'] == f'{google_crc32c.value(data):08x}'
    compressed = write(tmp_path / 'pairs.tsv.gz', data)
    for item_size in (64, '1KiB', '12MiB'):
        folder = build('--tsv', compressed, '@item-size', item_size)
        assert manifest_of(folder)['inputs'] == [{**expected, 'name': 'pairs.tsv.gz'}]
    assert lines_of(folder) == lines_of(small_build)


def test_inputs_of_all_splits_in_order(small, build):
    folder = build('--tsv', small.tsv, '--dev-source', small.source, '--dev-target', small.target)
    assert [
        (each['split'], each['role'], each['name'], each['bytes'], each['crc32c'])
        for each in manifest_of(folder)['inputs']
    ] == [
        (
            split,
            role,
            path.name,
            path.stat().st_size,
            f'{google_crc32c.value(path.read_bytes()):08x}',
        )
        for split, role, path in [
            ('train', 'tsv', small.tsv),
            ('dev', 'source', small.source),
            ('dev', 'target', small.target),
        ]
    ]
    for split in ('train', 'dev'):
        read_shards(folder, split)
