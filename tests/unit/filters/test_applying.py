"""A block's rows through filters: nothing lost, each with an identity of its own, in order."""

import dataclasses
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from read_format import became_of

from tokcore.corpus.corpus import CorpusFile, Split
from tokcore.corpus.declarations import Bitext, JsonLines, Parquet, Tmx, Tsv
from tokcore.corpus.formats import format_reader, index_ranges, plan_items, read_blocks
from tokcore.corpus.order_keys import OFFSET_BITS, order_keys
from tokcore.corpus.stats import add_tallies, block_stats
from tokcore.errors import InputError
from tokcore.filters import applying, registry
from tokcore.filters.applying import find_end, select_rows
from tokcore.filters.registry import filter_specs
from tokcore.filters.user_function import UserFunction
from tokcore.text.normalizers import T2T_LINES, UNSTRIPPED_LINES


def by_letter(source, target):
    """Drops what begins with x, cuts at commas, and changes what begins with y."""
    if source.startswith('x'):
        return None
    if source.startswith('y'):
        return source[1:] + ' ', target
    return [(part, target) for part in source.split(',')]


@pytest.fixture(autouse=True)
def own(monkeypatch):
    """Users' functions of this file by their names, without a module of theirs."""
    functions = {
        'own:by_letter': by_letter,
        'own:many': lambda source, target: [(source, target)] * 4096,
        'own:three': lambda source, target: [(source, target)] * 3,
        'own:fails': lambda source, target: (source[source.index('good') :], target),
        'own:unfit': lambda source, target: {'breaks': ('a\nb', target), 'nothing': 7}.get(
            source, (source, target)
        ),
        'own:empty': lambda source, target: [('', target), (source, '  '), (source, target)],
    }
    monkeypatch.setattr(
        UserFunction, 'load', classmethod(lambda cls, name, hint: cls(name, functions[name]))
    )
    registry.load_filters.cache_clear()
    yield
    registry.load_filters.cache_clear()


def as_tsv(pairs):
    return Tsv(), ''.join(f'{source}\t{target}\n' for source, target in pairs).encode()


def as_json(pairs):
    lines = [json.dumps({'a': source, 'b': target}) for source, target in pairs]
    return JsonLines(fields=('a', 'b')), '\n'.join(lines).encode()


def as_tmx(pairs):
    units = [
        f'<tu><tuv xml:lang="en"><seg>{one}</seg></tuv><tuv xml:lang="zh"><seg>{two}</seg></tuv></tu>'
        for one, two in pairs
    ]
    return Tmx(languages=('en', 'zh')), f'<tmx>{"".join(units)}</tmx>'.encode()


def as_parquet(pairs):
    table = pa.table({'a': [each for each, _ in pairs], 'b': [each for _, each in pairs]})
    written = io.BytesIO()
    pq.write_table(table, written, row_group_size=3)
    return Parquet(fields=('a', 'b')), written.getvalue()


FORMS = [as_tsv, as_json, as_parquet]


@dataclasses.dataclass
class Taken:
    """What became of a corpus."""

    texts: list
    identities: list
    offsets: list
    tally: object
    rejected: list
    kept: list


def split_of(form, data, specs, **more):
    file = CorpusFile('corpus', 'corpus', len(data), False)
    return Split('train', form, ((file,),), filters=filter_specs(specs), **more)


