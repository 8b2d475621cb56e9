"""Lines of the log that stand there once, though every evaluation reads the data again."""

import functools
import logging
from typing import Any

from absl import logging as absl_logging

logger = logging.getLogger(__name__)


@functools.cache
def warn(text: str, *values: Any) -> None:
    """Logs the text with its values, unless the same was logged before."""
    logger.warning(text, *values)


@functools.cache
def info(text: str, *values: Any) -> None:
    """As `warn`, for a line that is no warning."""
    absl_logging.info(text, *values)
