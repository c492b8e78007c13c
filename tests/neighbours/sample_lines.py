"""The sample's files, and their lines, in two languages."""

from environments import ROOT

SAMPLE = ROOT / 'pipelines' / 'sample'
LINES = [
    line
    for name in ('train.en', 'train.zh', 'dev.en', 'dev.zh')
    for line in (SAMPLE / name).read_text(encoding='utf-8').splitlines()
]
