"""The counts of a server, in the format of Prometheus."""

import prometheus_client
from prometheus_client import Counter, Gauge, Histogram

PATHS = "/ /v1/embeddings /similarity /compare /healthz /metrics".split()
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TOKENS = (16, 64, 256, 1024, 4096, 8192, 16384, 65536, 262144)


class Metrics:
    """The counts of one server; each server of a process has a registry of its own."""

    def __init__(self) -> None:
        registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=registry)
        self.registry = registry
        self.requests = Counter(
            "docjax_requests",
            "Requests by path and status; 499: the client disconnected.",
            ["path", "status"],
            registry=registry,
        )
        self.seconds = Histogram(
            "docjax_request_seconds",
            "Time from a request's head to its answer.",
            ["path"],
            buckets=SECONDS,
            registry=registry,
        )
        self.tokens = Counter(
            "docjax_tokens", "Tokens that were read.", registry=registry
        )
        self.documents = Counter(
            "docjax_documents",
            "Documents and queries that were encoded.",
            registry=registry,
        )
        self.batches = Histogram(
            "docjax_batch_tokens",
            "Tokens that were read together.",
            buckets=TOKENS,
            registry=registry,
        )
        self.running = Gauge(
            "docjax_running", "Requests that are being answered.", registry=registry
        )
        self.waiting = Gauge(
            "docjax_waiting",
            "Documents and pieces of long documents that wait to be read.",
            registry=registry,
        )

    def request(self, path: str, status: int, seconds: float) -> None:
        """Counts an answer; unknown paths share one name."""
        path = path if path in PATHS else "other"
        self.requests.labels(path, status).inc()
        self.seconds.labels(path).observe(seconds)

    def batch(self, tokens: int) -> None:
        """Counts one batch of segments."""
        self.tokens.inc(tokens)
        self.batches.observe(tokens)

    def text(self) -> bytes:
        """All counts: the answer of `/metrics`."""
        return prometheus_client.generate_latest(self.registry)
