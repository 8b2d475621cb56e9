"""Vectors of whole documents in sentence-transformers, the same that docjax gives.

    SentenceTransformer(FOLDER, trust_remote_code=True).encode(documents)

`docjax export` puts this file into the folders it writes; docjax itself never imports
this file, and the folder works without docjax. A document is a text, or a dict {"text":
...} or {"title": ..., "sections": [{"heading": ..., "text": ...}]}. `docjax_pieces.py`
cuts a document into units, and `docjax_cuts.py` cuts the units into segments. A
transformer or word vectors encode the segments; graph attention, a BiLSTM or a mean
makes one vector of them. `docjax.json` names these parts. A warning counts the segments
that the model does not read.
"""

import functools
import json
import logging
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from sentence_transformers.util import load_file_path
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoModel

from .docjax_cuts import chunks, joined, one_each
from .docjax_pieces import passages, sentences_of, whole
from .docjax_records import check_text, content, full_text

# The transformer reads at most ROWS segments in one call, and at most TOKENS tokens
# unless one segment has more.
ROWS, TOKENS = 32, 1 << 14
logger = logging.getLogger(__name__)


def read_document(item):
    """The document that a text or a dict describes, as docjax reads it."""
    place = f"document {str(item)[:40]!r}"
    document = content({"text": item} if isinstance(item, str) else item, place)
    check_text(document, place, "it")
    return document


# Graphs: [1 + segments, 1 + segments], True where the node of the row receives from the
# node of the column; node 0 is the document.


def full(sections, edges):
    return torch.ones(len(sections) + 1, len(sections) + 1, dtype=torch.bool)


def section(sections, edges, first_passage_clique=True):
    numbers = torch.tensor(sections)
    matrix = torch.eye(len(sections) + 1, dtype=torch.bool)
    matrix[1:, 1:] |= numbers[:, None] == numbers[None, :]
    first = torch.ones(len(sections), dtype=torch.bool)
    first[1:] = numbers[1:] != numbers[:-1]
    nodes = torch.cat([torch.tensor([True]), first])
    matrix[0, nodes] = matrix[nodes, 0] = True
    if first_passage_clique:
        matrix |= nodes[:, None] & nodes[None, :]
    return matrix


def user_edges(sections, edges):
    numbers = torch.tensor(sections)
    matrix = section(sections, edges, first_passage_clique=False)
    for start, end in edges:
        pair = (numbers == start)[:, None] & (numbers == end)[None, :]
        matrix[1:, 1:] |= pair | pair.T
    return matrix


UNITS = {
    "docjax.data.units.Passages": passages,
    "docjax.data.units.Sentences": sentences_of,
    "docjax.data.units.Whole": whole,
}
SEGMENTS = {
    "docjax.data.segments.OneEach": one_each,
    "docjax.data.segments.Joined": joined,
    "docjax.data.segments.Chunks": chunks,
}
GRAPHS = {f"docjax.data.graphs.{f.__name__}": f for f in (full, section, user_edges)}


def built(node, known):
    """The function of `known` that a config names, bound to its keywords."""
    keywords = {key: value for key, value in node.items() if key != "fn"}
    return functools.partial(lookup(node, known), **keywords)


def lookup(node, known):
    if node["fn"] not in known:
        raise ValueError(
            f"{node['fn']} has no PyTorch form; supported are {', '.join(known)}"
        )
    return known[node["fn"]]


# Segment encoders: token ids [n t], lengths [n] and places [n 2] to vectors [n d].


class WordAverage(nn.Module):
    def __init__(self, facts, file, model_kwargs, params):
        super().__init__()
        words = load_file(file("model.safetensors"))["embedding.weight"]
        self.words = nn.Parameter(words)

    def forward(self, tokens, lengths, places):
        real = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        weights = (real / lengths.clamp(min=1)[:, None]).to(self.words.dtype)
        return torch.einsum("nt,ntd->nd", weights, self.words[tokens])

    def save(self, folder):
        save_file({"embedding.weight": self.words.data}, folder / "model.safetensors")


