"""The shortest request is tokenised next, and no short one waits for a long one."""

import asyncio
import threading

import pytest

from docjax.serve.turns import SHORT, Turns


class Worker:
    """Notes the first letters of what it is given; that of a Z waits until `go`."""

    def __init__(self):
        self.begun, self.go = "", threading.Event()

    def __call__(self, text: str) -> int:
        self.begun += text[0]
        assert text[0] != "Z" or self.go.wait(10)
        if text[0] == "!":
            raise ValueError("bad")
        return len(text)


def run(scenario):
    """Runs `scenario(ask, worker)`; `ask` gives a task for a text of some length."""

    async def both():
        worker, turns = Worker(), Turns()

        async def ask(letter: str, length: int) -> asyncio.Task:
            task = asyncio.create_task(turns(worker, letter * length))
            await asyncio.sleep(0.01)
            return task

        try:
            return await scenario(ask, worker), turns
        finally:
            worker.go.set()
            turns.close()

    return asyncio.run(both())


def test_the_shortest_is_next():
    async def scenario(ask, worker):
        lengths = dict(Z=5, a=40, b=30, c=30, d=20)
        tasks = [await ask(letter, length) for letter, length in lengths.items()]
        worker.go.set()
        assert await asyncio.gather(*tasks) == [5, 40, 30, 30, 20]
        return worker.begun

    assert run(scenario)[0] == "Zdbca"


def test_a_short_one_waits_for_no_long_one():
    async def scenario(ask, worker):
        long = [await ask(letter, SHORT) for letter in "ZZ"]
        assert await (await ask("a", SHORT - 2)) == SHORT - 2
        worker.go.set()
        return await asyncio.gather(*long)

    assert run(scenario)[0] == [SHORT] * 2


def test_what_nobody_waits_for_any_more_is_dropped_and_not_begun():
    async def scenario(ask, worker):
        tasks = [await ask(letter, SHORT) for letter in "Zab"]
        for task in tasks[:2]:  # one has begun
            task.cancel()
        await asyncio.wait(tasks[:2])
        worker.go.set()
        assert await tasks[2] == SHORT
        return worker.begun

    begun, turns = run(scenario)
    assert begun == "Zb" and not turns.threads[1].works


def test_a_failure_is_told_to_who_asked():
    async def scenario(ask, worker):
        with pytest.raises(ValueError, match="bad"):
            await (await ask("!", 1))
        return await (await ask("a", 1))

    assert run(scenario)[0] == 1
