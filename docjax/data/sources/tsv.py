"""Documents from tables: the source `files` under the name that older configs have."""

from docjax.data.sources import jsonl

stamp, tsv = jsonl.stamp, jsonl.jsonl