class Transformer(nn.Module):
    has_pooler = True  # transformers' class has a pooler that docjax lacks

    def __init__(self, facts, file, model_kwargs, params):
        super().__init__()
        self.first = facts["pooling"] == "first"
        self.normalize = facts["normalize"]
        self.offset = facts["position_offset"]
        file("model.safetensors")  # downloads the file beside config.json
        folder = Path(file("config.json")).parent
        pooler = {"add_pooling_layer": False} if self.has_pooler else {}
        self.model = AutoModel.from_pretrained(folder, **pooler, **model_kwargs)
        self.params = params  # by docjax's path: the parameters that AutoModel lacks

    def forward(self, tokens, lengths, places, left_out=0):
        order = torch.arange(tokens.shape[1], device=tokens.device)
        real = order < lengths[:, None]
        seen = real.clone()
        seen[:, 0] = True  # attention over no tokens gives nan
        # RoBERTa's own positions would skip real tokens with the id of padding.
        positions = (order + self.offset).expand_as(tokens)
        words = self.model.get_input_embeddings()(tokens)
        for axis, name in enumerate(("sections", "chunks")):
            table = self.params.get(f"segment/embeddings/{name}/embedding")
            if table is not None:  # the last row stands for all numbers beyond
                rows = places[:, axis].clamp(max=len(table) - 1)
                words = words + table[rows][:, None].to(words.dtype)
        states = self.states(words, seen, positions)
        states = states.masked_fill(~real[..., None], 0)
        if self.first:
            vectors = states[:, 0]
        else:
            counts = (lengths - left_out).clamp(min=1)
            vectors = states[:, left_out:].sum(1) / counts[:, None]
        vectors = F.normalize(vectors, dim=-1) if self.normalize else vectors
        table = self.params.get("segment/words/table")
        if table is not None:
            vectors = torch.cat([vectors, of_words(table, tokens, lengths)], dim=-1)
        return vectors

    def states(self, words, seen, positions):
        return self.model(
            inputs_embeds=words,
            attention_mask=seen.long(),
            position_ids=positions,
            **self.masks(positions - self.offset),
        ).last_hidden_state

    def masks(self, order):
        """Further masks that the model reads; `order` [n t] numbers the tokens."""
        return {}

    def save(self, folder):
        self.model.save_pretrained(folder)


class Longformer(Transformer):
    def masks(self, order):
        return {"global_attention_mask": (order == 0).long()}


class ModernBert(Transformer):
    has_pooler = False


class BigBird(Transformer):
    """Reads every long segment alone: padding would become its last block."""

    def __init__(self, facts, file, model_kwargs, params):
        super().__init__(facts, file, model_kwargs, params)
        self.dense = (5 + 2 * facts["random"]) * facts["block"]

    def states(self, words, seen, positions):
        lengths = seen.sum(1)
        states = torch.zeros_like(words)
        short = (lengths <= self.dense).nonzero()[:, 0]
        long = (lengths > self.dense).nonzero()
        for rows in [*([short] if len(short) else []), *long]:
            longest = int(lengths[rows].max())
            sparse = longest > self.dense
            self.model.set_attention_type("block_sparse" if sparse else "original_full")
            inputs = (x[rows, :longest] for x in (words, seen, positions))
            states[rows, :longest] = super().states(*inputs)
        return states


def of_words(table, tokens, lengths):
    """The vectors of the segments' words; a word that occurs c times has 1 + ln c."""
    real = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
    same = (tokens[:, :, None] == tokens[:, None, :]) & real[:, None, :]
    counts = same.sum(-1).clamp(min=1).to(table.dtype)
    weights = (1 + counts.log()) / counts * real / lengths.clamp(min=1)[:, None]
    return torch.einsum("nt,ntk->nk", weights.to(table.dtype), table[tokens])


SEGMENT_ENCODERS = {
    "docjax.encoders.word_average.WordAverage": WordAverage,
    "docjax.encoders.transformer.Transformer": Transformer,
    "docjax.encoders.longformer.Longformer": Longformer,
    "docjax.encoders.modernbert.ModernBert": ModernBert,
    "docjax.encoders.bigbird.BigBird": BigBird,
}


# Document encoders: segment vectors [p d], lengths [p] and a graph to one vector;
# `query` makes query vectors from the segment vectors of queries [q d].


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
        make = node and lookup(node, DOCUMENT_ENCODERS)
        self.branch = make(node, Inner(params, "document/branch")) if node else None

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
    """A BiLSTM over the chunks; attention between sections is for training only."""

    def __init__(self, facts, params):
        super().__init__()
        self.facts = facts
        self.params = params

    def forward(self, vectors, lengths, graph):
        return self.project(vectors[lengths > 0])

    def query(self, vectors):
        return torch.stack([self.project(vector[None]) for vector in vectors])

    def project(self, chunks):
        states = [self.lstm("forwards", chunks), self.lstm("backwards", chunks.flip(0))]
        kernel, bias = (
            self.params[f"document/project/{name}"] for name in ("kernel", "bias")
        )
        return F.normalize(torch.cat(states) @ kernel + bias, dim=-1)

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


