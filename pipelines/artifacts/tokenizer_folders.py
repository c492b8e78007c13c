"""Where the files lie with which Hugging Face's libraries open a vocabulary by its folder.

data/vocab.txt, data/tokenizer.json       the folder itself, where the file is called as these
                                          libraries call it
data/bert.txt.tokenizer/tokenizer.json    a folder of its own for a file of another name
data/enzh/tokenizer.json                  the folder of a dataset with one vocabulary
data/enzh/tokenizer.inputs/, ….targets/   folders in that of a dataset with two of them
"""

from tokcore.encoding.scheme import Scheme

TOKENIZER_FILE = r'(tokenizer\.(inputs|targets)/)?tokenizer(_config)?\.json'
"""The names of these files in datasets, as a regular expression."""


def folder_for_file(name: str, scheme: Scheme) -> str:
    """Returns the tokenizer folder of a vocabulary file, seen from the file's; '' is that itself."""
    return '' if name == scheme.name_in_tokenizer_folder else f'{name}.tokenizer'


def folder_for_side(side: str) -> str:
    """Returns the tokenizer folder of a dataset's vocabulary, seen from the dataset's."""
    return '' if side == 'both' else f'tokenizer.{side}'


def tokenizer_paths(folder: str, scheme: Scheme) -> list[str]:
    """Returns the paths of all files in a tokenizer folder."""
    return [path_in_folder(folder, name) for name in scheme.tokenizer_file_names]


def path_in_folder(folder: str, name: str) -> str:
    """Returns the path of a file in a tokenizer folder, `/` between names, seen from where that is."""
    return f'{folder}/{name}' if folder else name
