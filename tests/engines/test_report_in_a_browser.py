"""The page of a report in headless Chromium (Debian's package): dark and light, wide and narrow, in print."""

import re
import shutil
import subprocess

import pytest
from jobs import run

CHROMIUM = shutil.which('chromium')

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason='chromium is not installed: apt install chromium'),
]

# The back of the page, and the first series of a chart, as the style sheet has them.
COLOURS = {'light': ((255, 255, 255), (10, 99, 176)), 'dark': ((20, 24, 28), (108, 182, 255))}
SETTINGS = {'dark': 0, 'light': 1}


@pytest.fixture
def page(small_build, capfdbinary, tmp_path):
    pytest.importorskip('matplotlib', reason='the extra report is not installed')
    capfdbinary.readouterr()
    ended = run('report', small_build, '--corpus')
    assert ended.status == 0, ended.said
    path = tmp_path / 'report.html'
    path.write_bytes(capfdbinary.readouterr().out)
    return path


@pytest.fixture
def chromium(tmp_path):
    def run_chromium(*arguments, page):
        ended = subprocess.run(
            [
                *(CHROMIUM, '--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars'),
                *(f'--user-data-dir={tmp_path / "profile"}', *arguments, page.as_uri()),
            ],
            capture_output=True,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.decode()

    return run_chromium


@pytest.mark.parametrize('width', [1280, 400])
@pytest.mark.parametrize('scheme', COLOURS)
def test_a_page_has_the_colours_of_its_scheme_and_fits_its_window(
    scheme, width, page, chromium, tmp_path
):
    from matplotlib.image import imread

    picture = tmp_path / 'page.png'
    chromium(
        f'--blink-settings=preferredColorScheme={SETTINGS[scheme]}',
        f'--window-size={width},3000',
        f'--screenshot={picture}',
        page=page,
    )
    pixels = (imread(picture)[:, :, :3] * 255).round().astype(int)
    assert pixels.shape == (3000, width, 3)
    back, series = COLOURS[scheme]
    assert tuple(pixels[0, 0]) == tuple(pixels[-1, 0]) == back
    assert (pixels == series).all(axis=2).sum() > 200
    # Nothing but tables, which scroll by themselves, may be wider than the window; it has 500 at least.
    measured = page.with_name('measured.html')
    script = (
        '<script>document.title = document.documentElement.scrollWidth - innerWidth</script></body>'
    )
    measured.write_text(page.read_text().replace('</body>', script))
    told = chromium(f'--window-size={width},3000', '--dump-dom', page=measured)
    assert re.findall('<title>(.*?)</title>', told)[0] == '0'


def test_a_page_is_printed(page, chromium, tmp_path):
    printed = tmp_path / 'page.pdf'
    chromium(f'--print-to-pdf={printed}', page=page)
    data = printed.read_bytes()
    assert data.startswith(b'%PDF') and len(data) > 20_000
