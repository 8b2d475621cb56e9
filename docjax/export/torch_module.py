"""Vectors of whole documents in sentence-transformers, the same that docjax gives.

    SentenceTransformer(FOLDER, trust_remote_code=True).encode(documents)

`docjax export` puts this file into the folders it writes; docjax itself never imports
this file, and the folder works without docjax. A document is a text, or a dict {"text":
...} or {"title": ..., "sections": [{"heading": ..., "text": ...}]}. `docjax_pieces.py`
cuts a document into units, and `docjax_cuts.py` cuts the units into segments. A
transformer or word vectors encode the segments (`docjax_segment_encoders.py`); graph
attention, a BiLSTM or a mean makes one vector of them (`docjax_document_encoders.py`).
`docjax_neighbours.py` builds graphs. "torch" in `docjax.json` names the functions and
classes of these files. A warning counts the segments that the model does not read.
"""

import functools
import inspect
import json
import logging
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from sentence_transformers.util import load_file_path
from tokenizers import Tokenizer
from torch import nn

from .docjax_cuts import one_each
from .docjax_document_encoders import document_encoder
from .docjax_neighbours import full
from .docjax_pieces import whole
from .docjax_records import check_text, content, full_text
from .docjax_segment_encoders import segment_encoder

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


def built(node, neighbour):
    """The function that a node names, in the file of `neighbour`, with its keywords."""
    keywords = {key: value for key, value in node.items() if key != "fn"}
    function = getattr(inspect.getmodule(neighbour), node["fn"])
    return functools.partial(function, **keywords)


class LongDocuments(nn.Module):
    """The only module of the model: documents or queries to vectors."""

    save_in_root = True

    def __init__(self, facts, tokenizer, file, model_kwargs):
        super().__init__()
        self.facts, self.tokenizer, self.limits = facts, tokenizer, facts["limits"]
        parts = facts["torch"]
        self.units = built(parts["units"], whole)
        self.cut = built(parts["segments"], one_each)
        self.graph = built(parts["graph"], full) if parts["graph"] else None
        self.prefix, self.suffix = _special(tokenizer)
        rest = file("document.safetensors")
        self.params = nn.ParameterDict(load_file(rest) if rest else {})
        given = file, model_kwargs, self.params
        self.segment = segment_encoder(parts["segment"], *given)
        self.document = document_encoder(parts["document"], self.params)
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
        return self.facts["width"]

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
                graphs = [self._graph(s, d.edges) for s, d in pairs]
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

    def _graph(self, segments, edges):
        """A matrix [1 + segments, 1 + segments], see `docjax_neighbours.py`."""
        return torch.from_numpy(self.graph([at[0] for _, at in segments], edges))

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
        # A unit that does not fit into a segment becomes several units, and a text
        # without tokens is no unit, unless the document has no token at all.
        parts = [
            (min(room, len(unit) - start), section)
            for unit, (_, section) in zip(encoded, pieces)
            for start in range(0, len(unit), room)
        ] or [(0, section) for _, section in pieces[:1]]
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
