"""The perceptron that a probe trains on vectors of a frozen encoder."""

import flax.linen as nn
from jaxtyping import Array, Float

from docjax.kernels import EXACT


class Perceptron(nn.Module):
    """Vectors to scores of classes (SimLTE and DocSplit, section 4: "an MLP").

    The papers do not give the layers: dropout and a linear layer, and before these
    `hidden_layers` times dropout, a linear layer of `width` numbers and tanh, as
    RoBERTa's classification head has them.
    """

    classes: int
    hidden_layers: int
    width: int
    dropout: float

    @nn.compact
    def __call__(
        self, vectors: Float[Array, "b d"], train: bool = False
    ) -> Float[Array, "b {self.classes}"]:
        """`train` turns dropout on, which needs a key of the name "dropout"."""
        for _ in range(self.hidden_layers):
            dropped = nn.Dropout(self.dropout)(vectors, deterministic=not train)
            vectors = nn.tanh(nn.Dense(self.width, precision=EXACT)(dropped))
        vectors = nn.Dropout(self.dropout)(vectors, deterministic=not train)
        return nn.Dense(self.classes, precision=EXACT)(vectors)