def taken(
    form, data, specs, item_bytes=1 << 20, normalizer=T2T_LINES, max_examples=None, keeps=True,
    on_error='skip',
):  # fmt: skip
    """Reads a file as a job does."""
    split = split_of(form, data, specs, max_examples=max_examples, keeps_dropped=keeps)

    def open_binary(path):
        return io.BytesIO(data)

    index = [
        format_reader(form).index(part, open_binary) for part in index_ranges(split, item_bytes)
    ]
    items = plan_items(split, index, item_bytes)
    blocks = [each for item in items for each in read_blocks(item, open_binary, item_bytes)]
    if max_examples is not None:
        end = find_end(blocks, split, normalizer)
        split = dataclasses.replace(split, end=end)
    found = Taken([], [], [], [], [], [])
    for block in blocks:
        rows = select_rows(block, (split,), normalizer)
        stats = block_stats(block, rows, (split,), on_error)
        found.texts += [tuple(side.row(row) for side in rows.sides) for row in range(len(rows))]
        found.identities += rows.identities.tolist()
        found.offsets += rows.offsets.tolist()
        found.tally.append(stats.tally)
        found.rejected += [
            (each.reason, json.loads(line)) for each in stats.rejected
            for line in each.json_lines.splitlines()
        ]  # fmt: skip
        names = [column.name for column in rows.extra_features]
        columns = [column.values for column in rows.extra_features]
        found.kept += [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    found.tally = add_tallies('train', found.tally)
    assert found.tally.examples == len(found.texts)
    assert found.identities == sorted(set(found.identities))
    return found


WORDS = st.sampled_from(['a', 'e,', 'x', 'y', ' ', ',', 'i', '字', 'longer words,'])
PAIRS = st.lists(
    st.tuples(st.lists(WORDS, max_size=5).map(''.join), st.sampled_from(['', 'b', '字字字字'])),
    min_size=1,
    max_size=12,
)


@given(PAIRS, st.sampled_from(FORMS), st.sampled_from([7, 40, 1 << 20]), st.integers(1, 9))
def test_rows_are_what_comes_of_one_after_the_other_however_files_are_cut(
    pairs, as_form, cut, limit
):
    registry.load_filters.cache_clear()
    form, data = as_form(pairs)
    expected, dropped, empty, added = [], {}, 0, 0
    for number, pair in enumerate(pairs):
        rows = [tuple(text.strip() for text in pair)]
        if not all(rows[0]):
            empty += 1
            continue
        for name, function in (
            ('length', lambda *row: row if max(map(len, row)) <= 12 else None),
            ('own:by_letter', by_letter),
        ):
            made = []
            for row in rows:
                found = function(*row)
                several = found if isinstance(found, list) else [found]
                added += len(several) - 1
                for each in several:
                    stripped = each and tuple(text.strip() for text in each)
                    if stripped and all(stripped):
                        made.append(stripped)
                    else:
                        dropped[name] = dropped.get(name, 0) + 1
            rows = made
        expected += [(number, row) for row in rows]
    specs = ['length:1:12', 'own:by_letter']
    found = taken(form, data, specs, cut)
    assert found.texts == [row for _, row in expected]
    assert found.tally.filtered == dropped
    assert (found.tally.lines, found.tally.added, found.tally.empty) == (len(pairs), added, empty)
    assert len({number for number, _ in expected}) == len(set(found.offsets))
    assert sorted(reason for reason, _ in found.rejected) == sorted(
        name for name, count in dropped.items() for _ in range(count)
    )

    first = taken(form, data, specs, cut, max_examples=limit)
    assert first.texts == found.texts[:limit]
    assert first.identities == found.identities[:limit]
    assert first.tally.lines == len(pairs)
    if len(found.texts) < limit:
        assert first.tally.beyond_max_examples == 0


def test_a_piece_is_known_by_its_row_and_its_number():
    form, data = as_tsv([('a,b,c', 'x'), ('d', 'x')])
    assert taken(form, data, ['own:by_letter']).identities == [0, 1, 2, 8]
    form, data = as_parquet([('a,b,c', 'x'), ('d', 'x')])
    assert taken(form, data, ['own:by_letter']).identities == [0, 1, 2, applying.PIECES]
    assert taken(form, data, ['nfc']).identities == [0, 1]


def test_identities_are_those_that_order_keys_take():
    assert applying.MOST_NUMBERS * applying.PIECES == 1 << OFFSET_BITS
    last = applying.MOST_NUMBERS * applying.PIECES - 1
    assert len(order_keys(0, np.array([last]), 0)) == 1


@pytest.mark.parametrize(
    ('as_form', 'line'), [(as_tsv, 'the line that starts at byte 3'), (as_parquet, 'row 1')]
)
@pytest.mark.parametrize('name', ['fails', 'unfit'])
def test_what_a_function_gets_wrong_has_the_place_of_its_row(as_form, line, name):
    form, data = as_form([('', 'x'), ('nothing', 'x'), ('breaks', 'x')])
    with pytest.raises(InputError, match=f'^corpus: {line}: the filter own:{name} '):
        taken(form, data, [f'own:{name}'], on_error='stop')


def test_no_more_rows_come_of_one_than_can_be_told_apart():
    pairs = [('one', 'x'), ('a', 'bc'), ('two', 'x')]
    for as_form, specs, count, most in [
        (as_tsv, ['own:many'], 4096, 6),
        (as_parquet, ['own:three', 'own:many'], 3 * 4096, 4096),
    ]:
        form, data = as_form(pairs)
        what = f'made {count} rows of it, and there can be {most} at most'
        with pytest.raises(InputError, match=what):
            taken(form, data, specs)
        assert len(taken(form, data, ['own:three']).texts) == 9
    assert len(taken(*as_parquet(pairs), ['own:many']).texts) == 3 * 4096


def test_the_last_unit_of_a_block_has_as_much_room_as_bytes():
    unit = len(as_tmx([('a', 'b')])[1]) - len('<tmx></tmx>')
    pairs = [('a', 'b')] * 3
    identities = taken(*as_tmx(pairs), ['own:three', 'own:three', 'own:three']).identities
    assert identities == [5 + row * unit + piece for row in range(3) for piece in range(27)]
    with pytest.raises(InputError, match=f'made 243 rows of it, and there can be {unit} at most'):
        taken(*as_tmx(pairs[:1]), ['own:three'] * 5)


def test_rows_of_which_a_filter_makes_none_are_rejected_and_counted():
    pairs = [('good', 'x'), ('breaks', 'x'), ('a,breaks,b', 'x'), ('nothing', 'x'), ('end', 'x')]
    form, data = as_tsv(pairs)
    found = taken(form, data, ['own:by_letter', 'own:unfit'])
    assert [source for source, _ in found.texts] == ['good', 'a', 'b', 'end']
    assert found.tally.left_out == {'filter_no_row': 3}
    assert (found.tally.added, found.tally.filtered) == (2, {})
    assert found.rejected == [
        ('filter_no_row', {'file': 'corpus', 'offset': 7, 'line': 'breaks\tx'}),
        ('filter_no_row', {'file': 'corpus', 'offset': 16, 'line': 'breaks\tx'}),
        ('filter_no_row', {'file': 'corpus', 'offset': 29, 'line': 'nothing\tx'}),
    ]
    # Fields of JSON may hold line feeds, which the normalizer leaves within a row.
    found = taken(*as_json(pairs), ['own:unfit'])
    assert ('a\nb', 'x') in found.texts and found.tally.left_out == {'filter_no_row': 1}


def test_texts_and_pieces_without_text_are_counted_where_they_lost_it():
    form, data = as_tsv([('some words', 'x')])
    for normalizer in (T2T_LINES, UNSTRIPPED_LINES):
        found = taken(form, data, ['own:empty', 'nfc'], normalizer=normalizer)
        assert found.texts == [('some words', 'x')]
        assert (found.tally.added, found.tally.filtered) == (2, {'own:empty': 2})
        assert found.rejected == [
            ('own:empty', {'file': 'corpus', 'offset': 0, 'source': '', 'target': 'x'}),
            ('own:empty', {'file': 'corpus', 'offset': 0, 'source': 'some words', 'target': ''}),
        ]


def test_changed_text_is_normalized_as_if_it_had_been_read_so():
    form, data = as_tsv([('\u00a8x', 'y'), ('a', '\u00a8')])
    found = taken(form, data, ['nfkc'])
    assert found.texts == [('\u0308x', 'y'), ('a', '\u0308')]
    raw = taken(form, data, ['nfkc'], normalizer=UNSTRIPPED_LINES)
    assert raw.texts == [(' \u0308x', 'y'), ('a', ' \u0308')]


def test_filters_of_one_name_are_counted_together_in_the_order_of_rows():
    form, data = as_tsv([('aaa', 'b'), ('a', 'b'), ('aa', 'b')])
    found = taken(form, data, ['length:1:2', 'length:1:1'])
    assert found.tally.filtered == {'length': 2}
    assert [line['source'] for _, line in found.rejected] == ['aaa', 'aa']


def test_what_is_dropped_is_not_kept_unless_it_is_asked_for():
    form, data = as_tsv([('aaa', 'b')])
    assert taken(form, data, ['length:1:2'], keeps=False).rejected == []


def test_what_goes_along_follows_its_row():
    texts = ['c,d', 'x', 'e', 'yf']
    lines = [{'a': text, 'b': 'x', 'id': number} for number, text in enumerate(texts)]
    data = ''.join(json.dumps(each) + '\n' for each in lines).encode()
    form = JsonLines(fields=('a', 'b'), keep=('id:int',))
    found = taken(form, data, ['own:by_letter'])
    assert found.texts == [('c', 'x'), ('d', 'x'), ('e', 'x'), ('f', 'x')]
    assert [each['id'] for each in found.kept] == [0, 0, 2, 3]


def test_after_the_end_nothing_is_filtered_and_all_is_beyond():
    form, data = as_tsv([('a,b,c', 'x'), ('d', 'x'), ('xe', 'x'), ('', 'x'), ('f', 'x')])
    found = taken(form, data, ['own:by_letter'], max_examples=2)
    assert found.texts == [('a', 'x'), ('b', 'x')]
    tally = found.tally
    assert (tally.lines, tally.added, tally.empty, tally.beyond_max_examples) == (5, 2, 1, 4)
    assert tally.filtered == {}


BAD = st.sampled_from([b'\xff', b'too long a line'])


@given(
    st.lists(st.tuples(*[st.sampled_from([b'a', b'', b'words']) | BAD] * 2), max_size=9),
    st.integers(1, 4),
    st.sampled_from([7, 40, 1 << 20]),
    st.booleans(),
)
def test_bad_lines_of_either_file_count_up_to_the_last_example(lines, limit, cut, zipped):
    texts = tuple(b''.join(line + b'\n' for line in side) for side in zip(*lines, strict=True))
    became = became_of(Bitext(), texts or (b'', b''), cut, cut, max_line_bytes=8, zipped=zipped)
    split = dataclasses.replace(became.split, max_examples=limit)
    end = find_end(became.blocks, split, UNSTRIPPED_LINES)
    split = dataclasses.replace(split, end=end)
    examples, expected = 0, 0
    for pair in lines:
        if examples < limit:
            is_bad = any(line not in (b'a', b'', b'words') for line in pair)
            expected += is_bad
            examples += not is_bad and all(pair)
    taken = [select_rows(block, (split,), UNSTRIPPED_LINES) for block in became.blocks]
    assert sum(len(rows) for rows in taken) == examples
    assert sum(len(rows.rejects) for rows in taken) == expected
    assert sum(
        len(rows) + len(rows.rejects) + rows.empty + rows.beyond_max_examples for rows in taken
    ) == len(lines)


def test_tallies_tell_of_filters_only_where_there_is_something_to_tell():
    form, data = as_tsv([('aaa', 'b'), ('a,b', 'c')])
    quiet = taken(form, data, ['length:1:9']).tally.record()
    assert not {'filtered', 'added'} & quiet.keys()
    told = taken(form, data, ['length:1:3', 'own:by_letter']).tally
    assert told.record()['added'] == 1
    assert type(told).of_record(json.loads(json.dumps(told.record()))) == told
