"""How vectors are compared, as the loss that trained them says."""

import pytest

from docjax.objectives.facts import Facts, facts_of, loss
from docjax.parts import named

OBJECTIVES = "docjax.objectives"
INFONCE = f"{OBJECTIVES}.infonce.infonce"


@pytest.mark.parametrize(
    "node, expected",
    [
        ({"fn": INFONCE}, "dot"),
        ({"fn": INFONCE, "similarity": "cosine"}, "cosine"),
        ({"fn": f"{OBJECTIVES}.contrastive_tension.contrastive_tension"}, "dot"),
        ({"fn": f"{OBJECTIVES}.queue.Queue"}, "dot"),
        ({"fn": f"{OBJECTIVES}.queue.Queue", "similarity": "cosine"}, "cosine"),
        ({"fn": f"{OBJECTIVES}.simsiam.simsiam"}, "cosine"),
        ({"fn": f"{OBJECTIVES}.distillation.Distillation"}, "cosine"),
        (
            {
                "fn": f"{OBJECTIVES}.masked_lm.MaskedLM",
                "contrastive": {"fn": INFONCE},
            },
            "dot",
        ),
        ({"fn": f"{OBJECTIVES}.masked_lm.MaskedLM"}, None),
        ({"fn": f"{OBJECTIVES}.negative_sampling.NegativeSampling"}, None),
    ],
)
def test_a_loss_says_how_vectors_are_compared(node, expected):
    assert facts_of(named.build(node)).similarity == expected


def test_a_loss_of_ones_own_says_it_in_its_file():
    @loss(similarity="dot")
    def product(vectors, targets):
        """A loss."""

    def other(vectors, targets):
        """Another loss, which says nothing."""

    assert facts_of(product).similarity == "dot"
    assert facts_of(other) == Facts()
