"""Parameters of our Transformer as Hugging Face keeps them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from docjax.huggingface import configs, names


def to_huggingface(
    params: Mapping[str, Any], keywords: Mapping[str, Any], kind: str
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The state dict and config.json of a BertModel or RobertaModel.

    `keywords` are those of Transformer, as `load` returns them; `kind` is "bert" or
    "roberta". There is no pooler: load with `add_pooling_layer=False`.

    Raises:
      UserError: if `kind` does not fit the keywords.
    """
    config = configs.to_config(keywords, kind)
    flat = names.flatten(params)
    table = names.table(keywords["layers"])
    state = {name: names.swap(path, flat[path]) for path, name in table.items()}
    return {k: np.ascontiguousarray(v, np.float32) for k, v in state.items()}, config
