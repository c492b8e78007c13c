"""A vocabulary's folder is opened as it stands by transformers 4 and 5, and by `tokenizers`.

Ids are ours for every line of the sample. `tokenizers` 1.0.0rc3 gives ids and has no `save`.
"""

import sys

import pytest
from environments import run_script
from sample_lines import LINES

import tokcore

ROLES = {
    'WordPieceTokenizer': {
        'pad_token': '[PAD]', 'unk_token': '[UNK]', 'cls_token': '[CLS]', 'sep_token': '[SEP]',
        'mask_token': '[MASK]',
    },
    'BpeTokenizer': {'pad_token': '<pad>', 'eos_token': '</s>'},
}  # fmt: skip


@pytest.fixture(scope='module')
def our_ids(vocabularies):
    options = {'cased': {'lower_case': False}}
    tokenizers = {
        name: getattr(tokcore, each.tokenizer).load(each.file, **options.get(name, {}))
        for name, each in vocabularies.items()
    }
    return {name: [*map(each.encode, LINES)] for name, each in tokenizers.items()}


@pytest.fixture(scope='module', params=['transformers 4', 'transformers 5'])
def opened(request, vocabularies, environment, texts):
    """What transformers tells, by the name of the vocabulary."""
    if request.param == 'transformers 4':
        request.getfixturevalue('transformers')
        python = sys.executable
    else:
        python = environment(request.param)
    folders = [each.folder for each in vocabularies.values()]
    told = run_script(python, 'open_tokenizer_folders.py', texts, *folders)
    assert told['version'].split('.')[0] == request.param.split()[1]
    return dict(zip(vocabularies, told['opened'].values(), strict=True))


def test_ids_are_ours_for_all_lines(opened, our_ids):
    for name, ids in our_ids.items():
        assert opened[name]['ids'] == ids, name
        assert opened[name]['saved'] == ids, name


def test_special_tokens_have_their_roles(opened, vocabularies):
    for name, vocabulary in vocabularies.items():
        assert opened[name]['roles'] == ROLES[vocabulary.tokenizer], name


def test_shorter_texts_are_padded(opened, vocabularies, our_ids):
    for name in vocabularies:
        longer, shorter = opened[name]['padded']
        mask = opened[name]['mask'][1]
        assert longer == our_ids[name][0] and len(shorter) == len(longer)
        assert [id_ for id_, kept in zip(shorter, mask, strict=True) if not kept] == [
            0
        ] * mask.count(0)
        assert 0 < mask.count(0) < len(mask)


def test_pairs_of_texts_are_as_berts(opened, our_ids):
    for name in ('bert', 'cased', 'build'):
        first, second = our_ids[name][:2]
        assert opened[name]['pair'] == first + second[1:]
        assert opened[name]['type_ids'] == [0] * len(first) + [1] * (len(second) - 1)


def test_byte_level_text_comes_back(opened):
    for name in ('gpt2', 'cl100k', 'exported', 'build, inputs', 'build, targets'):
        assert opened[name]['decoded'] == LINES


@pytest.mark.parametrize('version', ['0', '1'])
def test_tokenizers_gives_our_ids(version, request, vocabularies, environment, texts, our_ids):
    if version == '0':
        request.getfixturevalue('tokenizers')
        python = sys.executable
    else:
        python = environment('tokenizers 1.0.0rc3')
    folders = [each.folder for each in vocabularies.values()]
    told = run_script(python, 'encode_by_tokenizers.py', texts, *folders)
    assert dict(zip(vocabularies, told.values(), strict=True)) == our_ids
