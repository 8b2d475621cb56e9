"""Segment encoders: token ids [n t], lengths [n] and places [n 2] to vectors [n d].

`docjax export` puts this file into the folders it writes, beside `torch_module.py`. The
record of a family of segment encoders names a class of this file, and says how the
class calls the model of transformers.
"""

from pathlib import Path

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from torch import nn


def segment_encoder(facts, *inputs):
    """The class of this file that stands for a segment encoder of docjax."""
    return globals()[facts["fn"]](facts, *inputs)


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
    """A model of transformers, and what docjax makes of the states of its tokens."""

    def __init__(self, facts, file, model_kwargs, params):
        super().__init__()
        self.facts, self.offset = facts, facts["position_offset"]
        file("model.safetensors")  # downloads the file beside config.json
        folder = Path(file("config.json")).parent
        kind = getattr(transformers, facts["auto_class"])
        keywords = facts["model_keywords"] | model_kwargs
        self.model = kind.from_pretrained(folder, **keywords)
        self.params = params  # by docjax's path: those that transformers lacks

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
        if self.facts["pooling"] == "first":
            vectors = states[:, 0]
        else:
            counts = (lengths - left_out).clamp(min=1)
            vectors = states[:, left_out:].sum(1) / counts[:, None]
        kernel = self.params.get("segment/projection/kernel")
        if kernel is not None:
            bias = self.params["segment/projection/bias"].to(vectors.dtype)
            vectors = vectors @ kernel.to(vectors.dtype) + bias
            if self.facts["projection_activation"] == "tanh":
                vectors = torch.tanh(vectors)
            vectors = vectors * (lengths > 0)[:, None]
        vectors = F.normalize(vectors, dim=-1) if self.facts["normalize"] else vectors
        table = self.params.get("segment/words/table")
        if table is not None:
            vectors = torch.cat([vectors, of_words(table, tokens, lengths)], dim=-1)
        return vectors

    def states(self, words, seen, positions):
        inputs = {"inputs_embeds": words, "attention_mask": seen.long()}
        if self.facts["takes_positions"]:
            inputs["position_ids"] = positions
        if self.facts["first_sees_all"]:
            inputs["global_attention_mask"] = (positions == self.offset).long()
        return self.model(**inputs).last_hidden_state

    def save(self, folder):
        self.model.save_pretrained(folder)


class BlockSparse(Transformer):
    """Reads every long segment alone: padding would become its last block."""

    def states(self, words, seen, positions):
        lengths, dense = seen.sum(1), self.facts["alone_above"]
        states = torch.zeros_like(words)
        short = (lengths <= dense).nonzero()[:, 0]
        long = (lengths > dense).nonzero()
        for rows in [*([short] if len(short) else []), *long]:
            longest = int(lengths[rows].max())
            sparse = longest > dense
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
