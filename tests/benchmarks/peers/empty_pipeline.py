"""What a Beam job over Parquet and kernels cannot do without: its imports, and a pipeline."""

import apache_beam
import numba  # noqa: F401
import pyarrow.parquet  # noqa: F401


def main() -> None:
    with apache_beam.Pipeline(runner='FnApiRunner') as pipeline:
        _ = pipeline | apache_beam.Create([None])


if __name__ == '__main__':
    main()
