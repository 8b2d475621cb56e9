"""What `/metrics` counts, in the registry of prometheus-client."""

from prometheus_client import Counter, Gauge, Histogram

SIZES = (16, 64, 256, 1024, 4096, 8192, 16384, 65536, 262144)  # tokens of a batch

REQUESTS = Counter(
    "docjax_requests",
    "Requests by path and status; 499: the client disconnected.",
    ["path", "status"],
)
SECONDS = Histogram(
    "docjax_request_seconds", "Time from a request's head to its answer.", ["path"]
)
RUNNING = Gauge("docjax_running", "Requests with a body that are being answered.")
DOCUMENTS = Counter("docjax_documents", "Documents and queries that were encoded.")
BATCH_TOKENS = Histogram(
    "docjax_batch_tokens", "Tokens that were read together.", buckets=SIZES
)