DOCUMENT_ENCODERS = {
    "docjax.encoders.pooling.Mean": Mean,
    "docjax.encoders.first_segments.FirstSegments": FirstSegments,
    "docjax.encoders.from_mean.FromMean": FromMean,
    "docjax.encoders.graph_attention.GraphAttention": GraphAttention,
    "docjax.encoders.chunks.ChunkEncoder": ChunkEncoder,
}


class LongDocuments(nn.Module):
    """The only module of the model: documents or queries to vectors."""

    save_in_root = True

    def __init__(self, facts, tokenizer, file, model_kwargs):
        super().__init__()
        encoder, limits = facts["encoder"], facts["limits"]
        self.facts, self.tokenizer, self.limits = facts, tokenizer, limits
        self.units = built(facts["units"], UNITS)
        self.cut = built(facts["segments"], SEGMENTS)
        self.graph = built(facts["graph"], GRAPHS) if facts["graph"] else None
        self.prefix, self.suffix = _special(tokenizer)
        rest = file("document.safetensors")
        self.params = nn.ParameterDict(load_file(rest) if rest else {})
        node = encoder["segment"]
        make = lookup(node, SEGMENT_ENCODERS)
        self.segment = make(node, file, model_kwargs, self.params)
        node = encoder["document"]
        self.document = lookup(node, DOCUMENT_ENCODERS)(node, self.params)
        self.to(next(self.segment.parameters()).dtype)  # the dtype in model_kwargs

    @classmethod
    def load(cls, name, subfolder="", model_kwargs=None, **kwargs):
        """The module of a folder or hub name, as sentence-transformers asks for it."""
        names = "token", "cache_folder", "revision", "local_files_only"
        where = {key: kwargs[key] for key in names if key in kwargs}
        file = lambda path: load_file_path(name, path, subfolder=subfolder, **where)
        facts = json.loads(Path(file("docjax.json")).read_text("utf-8"))
        tokenizer = Tokenizer.from_file(file("tokenizer.json"))
        return cls(facts, tokenizer, file, model_kwargs or {})

    def save(self, output_path, *args, **kwargs):
        """Writes the files that `load` reads; docjax reads only its own exports."""
        folder = Path(output_path)
        facts = {key: value for key, value in self.facts.items() if key != "measured"}
        (folder / "docjax.json").write_text(json.dumps(facts, indent=2), "utf-8")
        self.tokenizer.save(str(folder / "tokenizer.json"))
        self.segment.save(folder)
        if self.params:
            tensors = {name: tensor.data for name, tensor in self.params.items()}
            save_file(tensors, folder / "document.safetensors")

    def get_embedding_dimension(self):
        parts = self.facts["encoder"]
        of_segments = parts["segment"]["width"] + parts["segment"].get("words", 0)
        width = parts["document"].get("width", of_segments)
        return width * parts["document"].get("parts", 1)

    def preprocess(self, inputs, prompt=None, task=None, **kwargs):
        """Token ids [n t] of all segments, and the number of segments per document.

        A prompt stands before each segment.
        """
        documents, graphs = [read_document(item) for item in inputs], None
        if task == "query":
            segments = [self._query(document, prompt) for document in documents]
        else:
            cut = self.units, self.cut, prompt
            segments = [self._segments(document, *cut) for document in documents]
            segments = self._capped(segments)
            if self.graph:
                pairs = zip(segments, documents)
                graphs = [self.graph([at[0] for _, at in s], d.edges) for s, d in pairs]
        ids = [ids for cut in segments for ids, _ in cut]
        places = torch.tensor([place for cut in segments for _, place in cut])
        lengths = torch.tensor([len(segment) for segment in ids])
        tokens = torch.zeros(len(ids), max(int(lengths.max()), 1), dtype=torch.long)
        for row, segment in zip(tokens, ids):
            row[: len(segment)] = torch.tensor(segment)
        return {
            "input_ids": tokens,
            "lengths": lengths,
            "places": places,
            "counts": [len(cut) for cut in segments],
            "graphs": graphs,
            "query": task == "query",
            "left_out": self._left_out(prompt),
        }

    def forward(self, features):
        inputs = (features[name] for name in ("input_ids", "lengths", "places"))
        vectors = self._vectors(*inputs, features["left_out"])
        if features["query"]:
            embeddings = self.document.query(vectors)
        else:
            embeddings = torch.stack(self._documents(vectors, features))
        return features | {"sentence_embedding": embeddings}

    def _documents(self, vectors, features):
        counts = features["counts"]
        parts = vectors.split(counts), features["lengths"].split(counts)
        graphs = [graph.to(vectors.device) for graph in features["graphs"] or []]
        graphs = graphs or [None] * len(counts)
        return [self.document(*inputs) for inputs in zip(*parts, graphs)]

    def _encode(self, texts):
        encoded = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [list(text.ids) for text in encoded]

    def _behind(self, texts, prompt):
        """Token ids of a prompt, and of each text as it is behind the prompt."""
        if not prompt:
            return [], self._encode(texts)
        [words] = self._encode([prompt.rstrip()])
        alone = self._encode(texts)
        behind = self._encode([prompt + text for text in texts])
        size = len(words)
        pairs = zip(behind, alone)
        return words, [ids[size:] if ids[:size] == words else a for ids, a in pairs]

    def _left_out(self, prompt):
        """The first tokens of a segment that the mean leaves out."""
        if not prompt or self.facts.get("include_prompt", True):
            return 0
        return len(self.prefix) + len(self._encode([prompt])[0])

    def _segments(self, document, units, cut, prompt=None):
        """Token ids of each segment, and its place: section, and number inside it."""
        pieces = list(units(document))
        words, encoded = self._behind([text for text, _ in pieces], prompt)
        prefix, ids = self.prefix + words, [token for unit in encoded for token in unit]
        room = self.limits["segment_tokens"] - len(prefix) - len(self.suffix)
        if room < 1:
            raise ValueError(
                f"the prompt {prompt[:40]!r} leaves no room for text in segments of "
                f"{self.limits['segment_tokens']} tokens: give a shorter prompt"
            )
        # A unit that does not fit into a segment becomes several units.
        parts = [
            (min(room, len(unit) - start), section)
            for unit, (_, section) in zip(encoded, pieces)
            for start in range(0, max(len(unit), 1), room)
        ]
        segments, number = [], 0
        for start, end, section in cut(*zip(*parts), room):
            number = number + 1 if segments and segments[-1][1][0] == section else 0
            piece = prefix + ids[start:end] + self.suffix
            segments.append((piece, (section, number)))
        return segments

    def _query(self, document, prompt=None):
        most = min(self.limits["query_tokens"], self.limits["segment_tokens"])
        segments = self._segments(document, whole, one_each, prompt)
        tokens = sum(len(ids) for ids, _ in segments)
        if len(segments) > 1 or tokens > most:
            raise ValueError(
                f"query {full_text(document)[:40]!r} has {tokens} tokens, the model "
                f"reads {most}: shorten it, or encode it as a document"
            )
        return segments

    def _capped(self, segments):
        """The segments that the model reads of each document; warns about the rest."""
        most = self.limits["inference_segments"]
        cut = [d[most:] for d in segments if most and len(d) > most]
        if cut:
            logger.warning(
                "the model reads the first %d segments of a document: %d segments "
                "(%d tokens) are not read",
                most,
                sum(map(len, cut)),
                sum(len(ids) for rest in cut for ids, _ in rest),
            )
        return [document[:most] for document in segments]

    def _vectors(self, tokens, lengths, places, left_out=0):
        """Segment vectors, read in order of length so that little is padding."""
        order = lengths.argsort(descending=True)
        vectors, start = [], 0
        while start < len(order):
            longest = max(int(lengths[order[start]]), 1)
            rows = order[start : start + max(1, min(ROWS, TOKENS // longest))]
            inputs = tokens[rows, :longest], lengths[rows], places[rows]
            options = {"left_out": left_out} if left_out else {}
            vectors.append(self.segment(*inputs, **options))
            start += len(rows)
        return torch.cat(vectors)[order.argsort()]


def _special(tokenizer):
    """The ids that the tokenizer puts before and after a text."""
    bare = tokenizer.encode("a", add_special_tokens=False).ids
    ids = tokenizer.encode("a").ids
    starts = range(len(ids) - len(bare) + 1)
    start = next(i for i in starts if ids[i : i + len(bare)] == bare)
    return ids[:start], ids[start + len(bare) :]
