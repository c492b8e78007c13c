"""What is public changes knowingly: the list is regenerated, and the changelog has each name."""

import public_surface

from tokcore import format_numbers


def test_the_list_is_current():
    assert public_surface.LIST.read_text() == public_surface.page(), (
        'run `python -m tests.public_surface`'
    )


def test_the_changelog_has_what_differs_from_the_last_release():
    missing = public_surface.not_mentioned(
        public_surface.of_release(), public_surface.surface(), public_surface.first_section()
    )
    assert not missing, 'mention these in the first section of CHANGELOG.md'


def test_the_changelog_has_the_numbers_of_formats():
    page = public_surface.CHANGES.read_text()
    for file, number in (
        ('`tokbeam.json` of a dataset', format_numbers.DATASET),
        ('`tokbeam.json` of counts', format_numbers.COUNTS),
        ('`FILE.tokbeam.json` of a vocabulary', format_numbers.VOCABULARY),
        ('`state()` of an iterator over batches', format_numbers.ITERATOR_STATE),
    ):
        assert f'| {file} | {number} |' in page


def test_a_name_that_is_new_changed_or_gone_must_be_mentioned():
    old = {'tokcore.a': '(x)', 'tokcore.b': '()', 'tokcore.c': '()'}
    new = {'tokcore.a': '(x, y)', 'tokcore.b': '()', 'tokcore.B.d': '()'}
    assert public_surface.not_mentioned(old, new, '') == ['tokcore.a', 'tokcore.c', 'tokcore.B.d']
    assert public_surface.not_mentioned(old, new, '`a` has `y`; `c` is gone; `B.d`') == []
