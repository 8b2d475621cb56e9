"""Document encoders: segment vectors [p d], lengths [p] and a graph to one vector.

`query` makes query vectors from the segment vectors of queries [q d]. `docjax export`
puts this file into the folders it writes, beside `torch_module.py`.
"""

import torch
import torch.nn.functional as F
from torch import nn


def document_encoder(facts, params, folder="document"):
    """The class of this file that stands for a document encoder of docjax."""
    return globals()[facts["fn"]](facts, params, folder)


class Encoder(nn.Module):
    """What all document encoders have.

    `params` has the parameters by docjax's path, such as "document/layer_0/kernel"; those
    of a branch lie deeper, in `folder`.
    """

    def __init__(self, facts, params, folder):
        super().__init__()
        self.facts, self.params, self.folder = facts, params, folder

    def param(self, path):
        return self.params[f"{self.folder}/{path}"]

    def dense(self, name, vectors):
        return vectors @ self.param(f"{name}/kernel") + self.param(f"{name}/bias")


class Mean(Encoder):
    def forward(self, vectors, lengths, graph):
        weights = lengths / lengths.sum().clamp(min=1)
        return self.query(weights.to(vectors.dtype) @ vectors)

    def query(self, vectors):
        return F.normalize(vectors, dim=-1) if self.facts["normalize"] else vectors


class FirstSegments(Encoder):
    """Several vectors side by side, the best of which is compared with a query."""

    def forward(self, vectors, lengths, graph):
        count = self.facts["parts"]
        kept = vectors[:count]
        missing = vectors[:1].expand(count - len(kept), -1)
        return self.query(torch.cat([kept, missing])).flatten()

    def query(self, vectors):
        if not self.facts["projected"]:
            return vectors
        scale, shift = (self.param(f"normalization/{x}") for x in ("scale", "bias"))
        out = self.dense("dense", vectors)
        return F.layer_norm(out, scale.shape, scale, shift, eps=1e-5)


class FromMean(Encoder):
    def __init__(self, facts, params, folder):
        super().__init__(facts, params, folder)
        branch = facts["branch"], params, f"{folder}/branch"
        self.branch = document_encoder(*branch) if facts["branch"] else None

    def forward(self, vectors, lengths, graph):
        weights = (lengths / lengths.sum().clamp(min=1)).to(vectors.dtype)
        branch = self.branch and self.branch(self.read(vectors), lengths, graph)
        return self.joined(weights @ vectors, branch)

    def query(self, vectors):
        branch = self.branch and self.branch.query(self.read(vectors))
        return self.joined(vectors, branch)

    def read(self, vectors):
        return self.scaled(vectors) if self.facts["nested"] else vectors

    def scaled(self, vectors):
        if words := self.facts["words"]:
            share = self.param("share")
            known, of_words = vectors[..., :-words], vectors[..., -words:]
            known = F.normalize(known, dim=-1) * (1 - share).sqrt()
            of_words = F.normalize(of_words, dim=-1) * share.sqrt()
            return torch.cat([known, of_words], dim=-1)
        return F.normalize(vectors, dim=-1) if self.facts["normalize"] else vectors

    def joined(self, mean, branch):
        mean = self.scaled(mean)
        if self.facts["turn"]:
            mean = mean @ self.param("turn/kernel")
        if self.facts["components"]:
            mean = mean @ self.param("components")
        return mean if branch is None else mean + branch @ self.param("add/kernel")


class GraphAttention(Encoder):
    def forward(self, vectors, lengths, graph):
        real = (lengths > 0)[:, None]
        nodes = self.query(vectors) * real
        mean = nodes.sum(0, keepdim=True) / real.sum().clamp(min=1)
        nodes = torch.cat([mean, nodes])
        for i in range(self.facts["layers"]):
            nodes = F.elu(nodes) if i else nodes
            nodes = self.layer(f"layer_{i}", nodes, graph)
        return nodes[0]

    def query(self, vectors):
        return torch.tanh(self.dense("node", vectors))

    def layer(self, path, nodes, graph):
        param = lambda name: self.param(f"{path}/{name}")
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


class ChunkEncoder(Encoder):
    """A BiLSTM over the chunks, or with `hidden` 0 their mean.

    Attention between sections is for training only.
    """

    def forward(self, vectors, lengths, graph):
        return self.project(vectors[lengths > 0])

    def query(self, vectors):
        return torch.stack([self.project(vector[None]) for vector in vectors])

    def project(self, chunks):
        return F.normalize(self.dense("project", self.states(chunks)), dim=-1)

    def states(self, chunks):
        if not self.facts["hidden"]:
            return chunks.mean(0)
        last = self.lstm("forwards", chunks)
        return torch.cat([last, self.lstm("backwards", chunks.flip(0))])

    def lstm(self, name, chunks):
        """The last hidden state of one direction (gates i, f, g, o, as in torch)."""
        param = lambda gate, kind: self.param(f"{name}/{gate}/{kind}")
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
