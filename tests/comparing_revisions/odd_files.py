"""Files that are not what their names say, or damaged; tokenizers of other tools; and job files."""

import base64
import gzip
import io
import json
import pickle
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import google_crc32c
from generated_text import english_lines

from tokcore.text.byte_level import BYTE_TO_CHARACTER

from .jobs_compared import Job
from .odd_corpora import CORPORA, LABELS, Corpus, OddCorpora

_LINES = english_lines(120, seed=11)
_TEXT = ''.join(f'{line}\n' for line in _LINES)
_BYTE = ['--scheme', 'byte', '--name', 'n', '--shards', 2]


class OddFiles:
    """Writes all files into a folder."""

    def __init__(self, folder: Path, corpora: OddCorpora):
        folder.mkdir()
        self._folder = folder
        self._corpora = corpora
        self.lines = self._write('lines.txt', corpora.contents('text')[-1][:6000] + b'\r\n \n\nend')
        self.ranks = self._write('ranks.tiktoken', _ranks())
        self.tokenizer = self._write('tokenizer.json', _tokenizer())

    def jobs(self) -> Iterator[Job]:
        """Yields a job for each of these files, and for each kind of bad row one that stops there."""
        for name, words in self._encoded():
            yield Job(f'odd.{name}', ('encode', *words, *_BYTE))
        for name, vocabulary in _word_vocabularies().items():
            words = [
                '--text',
                self._write('plain.txt', _TEXT),
                '--vocab',
                self._write(name, vocabulary),
            ]
            yield Job(
                f'odd.{name}', ('encode', *words, '--scheme', 'word', '--name', 'n', '--shards', 2)
            )
        for name in CORPORA:
            yield Job(f'stop.{name}', ('encode', *self._corpora.words(name, bad=True), *_BYTE))
        text = self._corpora.words('text')
        for output in ('flat', 'megatron', 'parquet'):
            few = ['--text', self._write('few.txt', 'one\ntwo\n'), '--output-format', output]
            yield Job(f'odd.few-rows.{output}', ('encode', *few, *_BYTE, '--shards', 5))
        data = Job('odd.dataset', ('encode', *text, *_BYTE))
        yield data
        for command in ('inspect', 'card', 'verify'):
            yield Job(f'odd.{command}', (command, data.output))
        yield Job('odd.where', ('where', data.output, '--text', 'lone'))
        records = gzip.compress(b''.join(map(_record, [b'', b'one record'])), mtime=0)
        yield Job('odd.inspect-gz', ('inspect', self._write('records.gz', records)))
        for number, text in enumerate(self._job_files()):
            yield Job(f'job-file.{number}', ('build', self._write(f'job-{number}.toml', text)))

    def _encoded(self) -> Iterator[tuple[str, list[object]]]:
        """Yields what a corpus is encoded from, each with a name."""
        write = self._write
        plain = write('plain.txt', _TEXT)
        archive = self._archive('archive.tgz', {'a.txt': _TEXT.encode(), 'b.txt': b'other\n'})
        copies = {
            ending: write(f'copy{ending}', archive.read_bytes()) for ending in ('.gz', '.bin')
        }
        inner = self._archive('outer.tar', {'in.tgz': archive.read_bytes(), 'c.txt': b'outer\n'})
        for name, word in {
            'archive': archive,
            'archive-as-gz': copies['.gz'],
            'archive-without-ending': copies['.bin'],
            'member-of-other-name': f'{copies[".bin"]}!a.txt',
            'missing-member': f'{archive}!c.txt',
            'archive-in-archive': f'{inner}!in.tgz',
            'glob-with-archive': f'{archive.parent}/a*',
            'member-of-text': f'{plain}!a.txt',
            'gz-of-html': write('page.gz', '<!DOCTYPE html>\n<html><body>404</body></html>\n'),
            'pdf': write('some.pdf', b'%PDF-1.7\n%\xe2\xe3\n1 0 obj\n<< /Type /Catalog >>\n'),
            'ascii-pdf': write('ascii.pdf', b'%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n'),
            'pickle': write('some.pkl', pickle.dumps(['a', 'b'], protocol=4)),
            'elf': write('program', b'\x7fELF\x02\x01\x01\0' + bytes(200) + b'text\n'),
            'parquet-as-text': write('rows.txt', self._corpora.contents('parquet')[0]),
            'tfrecord-as-text': write('rows.tfrecord', _record(b'one record')),
            '7z': write('some.7z', b"7z\xbc\xaf'\x1c\0\x04" + bytes(64)),
            'empty': write('empty.txt', ''),
            'blank': write('blank.txt', '\n \r\n\t\n'),
            'bom-alone': write('mark.txt', '\ufeff'),
            'no-last-end': write('last.txt', 'one\r\ntwo\r'),
            'few-nuls': write('few-nuls.txt', 'a\0b\n' + _TEXT + '\0\n'),
            'many-nuls': write('many-nuls.txt', _TEXT + 'a\0b\0\n' * 100),
        }.items():
            yield name, ['--text', word]
        for code in ('utf-16', 'utf-16-le', 'utf-16-be', 'utf-32', 'utf-32-le'):
            yield code, ['--text', write(f'{code}.txt', _TEXT.encode(code))]
        tmx = self._corpora.contents('tmx')[0].decode('utf-8-sig')
        tmx = tmx.replace('<?xml version="1.0"?>\n', '')
        yield (
            'tmx-utf-16',
            ['--tmx', write('wide.tmx', tmx.encode('utf-16')), '--languages', 'en,zh'],
        )
        yield 'tmx-languages', ['--tmx', write('some.tmx', tmx), '--languages', 'de,fr']
        yield (
            'tmx-cut-off',
            ['--tmx', write('cut.tmx', tmx[: len(tmx) // 2]), '--languages', 'en,zh'],
        )
        for number, bad in enumerate(('&#2;', 'a & b', '&eacute;', '\x02', '<b>', '\udcff')):
            units = tmx.replace('</seg>', f'{bad}</seg>', 1).replace('</seg>', f'{bad}</seg>', 40)
            path = write(f'bad-{number}.tmx', units.encode('utf-8', 'surrogateescape'))
            for how in ('stop', 'skip'):
                words = ['--tmx', path, '--languages', 'en,zh', '--on-error', how]
                yield f'tmx-bad-unit-{number}.{how}', words
        yield from self._sgm()
        yield 'twice', ['--text', plain, plain]
        with_bom = write('mark.jsonl', '\ufeff{"text": "one"}\n{"text": "two"}\n')
        yield 'jsonl-bom', ['--jsonl', with_bom]
        yield (
            'csv-header',
            ['--tsv', write('a.csv', 'en,de\nno,nein\n'), '--columns', 'en,de'],
        )
        yield 'csv-columns', ['--tsv', write('b.csv', 'no,nein\n"a, b",c\n'), '--columns', '0']
        yield from self._bad_labels_of_no_text()
        yield 'binary-bitext', ['--source', copies['.gz'], '--target', copies['.gz']]
        yield 'binary-tsv', ['--tsv', copies['.gz'], '--on-error', 'skip']
        yield 'binary-jsonl', ['--jsonl', copies['.gz'], '--on-error', 'skip']
        yield 'text-as-parquet', ['--parquet', plain]
        yield 'text-as-tmx', ['--tmx', plain, '--languages', 'en,zh']
        yield 'text-as-sgm', ['--source', plain, '--target', plain]

    def _sgm(self) -> Iterator[tuple[str, list[object]]]:
        def document(*segments: str, name: str = 'd') -> str:
            return '\n'.join([f'<doc docid="{name}">', *segments, '</doc>', ''])

        def numbered(*numbers: int, text: str = 'text') -> list[str]:
            return [f'<seg id="{number}">{text} {number}</seg>' for number in numbers]

        wmt = (
            '<?xml version="1.0" encoding="utf-8"?>\n<dataset id="newstest">\n<doc id="d">\n'
            '<src lang="en"><p>\n<seg id="1">source 1</seg>\n</p></src>\n'
            '<ref lang="de"><p>\n<seg id="1">target 1</seg>\n</p></ref>\n</doc>\n</dataset>\n'
        )
        for name, (source, target) in {
            'other-order': (document(*numbered(1, 2, 3)), document(*numbered(2, 3, 1))),
            'missing-segment': (document(*numbered(1, 2, 3)), document(*numbered(1, 3, 4))),
            'fewer-segments': (document(*numbered(1, 2, 3)), document(*numbered(1, 3))),
            'two-in-a-line': (document(''.join(numbered(1, 2))), document(''.join(numbered(1, 2)))),
            'no-ids': (document('<seg>one</seg>'), document('<seg>two</seg>')),
            'other-documents': (document(*numbered(1)), document(*numbered(1), name='e')),
            'documents-in-other-order': (
                document(*numbered(1)) + document(*numbered(1, text='e'), name='e'),
                document(*numbered(1, text='e'), name='e') + document(*numbered(1)),
            ),
            'bom': ('\ufeff' + document(*numbered(1)), document(*numbered(1))),
            'wmt-xml': (wmt, wmt),
        }.items():
            sides = [
                self._write(f'{name}.{side}.sgm', text)
                for side, text in enumerate((source, target))
            ]
            yield f'sgm-{name}', ['--source', sides[0], '--target', sides[1]]

    def _bad_labels_of_no_text(self) -> Iterator[tuple[str, list[object]]]:
        """Rows without text whose labels are wrong, in each format that has labels."""
        for how in ('none', 'csv'):
            path = self._write(f'labels-{how}.tsv', 'kind\ttext\nodd\tone\nelse\t\nnone\t\n')
            words = [
                '--tsv',
                path,
                '--columns',
                'text',
                '--label',
                'kind',
                '--quoting',
                how,
            ]
            yield (
                f'label-of-no-text.tsv-{how}',
                [*words, '--labels', self._corpora.labels, '--on-error', 'skip'],
            )
        rows = [('odd', 'one'), ('else', ''), ('none', '')]
        objects = ''.join(f'{json.dumps({"kind": kind, "text": text})}\n' for kind, text in rows)
        words = ['--jsonl', self._write('labels.jsonl', objects), '--label', 'kind']
        yield (
            'label-of-no-text.jsonl',
            [*words, '--labels', self._corpora.labels, '--on-error', 'skip'],
        )
        texts = self._write('labelled.txt', ''.join(f'{text}\n' for _, text in rows))
        labels = self._write('labelled.labels', ''.join(f'{kind}\n' for kind, _ in rows))
        words = ['--text', texts, '--line-labels', labels]
        yield (
            'label-of-no-text.labelled',
            [*words, '--labels', self._corpora.labels, '--on-error', 'skip'],
        )

    def _job_files(self) -> Iterator[str]:
        """Yields job files: each has three datasets of different formats, and one for development."""
        schemes = (
            'scheme = "subword"\nvocab_size = 300\nshared_vocab = true',
            'scheme = "bpe"\nvocab_size = 400',
            'scheme = "byte"',
            'scheme = "wordpiece"\nvocab_size = 900\nmin_count_range = "2:100"\nshared_vocab = true',
            'scheme = "word"\nmin_count = 1',
        )
        outputs = ('tfrecord', 'text', 'parquet', 'megatron', 'flat')
        pairs = [
            name for name, corpus in CORPORA.items() if corpus.sides == 2 and 'header' not in name
        ]
        texts = ['text', 'tmx-text', 'jsonl-text']
        for number, scheme in enumerate(schemes):
            of_pairs = [pairs[(3 * number + step) % len(pairs)] for step in (0, 1, 2)]
            for names, output in [(of_pairs, outputs[number]), (texts, outputs[-1 - number])]:
                if names is texts and number > 1:
                    continue
                parts = [self._dataset(name, n, len(names)) for n, name in enumerate(names)]
                yield (
                    ''.join(parts) + f'[vocabulary]\n{scheme}\n\n[output]\nname = "n"\nshards = 3\n'
                    f'output_format = "{output}"\n'
                )

    def _dataset(self, name: str, number: int, count: int) -> str:
        """The last of the datasets is for development; the second ends after some rows."""
        corpus = _TEXTS_OF_JSON if name == 'jsonl-text' else CORPORA[name]
        paths = self._corpora.paths('jsonl' if name == 'jsonl-text' else name)
        roles = paths if len(paths) > 1 else [*paths.values()][0]
        values: dict[str, object] = {'format': corpus.format, 'paths': roles, **corpus.options}
        is_dev = number == count - 1
        if not is_dev:
            values |= {'name': f'part{number}', 'target_prefix': f'<{number}> '}
        values |= {'max_examples': 50, 'clean': ['nfkc', 'length:2:200']} if number == 1 else {}
        lines = [f'{key} = {_toml(value)}' for key, value in values.items()]
        return '\n'.join(['[[dev]]' if is_dev else '[[train]]', *lines, '', ''])

    def _write(self, name: str, content: str | bytes) -> Path:
        path = self._folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def _archive(self, name: str, members: Mapping[str, bytes]) -> Path:
        stored = io.BytesIO()
        with tarfile.open(fileobj=stored, mode='w') as archive:
            for member, data in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        is_packed = name.endswith('gz')
        return self._write(
            name, gzip.compress(stored.getvalue(), mtime=0) if is_packed else stored.getvalue()
        )


_TEXTS_OF_JSON = Corpus(1, CORPORA['jsonl'].texts, 'jsonl', {'fields': 'text'})


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return '{ ' + ', '.join(f'{key} = {_toml(each)}' for key, each in value.items()) + ' }'
    return json.dumps(value)


def _record(payload: bytes) -> bytes:
    def masked(data: bytes) -> bytes:
        crc = google_crc32c.value(data)
        return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, 'little')

    size = len(payload).to_bytes(8, 'little')
    return size + masked(size) + payload + masked(payload)


def _ranks() -> bytes:
    tokens = [
        *(bytes([byte]) for byte in range(256)),
        b'th',
        b'the',
        b' t',
        b' the',
        b'er',
        b'\r\n',
    ]
    return b''.join(base64.b64encode(token) + b' %d\n' % rank for rank, token in enumerate(tokens))


def _tokenizer() -> str:
    entries = {BYTE_TO_CHARACTER[byte]: byte for byte in range(256)} | {'th': 256, 'the': 257}
    byte_level = {
        'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': False,
    }  # fmt: skip
    flags = dict.fromkeys(('single_word', 'lstrip', 'rstrip', 'normalized'), False)
    special = [('<|endoftext|>', True), ('<2zh>', False)]
    digits = {'type': 'Digits', 'individual_digits': True}
    file = {
        'added_tokens': [
            {'id': 258 + n, 'content': text, **flags, 'special': is_special}
            for n, (text, is_special) in enumerate(special)
        ],
        'normalizer': {'type': 'NFC'},
        'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [digits, byte_level]},
        'post_processor': None,
        'decoder': byte_level,
        'model': {'type': 'BPE', 'vocab': entries, 'merges': ['t h', 'th e']},
    }
    return json.dumps(file)


def _word_vocabularies() -> dict[str, str]:
    """Vocabularies of words by file name; of the first that is right, the words are the commonest."""
    words = sorted({word for line in _LINES for word in line.split(' ') if word})
    special = ['<unk>', '<s>', '</s>']
    lines = [*special, *words]
    return {
        'words.txt': ''.join(f'{word}\n' for word in lines),
        'words-crlf.txt': ''.join(f'{word}\r\n' for word in lines),
        'words-bom.txt': '\ufeff' + ''.join(f'{word}\n' for word in lines),
        'words-without-special.txt': ''.join(f'{word}\n' for word in words),
        'words-few.txt': ''.join(f'{word}\n' for word in lines[:40]),
        'dict.txt': ''.join(f'{word} {9 + n}\n' for n, word in enumerate(words)),
        'words.yml': ''.join(f'{json.dumps(word)}: {n}\n' for n, word in enumerate(lines)),
        'words.json': json.dumps({word: n for n, word in enumerate(lines)}),
        'words-of-labels.txt': ''.join(f'{word}\n' for word in (*special, *LABELS)),
    }
