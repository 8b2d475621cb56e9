"""Graph attention against NumPy, PyTorch Geometric and jraph."""

import functools

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import pytest

from docjax.data import graphs
from docjax.encoders.graph_attention import GraphAttention, GraphAttentionLayer
from docjax.errors import UserError
from docjax.types import Graphs

SECTIONS = np.array([0, 0, 1, 1, 1, 2])  # of the segments of the longest document
COUNTS = (6, 1, 4)  # segments of each document
NODES, WIDTH = len(SECTIONS) + 1, 12
NO_EDGES = np.zeros((0, 2), np.int32)


def inputs(builder=graphs.section, nodes=NODES, seed=0) -> dict:
    """Segment vectors [b p d] of three documents, their lengths and graphs."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(len(COUNTS), nodes - 1, 8)).astype(np.float32)
    lengths = np.zeros((len(COUNTS), nodes - 1), np.int32)
    built = [builder(count, SECTIONS[:count], NO_EDGES) for count in COUNTS]
    for i, count in enumerate(COUNTS):
        lengths[i, :count] = generator.integers(1, 9, count)
    return dict(
        vectors=vectors,
        lengths=lengths,
        adjacency=np.stack([graphs.adjacency(one, nodes) for one in built]),
        edges=np.stack([graphs.edge_list(one, 60) for one in built]),
    )


def dense(given: dict) -> tuple:
    vectors, lengths, adjacency = (
        jnp.asarray(given[k]) for k in ("vectors", "lengths", "adjacency")
    )
    return vectors, lengths, None, Graphs(adjacency)


def sparse(given: dict) -> tuple:
    vectors, lengths, edges = (
        jnp.asarray(given[k]) for k in ("vectors", "lengths", "edges")
    )
    return vectors, lengths, None, Graphs(edges=edges)


def random_params(module, *arguments, seed: int = 1):
    """Parameters of ordinary size, biases too."""
    shapes = jax.eval_shape(module.init, jax.random.key(0), *arguments)
    generator = np.random.default_rng(seed)
    draw = lambda leaf: generator.normal(0, 0.5, leaf.shape).astype(np.float32)
    return jax.tree.map(draw, shapes["params"])


def elu(x):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def layer_by_hand(params, nodes, adjacency, heads, merge="concat"):
    """Each node: o_i = sum_j alpha_ji g_j for each head, then skip and bias."""
    out = []
    width = params["kernel"].shape[1] // heads
    for k in range(heads):
        g = nodes @ params["kernel"][:, k * width : (k + 1) * width]
        rows = np.zeros((len(nodes), width))
        for i in range(len(nodes)):
            senders = np.flatnonzero(adjacency[i])
            e = g[senders] @ params["sender"][k] + g[i] @ params["receiver"][k]
            e = np.exp(np.where(e > 0, e, 0.2 * e))
            rows[i] = (e / e.sum()) @ g[senders]
        out.append(rows)
    skip = nodes @ params["skip"]["kernel"] if "skip" in params else nodes
    joined = np.mean(out, 0) if merge == "mean" else np.concatenate(out, -1)
    return joined + skip + params["bias"]


def document_by_hand(params, vectors, count, adjacency, heads, merge="concat"):
    """Eq. 1 to 3 for one document; its vector is node 0 of the last layer."""
    node = params["node"]
    nodes = np.tanh(vectors[:count] @ node["kernel"] + node["bias"])
    nodes = np.concatenate([nodes.mean(0, keepdims=True), nodes])
    adjacency = adjacency[: count + 1, : count + 1]
    layers = [params[key] for key in sorted(params) if key.startswith("layer_")]
    for i, layer in enumerate(layers):
        nodes = layer_by_hand(layer, nodes, adjacency, heads, merge)
        nodes = elu(nodes) if i + 1 < len(layers) else nodes
    return nodes[0]


@pytest.mark.parametrize("builder", [graphs.full, graphs.section])
@pytest.mark.parametrize(
    "keywords",
    [
        dict(),
        dict(merge="mean", heads=3),
        dict(residual="linear"),
        dict(layers=1, heads=4),
        dict(layers=3),
    ],
    ids=str,
)
def test_document_vectors_are_those_of_the_equations(builder, keywords):
    module, given = GraphAttention(width=WIDTH, **keywords), inputs(builder)
    params = random_params(module, *dense(given))
    found = jax.jit(module.apply)({"params": params}, *dense(given))
    double = jax.tree.map(lambda a: a.astype(np.float64), params)
    for i, count in enumerate(COUNTS):
        expected = document_by_hand(
            double,
            given["vectors"][i].astype(np.float64),
            count,
            given["adjacency"][i],
            module.heads,
            module.merge,
        )
        np.testing.assert_allclose(found[i], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("builder", [graphs.full, graphs.section])
@pytest.mark.parametrize("merge", ["concat", "mean"])
def test_dense_and_sparse_give_the_same_vectors_and_gradients(builder, merge):
    given = inputs(builder)
    one = GraphAttention(width=WIDTH, heads=3, merge=merge)
    other = GraphAttention(width=WIDTH, heads=3, merge=merge, sparse=True)
    params = random_params(one, *dense(given))

    def loss(module, read, params, vectors):
        out = jax.jit(module.apply)(
            {"params": params}, *read(given | dict(vectors=vectors))
        )
        return (out**2).sum(), out

    results = [
        jax.jit(jax.grad(functools.partial(loss, module, read), (0, 1), has_aux=True))(
            params, given["vectors"]
        )
        for module, read in ((one, dense), (other, sparse))
    ]
    (gradients, out), (expected, same) = results
    np.testing.assert_allclose(out, same, atol=1e-5 * np.abs(same).max())
    # A gradient of the scores is a difference of large numbers: it loses a digit, and
    # with jax 0.12 a little more.
    for a, b in zip(jax.tree.leaves(gradients), jax.tree.leaves(expected)):
        np.testing.assert_allclose(a, b, atol=2e-4 * np.abs(b).max())


def layer_inputs() -> tuple:
    """A layer, its parameters, nodes of one document, and its graph."""
    layer = GraphAttentionLayer(WIDTH, 3, "concat", "identity", True)
    graph = graphs.section(len(SECTIONS), SECTIONS, NO_EDGES)
    nodes = np.random.default_rng(2).normal(size=(NODES, WIDTH)).astype(np.float32)
    adjacency = graphs.adjacency(graph, NODES)
    params = random_params(layer, nodes, adjacency, None)
    return layer, params, nodes, adjacency, graph


# Importing PyTorch Geometric calls it.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is:DeprecationWarning")
def test_a_layer_is_pytorch_geometrics():
    torch = pytest.importorskip("torch")
    from torch_geometric.nn import GATConv

    layer, params, nodes, adjacency, graph = layer_inputs()
    reference = GATConv(WIDTH, WIDTH // 3, heads=3, add_self_loops=False)
    with torch.no_grad():
        reference.lin.weight.copy_(torch.tensor(params["kernel"].T))
        reference.att_src.copy_(torch.tensor(params["sender"])[None])
        reference.att_dst.copy_(torch.tensor(params["receiver"])[None])
        reference.bias.copy_(torch.tensor(params["bias"]))
    edges = torch.tensor(np.stack([graph.senders, graph.receivers]).astype(np.int64))
    expected = reference(torch.tensor(nodes), edges) + torch.tensor(nodes)
    expected.square().sum().backward()

    def loss(params):
        out, _ = jax.jit(layer.apply)({"params": params}, nodes, adjacency, None)
        return (out**2).sum(), out

    gradient, found = jax.jit(jax.grad(loss, has_aux=True))(params)
    np.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-5)
    for name, theirs in (
        ("kernel", reference.lin.weight.grad.T),
        ("sender", reference.att_src.grad[0]),
        ("receiver", reference.att_dst.grad[0]),
        ("bias", reference.bias.grad),
    ):
        scale = np.abs(theirs.numpy()).max()
        np.testing.assert_allclose(gradient[name], theirs, atol=1e-5 * scale)


def test_a_layer_is_jraphs_head_by_head():
    layer, params, nodes, adjacency, graph = layer_inputs()
    k, heads = WIDTH // 3, []
    for head in range(3):
        kernel = params["kernel"][:, head * k : (head + 1) * k]

        def score(sent, received, _, head=head):
            total = sent @ params["sender"][head] + received @ params["receiver"][head]
            return jax.nn.leaky_relu(total, 0.2)[:, None]

        attend = jraph.GAT(lambda x, kernel=kernel: x @ kernel, score, lambda x: x)
        heads.append(attend(graph._replace(nodes=jnp.asarray(nodes))).nodes)
    expected = np.concatenate(heads, -1) + nodes + params["bias"]
    found, _ = jax.jit(layer.apply)({"params": params}, nodes, adjacency, None)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("read, is_sparse", [(dense, False), (sparse, True)])
def test_padding_never_changes_the_vector_and_gets_exactly_no_gradient(read, is_sparse):
    module, given = GraphAttention(width=WIDTH, sparse=is_sparse), inputs()
    params = random_params(module, *read(given))
    out = jax.jit(lambda given: module.apply({"params": params}, *read(given)))
    padded = given["lengths"] == 0
    noise = np.random.default_rng(5).normal(size=given["vectors"].shape) * 100
    noisy = np.where(padded[..., None], noise, given["vectors"]).astype(np.float32)
    np.testing.assert_array_equal(out(given), out(given | dict(vectors=noisy)))

    gradient = jax.jit(jax.grad(lambda v: (out(given | dict(vectors=v)) ** 2).sum()))(
        noisy
    )
    assert (gradient[padded] == 0).all()
    assert (np.abs(gradient[~padded]).max(-1) > 0).all()


def test_more_padding_gives_the_same_vectors():
    module, given = GraphAttention(width=WIDTH), inputs()
    params = random_params(module, *dense(given))
    wide = {
        "vectors": np.pad(given["vectors"], [(0, 0), (0, 5), (0, 0)]),
        "lengths": np.pad(given["lengths"], [(0, 0), (0, 5)]),
        "adjacency": np.pad(given["adjacency"], [(0, 0), (0, 5), (0, 5)]),
    }
    np.testing.assert_allclose(
        jax.jit(module.apply)({"params": params}, *dense(wide)),
        jax.jit(module.apply)({"params": params}, *dense(given)),
        atol=1e-6,
    )


def test_the_order_of_passages_does_not_matter_under_the_full_graph():
    module, given = GraphAttention(width=WIDTH), inputs(graphs.full)
    params = random_params(module, *dense(given))
    order = np.random.default_rng(3).permutation(COUNTS[0])
    vectors = given["vectors"].copy()
    vectors[0] = vectors[0, order]
    found = jax.jit(module.apply)(
        {"params": params}, *dense(given | dict(vectors=vectors))
    )
    expected = jax.jit(module.apply)({"params": params}, *dense(given))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_under_the_section_graph_the_order_matters():
    module, given = GraphAttention(width=WIDTH), inputs(graphs.section)
    params = random_params(module, *dense(given))
    vectors = given["vectors"][:, ::-1]
    found = jax.jit(module.apply)(
        {"params": params}, *dense(given | dict(vectors=vectors))
    )
    expected = jax.jit(module.apply)({"params": params}, *dense(given))
    assert np.abs(found[0] - expected[0]).max() > 0.01


def test_without_weights_only_the_skip_connection_is_left():
    """With W = 0, bias 0 and identity skip it is act(input)."""
    module, given = GraphAttention(width=WIDTH), inputs()
    params = random_params(module, *dense(given))
    for name in ("layer_0", "layer_1"):
        zeros = {key: np.zeros_like(params[name][key]) for key in ("kernel", "bias")}
        params[name] = params[name] | zeros
    nodes = np.tanh(
        given["vectors"] @ params["node"]["kernel"] + params["node"]["bias"]
    )
    found = jax.jit(module.apply)({"params": params}, *dense(given))
    for i, count in enumerate(COUNTS):
        np.testing.assert_allclose(found[i], elu(nodes[i, :count].mean(0)), atol=1e-6)


@pytest.mark.parametrize("read, is_sparse", [(dense, False), (sparse, True)])
def test_a_node_without_neighbours_is_finite_in_value_and_gradient(read, is_sparse):
    given = inputs()
    given["adjacency"][:] = False
    given["edges"][:] = -1
    given["lengths"][1] = 0  # and a document without segments
    module = GraphAttention(width=WIDTH, sparse=is_sparse)
    params = random_params(module, *read(given))
    loss = lambda params: module.apply({"params": params}, *read(given)).sum()
    value, gradient = jax.jit(jax.value_and_grad(loss))(params)
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_attention_is_a_distribution_over_the_senders_of_each_receiver():
    module, given = GraphAttention(width=WIDTH, heads=2), inputs()
    params = random_params(module, *dense(given))
    vectors, lengths, _, graph = dense(given)
    read = vectors, lengths, graph
    _, weights = module.apply({"params": params}, *read, method="nodes")
    assert [w.shape for w in weights] == [(len(COUNTS), 2, NODES, NODES)] * 2
    for layer in weights:
        absent = np.broadcast_to(~given["adjacency"][:, None], layer.shape)
        assert (layer[absent] == 0).all()
        real = given["adjacency"].any(-1)[:, None]
        np.testing.assert_allclose(layer.sum(-1), real * np.ones((1, 2, 1)), atol=1e-6)


def test_a_query_is_its_node_without_attention():
    module, given = GraphAttention(width=WIDTH), inputs()
    params = random_params(module, *dense(given))
    one = jnp.asarray(given["vectors"][:, 0])
    found = module.apply({"params": params}, one, method="query")
    expected = np.tanh(one @ params["node"]["kernel"] + params["node"]["bias"])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    # The same vector that the document node of one segment starts from.
    bare = GraphAttention(width=WIDTH, layers=0)
    alone = jax.jit(bare.apply)(
        {"params": {"node": params["node"]}},
        one[:, None],
        jnp.ones((len(one), 1), int),
        None,
        Graphs(jnp.ones((len(one), 2, 2), bool)),
    )
    np.testing.assert_allclose(found, alone, atol=1e-6)


def test_first_weights_are_spread_as_in_the_reference_layer():
    module = GraphAttention(width=256, heads=2, layers=1)
    vectors = jnp.zeros((1, 1, 8))
    full = Graphs(jnp.ones((1, 2, 2), bool))
    arguments = vectors, jnp.ones((1, 1), int), None, full
    params = jax.jit(module.init)(jax.random.key(0), *arguments)["params"]["layer_0"]
    # Xavier-normal with gain sqrt(2): of (256, 256), and of (1, 2 heads, 128).
    assert np.isclose(np.std(params["kernel"]), (2 * 2 / 512) ** 0.5, rtol=0.02)
    expected = (2 * 2 / (128 * (2 + 1))) ** 0.5
    both = np.concatenate([params["sender"], params["receiver"]])
    assert np.isclose(np.std(both), expected, rtol=0.15)


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(merge="sum"), "merge 'sum' is not one of concat, mean"),
        (dict(residual="none"), "residual 'none' is not one of identity, linear"),
        (dict(heads=5), "width 12 is not a multiple of heads 5"),
    ],
)
def test_a_wrong_choice_is_said_with_the_valid_ones(keywords, message):
    module = GraphAttention(width=WIDTH, **keywords)
    with pytest.raises(UserError, match=message):
        jax.jit(module.init)(jax.random.key(0), *dense(inputs()))


def test_attention_without_a_graph_is_a_mistake():
    vectors, lengths, *_ = dense(inputs())
    with pytest.raises(UserError, match="without a graph: set --config.graph"):
        jax.jit(GraphAttention(width=WIDTH).init)(jax.random.key(0), vectors, lengths)
