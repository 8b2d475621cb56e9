"""What a server counts, in the format of Prometheus."""

import prometheus_client
from prometheus_client import Counter, Gauge, Histogram

PATHS = "/ /v1/embeddings /similarity /compare /healthz /metrics".split()
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TOKENS = (16, 64, 256, 1024, 4096, 8192, 16384, 65536, 262144)


class Metrics:
    """The counts of one server, apart from those of any other in the process."""

    def __init__(self) -> None:
        own = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=own)
        self.registry = own
        self.requests = Counter(
            "docjax_requests",
            "Requests by path and status; 499: the client left.",
            ["path", "status"],
            registry=own,
        )
        self.seconds = Histogram(
            "docjax_request_seconds",
            "Time from a request's head to its answer.",
            ["path"],
            buckets=SECONDS,
            registry=own,
        )
        self.tokens = Counter("docjax_tokens", "Tokens that were read.", registry=own)
        self.documents = Counter(
            "docjax_documents", "Documents and queries that were encoded.", registry=own
        )
        self.batches = Histogram(
            "docjax_batch_tokens",
            "Tokens that were read together.",
            buckets=TOKENS,
            registry=own,
        )
        self.running = Gauge(
            "docjax_running", "Requests that are read or answered.", registry=own
        )
        self.waiting = Gauge(
            "docjax_waiting",
            "Documents, or pieces of long ones, that wait to be read.",
            registry=own,
        )

    def request(self, path: str, status: int, seconds: float) -> None:
        """Counts an answer; unknown paths share one name."""
        path = path if path in PATHS else "other"
        self.requests.labels(path, status).inc()
        self.seconds.labels(path).observe(seconds)

    def batch(self, tokens: int) -> None:
        """Counts what is read together."""
        self.tokens.inc(tokens)
        self.batches.observe(tokens)

    def text(self) -> bytes:
        """All counts, as `/metrics` gives them."""
        return prometheus_client.generate_latest(self.registry)
