"""Jobs that wait together are run together; what nobody waits for is not run."""

import asyncio
import threading

import pytest

from docjax.serve.batching import Batcher, Job
from docjax.serve.limits import Refusal
from docjax.serve.metrics import Metrics


class Worker:
    """Notes what it is given; the first batch waits until `go` is set."""

    def __init__(self):
        self.batches, self.go = [], threading.Event()

    def __call__(self, jobs):
        self.batches.append([job.content for job in jobs])
        assert self.go.wait(10)
        if "bad" in self.batches[-1]:
            raise ValueError("bad")
        return [f"{job.content}!" for job in jobs]


def jobs(names: str, tokens: int = 10) -> list[Job]:
    return [Job("document", name, tokens) for name in names.split()]


def run(scenario, seconds: float = 10.0):
    """Runs `scenario(batcher, worker)` beside a batcher of 40 tokens."""

    async def both():
        worker = Worker()
        batcher = Batcher(worker, 40, seconds, Metrics())
        running = asyncio.create_task(batcher.run())
        try:
            return await scenario(batcher, worker)
        finally:
            worker.go.set()
            running.cancel()
            batcher.thread.shutdown()

    return asyncio.run(both())


async def begun(batcher, worker) -> asyncio.Task:
    """A request that is being run, so that others wait."""
    first = asyncio.create_task(batcher(jobs("first")))
    while not worker.batches:
        await asyncio.sleep(0.001)
    return first


def test_what_waits_is_run_together_in_turn_up_to_the_tokens():
    async def scenario(batcher, worker):
        requests = [await begun(batcher, worker)]
        for names in ("a b c d", "x", "y z"):
            requests.append(asyncio.create_task(batcher(jobs(names))))
        await asyncio.sleep(0.01)
        worker.go.set()
        assert await asyncio.gather(*requests) == [
            ["first!"],
            ["a!", "b!", "c!", "d!"],
            ["x!"],
            ["y!", "z!"],
        ]
        return worker.batches

    assert run(scenario) == [["first"], ["a", "x", "y", "b"], ["z", "c", "d"]]


def test_small_jobs_of_a_request_are_run_in_one_turn():
    async def scenario(batcher, worker):
        requests = [await begun(batcher, worker)]
        for names in ("a b c d e f", "x y"):
            requests.append(asyncio.create_task(batcher(jobs(names, tokens=2))))
        await asyncio.sleep(0.01)
        worker.go.set()
        await asyncio.gather(*requests)
        return worker.batches

    assert run(scenario) == [["first"], ["a", "b", "c", "x", "y", "d", "e", "f"]]


def test_a_job_larger_than_the_tokens_is_run_alone():
    async def scenario(batcher, worker):
        requests = [await begun(batcher, worker)]
        for names, tokens in (("a", 10), ("large", 100), ("b", 10)):
            requests.append(asyncio.create_task(batcher(jobs(names, tokens))))
        await asyncio.sleep(0.01)
        worker.go.set()
        await asyncio.gather(*requests)
        return worker.batches

    assert run(scenario) == [["first"], ["a"], ["large"], ["b"]]


def test_what_nobody_waits_for_is_not_run():
    async def scenario(batcher, worker):
        first = await begun(batcher, worker)
        left = asyncio.create_task(batcher(jobs("a b")))
        stays = asyncio.create_task(batcher(jobs("c")))
        await asyncio.sleep(0.01)
        left.cancel()
        worker.go.set()
        assert await first == ["first!"] and await stays == ["c!"]
        return worker.batches

    assert run(scenario) == [["first"], ["c"]]


def test_who_waits_too_long_is_refused():
    async def scenario(batcher, worker):
        await begun(batcher, worker)
        with pytest.raises(Refusal, match=r"no answer within 0\.05 seconds") as error:
            await batcher(jobs("a"))
        assert error.value.status == 503
        worker.go.set()
        return await batcher(jobs("b")), worker.batches

    answer, batches = run(scenario, seconds=0.05)
    assert answer == ["b!"] and batches == [["first"], ["b"]]


def test_a_failure_is_told_to_all_that_were_run_together_and_to_no_other():
    async def scenario(batcher, worker):
        worker.go.set()
        with pytest.raises(ValueError, match="bad"):
            await batcher(jobs("a bad c"))
        return await batcher(jobs("d"))

    assert run(scenario) == ["d!"]
