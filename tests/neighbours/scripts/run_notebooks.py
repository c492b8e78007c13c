"""Runs notebooks by nbclient and prints what each cell has put out.

Arguments: a folder to work in, with the text `lines.txt`. A notebook is a list of cells here, and is kept in
the folder, as Jupyter opens it.
"""

import json
import sys
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(sys.argv[1])

CALLS = [
    """import pipelines, tokcore
bars = []
def look(message):
    if 'application/vnd.jupyter.widget-view+json' in message['content'].get('data', {}):
        bars.append(message)
    return message
get_ipython().display_pub.register_hook(look)""",
    "result = pipelines.build(text=['lines.txt'], scheme='byte', name='lines', shards=2, output='data')",
    'result',
    'dataset = tokcore.open_dataset(result.path)\ndataset',
    "dataset['train'][0]['targets'].tolist()",
    'len(bars)',
]

TRANSFORMS = [
    'import apache_beam as beam, pipelines',
    """def write(pipeline):
    counts = pipeline | 'Read' >> pipelines.ReadCorpus('lines.txt') | pipelines.CountTokens()
    counts['tables'] | beam.Map(repr) | beam.io.WriteToText('counts')""",
    'with beam.Pipeline() as pipeline:\n    write(pipeline)',
    "import glob\nlen(glob.glob('counts-*'))",
]

INTERRUPTED = [
    'import os, signal, pipelines\nfrom pipelines.engines import progress',
    """class Interrupt:
    is_sent = False
    def __call__(self, event):
        if isinstance(event, progress.WorkDone) and event.done > event.total // 4 and not self.is_sent:
            self.is_sent = True
            os.kill(os.getpid(), signal.SIGINT)  # as Jupyter does for Kernel > Interrupt
options = dict(text=['many.txt'], scheme='byte', name='many', shards=2, workers=1, output='many')""",
    """try:
    with progress.listening(Interrupt()):
        pipelines.build(**options)
except KeyboardInterrupt as interrupt:
    print(interrupt, os.path.exists('many/tokbeam.json'))""",
    'print(pipelines.build(**options).manifest.lines[0].examples)',
]


def run(name, cells):
    """Returns the outputs of each cell: texts of streams, and types of what is displayed."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(
        notebook, timeout=600, resources={'metadata': {'path': str(FOLDER)}}
    )
    try:
        client.execute()
    finally:
        nbformat.write(notebook, FOLDER / f'{name}.ipynb')
    return [
        [
            output['text'] if output.output_type == 'stream' else dict(output.get('data', {}))
            for output in cell.outputs
        ]
        for cell in notebook.cells
    ]


notebooks = {'calls': CALLS, 'transforms': TRANSFORMS, 'interrupted': INTERRUPTED}
print(json.dumps({name: run(name, cells) for name, cells in notebooks.items()}))
