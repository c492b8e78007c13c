"""What must not outlive an edit is named by a digest of all sources."""

from tokcore.kernels.cache_folder import source_digest


def test_the_digest_names_all_sources(tmp_path):
    # The wrapped function, since a process reads the sources once.
    digest = source_digest.__wrapped__
    (tmp_path / 'plain.py').write_text('one = 1\n')
    (tmp_path / 'notes.txt').write_text('one\n')
    before = digest(tmp_path)
    (tmp_path / 'notes.txt').write_text('two\n')
    assert digest(tmp_path) == before
    (tmp_path / 'plain.py').write_text('one = 2\n')
    assert digest(tmp_path) != before
