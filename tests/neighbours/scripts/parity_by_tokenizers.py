"""Prints the merges that `ParityBpeTrainer` of `tokenizers` learns, for each case; and its version.

Arguments: a file with a case as JSON on each line, and one for the results, likewise. A case has
`training` and `development`, the lines of each language; `expressions` that cut them (`removed` says
whether what matches is left out); and `options` of the trainer.
"""

import json
import sys

import tokenizers
from tokenizers import Regex, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from tokenizers.trainers import ParityBpeTrainer

with open(sys.argv[1]) as cases, open(sys.argv[2], 'w') as results:
    for line in cases:
        case = json.loads(line)
        behavior = 'removed' if case['removed'] else 'isolated'
        splits = [Split(Regex(expression), behavior) for expression in case['expressions']]
        tokenizer = Tokenizer(BPE())
        whole = ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = Sequence([*splits, whole])
        trainer = ParityBpeTrainer(
            variant='base',
            initial_alphabet=ByteLevel.alphabet(),
            show_progress=False,
            **case['options'],
        )
        trainer.train_from_iterator(
            tokenizer,
            [iter(lines) for lines in case['training']],
            [iter(lines) for lines in case['development']],
        )
        model = json.loads(tokenizer.to_str())['model']
        entries = sorted(model['vocab'], key=model['vocab'].get)
        results.write(json.dumps([entries, model['merges']]) + '\n')
print(json.dumps(tokenizers.__version__))
