"""How well does a model predict masked tokens of documents that it has not read?"""

import dataclasses
import math

from docjax.errors import UserError
from docjax.tasks.embeddings import NoLabels
from docjax.tasks.task import TaskDefaults
from docjax.types import TaskData


@dataclasses.dataclass(frozen=True)
class MaskedTokens(TaskDefaults):
    """`loss`, `perplexity` and `accuracy` of masked tokens (Devlin et al., 2019).

    The loss is the mean cross-entropy of a share `rate` of the tokens, the perplexity
    is its exponential. The same tokens are masked in every evaluation. Labels are not
    needed.
    """

    rate: float = 0.15
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise UserError(
                f"masked_tokens has rate {self.rate}: give a share above 0 and below 1"
            )

    def check(self, data: TaskData, part: str) -> None:
        if next(iter(data.documents(part)), None) is None:
            raise NoLabels(  # so that a run goes on
                f"there is no {part} document: give the source documents with "
                f'"split": "{part}", set --config.holdout, or leave the task out'
            )

    def __call__(self, data: TaskData, part: str) -> dict[str, float]:
        loss, right, count = data.masked_tokens(part, self.rate, self.seed)
        if not count:
            raise UserError(
                f"the {part} documents have no token to predict: give documents with "
                "words that the tokenizer knows"
            )
        return {
            "loss": loss / count,
            "perplexity": math.exp(min(loss / count, 700.0)),
            "accuracy": right / count,
        }
