"""Document encoders: segment vectors [p d], lengths [p] and a graph to one vector.

`query` makes query vectors from the segment vectors of queries [q d]. `docjax export`
puts this file into the folders it writes, beside `torch_module.py`.
"""

import torch
import torch.nn.functional as F
from torch import nn


def document_encoder(facts, params):
    """The class of this file that stands for a document encoder of docjax."""
    return globals()[facts["fn"]](facts, params)


class Mean(nn.Module):
    def __init__(self, facts, params):
        super().__init__()
        self.normalize = facts.get("normalize", False)

    def forward(self, vectors, lengths, graph):
        weights = lengths / lengths.sum().clamp(min=1)
        return self.query(weights.to(vectors.dtype) @ vectors)

    def query(self, vectors):
        return F.normalize(vectors, dim=-1) if self.normalize else vectors


class FirstSegments(nn.Module):
    """Several vectors side by side, the best of which is compared with a query."""

    def __init__(self, facts, params):
        super().__init__()
        self.facts = facts
        self.params = params

    def forward(self, vectors, lengths, graph):
        count = self.facts["parts"]
        kept = vectors[:count]
        missing = vectors[:1].expand(count - len(kept), -1)
        return self.query(torch.cat([kept, missing])).flatten()

    def query(self, vectors):
        if not self.facts["projected"]:
            return vectors
        kernel, bias = (self.params[f"document/dense/{x}"] for x in ("kernel", "bias"))
        scale, shift = (
            self.params[f"document/normalization/{x}"] for x in ("scale", "bias")
        )
        out = vectors @ kernel + bias
        return F.layer_norm(out, scale.shape, scale, shift, eps=1e-5)


class FromMean(nn.Module):
    def __init__(self, facts, params):
        super().__init__()
        self.facts = facts
        self.params = params
        node = facts["branch"]
        inner = Inner(params, "document/branch")
        self.branch = document_encoder(node, inner) if node else None

    def forward(self, vectors, lengths, graph):
        weights = (lengths / lengths.sum().clamp(min=1)).to(vectors.dtype)
        branch = self.branch and self.branch(vectors, lengths, graph)
        return self.joined(weights @ vectors, branch)

    def query(self, vectors):
        return self.joined(vectors, self.branch and self.branch.query(vectors))

    def joined(self, mean, branch):
        if words := self.facts["words"]:
            share = self.params["document/share"]
            known, of_words = mean[..., :-words], mean[..., -words:]
            known = F.normalize(known, dim=-1) * (1 - share).sqrt()
            of_words = F.normalize(of_words, dim=-1) * share.sqrt()
            mean = torch.cat([known, of_words], dim=-1)
        elif self.facts["normalize"]:
            mean = F.normalize(mean, dim=-1)
        if self.facts["turn"]:
            mean = mean @ self.params["document/turn/kernel"]
        if self.facts["components"]:
            mean = mean @ self.params["document/components"]
        if branch is None:
            return mean
        return mean + branch @ self.params["document/add/kernel"]


class Inner:
    """The parameters of a branch, which reads them as if it were the encoder."""

    def __init__(self, params, path):
        self.params, self.path = params, path

    def __getitem__(self, name):
        return self.params[self.path + name.removeprefix("document")]


class GraphAttention(nn.Module):
    def __init__(self, facts, params):
        super().__init__()
        self.facts = facts
        self.params = params  # by docjax's path, such as "document/layer_0/kernel"

    def forward(self, vectors, lengths, graph):
        real = (lengths > 0)[:, None]
        nodes = self.query(vectors) * real
        mean = nodes.sum(0, keepdim=True) / real.sum().clamp(min=1)
        nodes = torch.cat([mean, nodes])
        for i in range(self.facts["layers"]):
            nodes = F.elu(nodes) if i else nodes
            nodes = self.layer(f"document/layer_{i}", nodes, graph)
        return nodes[0]

    def query(self, vectors):
        kernel, bias = (self.params[f"document/node/{x}"] for x in ("kernel", "bias"))
        return torch.tanh(vectors @ kernel + bias)

    def layer(self, path, nodes, graph):
        param = lambda name: self.params[f"{path}/{name}"]
        sender, receiver = param("sender"), param("receiver")
        heads, k = sender.shape
        sent = (nodes @ param("kernel")).view(-1, heads, k)
        by_sender = torch.einsum("jhk,hk->hj", sent, sender)
        by_receiver = torch.einsum("ihk,hk->hi", sent, receiver)
        scores = F.leaky_relu(by_sender[:, None, :] + by_receiver[:, :, None], 0.2)
        least = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~graph, least).softmax(-1) * graph
        out = torch.einsum("hij,jhk->ihk", weights, sent)
        out = out.mean(1) if self.facts["merge"] == "mean" else out.flatten(1)
        linear = self.facts["residual"] == "linear"
        out = out + (nodes @ param("skip/kernel") if linear else nodes)
        return out + param("bias") if self.facts["bias"] else out


class ChunkEncoder(nn.Module):
    """A BiLSTM over the chunks, or with `hidden` 0 their mean.

    Attention between sections is for training only.
    """

    def __init__(self, facts, params):
        super().__init__()
        self.facts = facts
        self.params = params

    def forward(self, vectors, lengths, graph):
        return self.project(vectors[lengths > 0])

    def query(self, vectors):
        return torch.stack([self.project(vector[None]) for vector in vectors])

    def project(self, chunks):
        kernel, bias = (
            self.params[f"document/project/{name}"] for name in ("kernel", "bias")
        )
        return F.normalize(self.states(chunks) @ kernel + bias, dim=-1)

    def states(self, chunks):
        if not self.facts["hidden"]:
            return chunks.mean(0)
        last, first = (
            self.lstm("forwards", chunks),
            self.lstm("backwards", chunks.flip(0)),
        )
        return torch.cat([last, first])

    def lstm(self, name, chunks):
        """The last hidden state of one direction (gates i, f, g, o, as in torch)."""
        param = lambda gate, kind: self.params[f"document/{name}/{gate}/{kind}"]
        inner = torch.cat([param(f"i{gate}", "kernel") for gate in "ifgo"], dim=1)
        outer = torch.cat([param(f"h{gate}", "kernel") for gate in "ifgo"], dim=1)
        bias = torch.cat([param(f"h{gate}", "bias") for gate in "ifgo"])
        inputs = chunks @ inner + bias
        hidden = cell = torch.zeros(outer.shape[0]).to(chunks)
        for row in inputs:
            i, f, g, o = (row + hidden @ outer).chunk(4)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
        return hidden
