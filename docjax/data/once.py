"""Lines of the log that stand there once, though every evaluation reads the data again."""

import functools
import logging
from typing import Any

logger = logging.getLogger(__name__)


@functools.cache
def warn(text: str, *values: Any) -> None:
    """Warns of the text with its values, unless the same was said before."""
    logger.warning(text, *values)


@functools.cache
def say(text: str, *values: Any) -> None:
    """As `warn`, of what is no reason to worry."""
    logger.info(text, *values)
