"""The public transforms, and what goes between them."""

import pipelines.engines.notebooks  # noqa: F401 - users apply transforms to pipelines of their own
