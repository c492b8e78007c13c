"""Runs a command here, and before each of its pipelines has DataflowRunner translate the same one.

`--dry_run` makes that runner check and translate a pipeline and send nothing. Arguments: those of
the command. Prints, for each pipeline, the names of Beam's primitive steps and the worker's image.
"""

import json
import sys

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners import DataflowRunner

from pipelines.cli.main import main
from pipelines.engines.engine import Engine

IMAGE = 'europe-docker.pkg.dev/project/images/tokbeam:0.2.0'

DATAFLOW = [
    '--project=some-project',
    '--region=europe-west4',
    '--temp_location=gs://some-bucket/temp',
    '--staging_location=gs://some-bucket/staging',
    '--job_name=tokbeam',
    '--sdk_location=container',
    f'--sdk_container_image={IMAGE}',
    '--dry_run=True',
]

translated = []


def translate(pipeline):
    """Translates a copy: the runner replaces transforms of what it is given."""
    runner, options = DataflowRunner(), PipelineOptions(DATAFLOW)
    copy = beam.Pipeline.from_runner_api(pipeline.to_runner_api(), runner, options)
    result = runner.run_pipeline(copy, options)
    components = runner.proto_pipeline.components
    leaves = [each for each in components.transforms.values() if not each.subtransforms]
    images = [each.payload for each in components.environments.values()]
    translated.append(
        {
            'state': str(result.state),
            'steps': sorted({each.spec.urn for each in leaves}),
            'has image': all(IMAGE.encode() in each for each in images),
        }
    )


submit = Engine._submit


def submit_both(engine, pipeline):
    translate(pipeline)
    return submit(engine, pipeline)


Engine._submit = submit_both
status = main(sys.argv[1:])
print(json.dumps({'status': status, 'pipelines': translated}))
