"""Where docjax's own parts of each field lie: how their dotted names begin."""

HOMES = {
    "source": ("docjax.data.sources.",),
    "holdout": ("docjax.data.splits.",),
    "tokenizer.train": ("docjax.data.tokenizer.", "docjax.data.word_tokenizer."),
    "units": ("docjax.data.units.",),
    "examples": ("docjax.data.examples.", "docjax.retrieval.judged_queries."),
    "views": ("docjax.views.",),
    "segments": ("docjax.data.segments.",),
    "graph": ("docjax.data.graphs.",),
    "encoder": ("docjax.encoders.",),
    "objective": ("docjax.objectives.",),
    "optimizer": ("docjax.training.optimizer.", "docjax.training.rows.", "optax."),
    "keep": ("docjax.keep.",),
    "tasks": ("docjax.tasks.",),
}
OF_MODEL = ("encoder", "units", "segments", "graph")  # what a loaded model consists of
