"""Segments that wait together are read together; what nobody waits for is not read."""

import asyncio
import threading

import numpy as np

from docjax.serve.batching import Batcher, Job
from docjax.types import Segments


class Worker:
    """Notes the letters of what it is given; each batch waits until `go` is set."""

    def __init__(self):
        self.batches, self.go = [], threading.Event()

    def __call__(self, pieces):
        self.batches.append("".join(map(letters, pieces)))
        assert self.go.wait(10)
        if "!" in self.batches[-1]:
            raise ValueError("bad")
        return [piece.tokens[piece.offsets[:-1], None] for piece in pieces]


def letters(piece: Segments) -> str:
    """Each segment's first token."""
    return "".join(map(chr, piece.tokens[piece.offsets[:-1]]))


def jobs(names: str, tokens: int = 10) -> list[Job]:
    """A job for each word, with a segment of so many tokens for each letter.

    Its result is the letters that were read of it, from the vectors.
    """
    finish = lambda read: "".join(chr(int(v)) for one in read for [v] in one.vectors)
    return [
        Job([document(name, tokens)], finish, tokens * len(name))
        for name in names.split()
    ]


def document(name: str, tokens: int) -> Segments:
    return Segments(
        np.repeat([ord(letter) for letter in name], tokens),
        np.arange(len(name) + 1) * tokens,
        np.zeros(len(name), np.int32),
        np.zeros((0, 2), np.int32),
    )


def run(scenario):
    """Runs `scenario(batcher, worker)` beside a batcher of 40 tokens."""

    async def both():
        worker = Worker()
        batcher = Batcher(worker, 40)
        running = asyncio.create_task(batcher.run())
        try:
            return await scenario(batcher, worker)
        finally:
            worker.go.set()
            running.cancel()
            batcher.close()

    return asyncio.run(both())


async def begun(batcher, worker, name: str = "0") -> asyncio.Task:
    """A request that is being read, so that others wait."""
    first = asyncio.create_task(batcher(jobs(name)))
    while not worker.batches:
        await asyncio.sleep(0.001)
    return first


async def waits(batcher, names: str, tokens: int = 10) -> asyncio.Task:
    """A request that waits."""
    task = asyncio.create_task(batcher(jobs(names, tokens)))
    await asyncio.sleep(0.01)
    return task


def test_what_waits_is_read_together_in_turn_up_to_the_tokens():
    async def scenario(batcher, worker):
        requests = [await begun(batcher, worker)]
        for names in ("a b c d", "x", "y z"):
            requests.append(await waits(batcher, names))
        worker.go.set()
        assert await asyncio.gather(*requests) == [
            ["0"],
            ["a", "b", "c", "d"],
            ["x"],
            ["y", "z"],
        ]
        return worker.batches

    assert run(scenario) == ["0", "axyb", "zcd"]


def test_a_segment_larger_than_the_tokens_is_read_alone():
    async def scenario(batcher, worker):
        requests = [await begun(batcher, worker)]
        for names, tokens in (("a", 10), ("L", 100), ("b", 10)):
            requests.append(await waits(batcher, names, tokens))
        worker.go.set()
        await asyncio.gather(*requests)
        return worker.batches

    assert run(scenario) == ["0", "a", "L", "b"]


def test_a_long_document_is_read_in_pieces_between_which_others_have_their_turn():
    async def scenario(batcher, worker):
        long = await begun(batcher, worker, "abcdefghijkl")
        short = await waits(batcher, "xy")
        worker.go.set()
        assert await asyncio.gather(long, short) == [["abcdefghijkl"], ["xy"]]
        return worker.batches

    assert run(scenario) == ["abcd", "exfy", "ghij", "kl"]


def test_a_piece_holds_several_short_segments():
    async def scenario(batcher, worker):
        worker.go.set()
        text = "abcdefghijklmnopqrstuvwxyz"
        assert await batcher(jobs(text, tokens=2)) == [text]
        return worker.batches

    assert run(scenario) == ["abcdefghijklmnopqrst", "uvwxyz"]


def test_an_abandoned_long_document_is_read_no_further():
    async def scenario(batcher, worker):
        long = await begun(batcher, worker, "a" * 1000)
        short = await waits(batcher, "x")
        long.cancel()
        await asyncio.sleep(0.01)
        worker.go.set()
        assert await short == ["x"]
        return worker.batches

    assert run(scenario) == ["aaaa", "x"]


def test_what_nobody_waits_for_is_not_read():
    async def scenario(batcher, worker):
        first = await begun(batcher, worker)
        stays = await waits(batcher, "c")
        left = [await waits(batcher, "a b") for _ in range(9)]
        for task in left:
            task.cancel()
        await asyncio.wait(left)
        worker.go.set()
        assert await first == ["0"] and await stays == ["c"]
        return worker.batches, len(batcher.waiting)

    assert run(scenario) == (["0", "c"], 0)


def test_a_failure_is_told_to_all_that_were_read_together_and_to_no_other():
    async def scenario(batcher, worker):
        requests = [await begun(batcher, worker)]
        for name in ("a!cdefgh", "x"):
            requests.append(await waits(batcher, name))
        worker.go.set()
        first, *failed = await asyncio.gather(*requests, return_exceptions=True)
        assert first == ["0"] and [str(error) for error in failed] == ["bad"] * 2
        return await batcher(jobs("d")), worker.batches

    assert run(scenario) == (["d"], ["0", "ax!c", "d"])
