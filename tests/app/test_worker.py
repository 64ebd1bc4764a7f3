"""The process that works for the app: it cannot answer out of step."""

import asyncio
import sys

import pytest

from sigmascale.app.worker import Worker
from sigmascale.exceptions import InvalidInputError

# Answers its orders as they say: with `line`, whatever it is, or with their number.
FAKE = """
import json, sys
for order in sys.stdin:
    order = json.loads(order)
    said = order["with"].get("line")
    right = json.dumps({"number": order["number"], "result": "right"})
    print(right if said is None else said, flush=True)
"""


def fake(folder, *lines, longest=1000):
    """Let a worker answer orders with lines; return the results, or the codes."""

    async def work():
        worker = Worker(folder, (sys.executable, "-c", FAKE), longest)
        found = []
        for line in lines:
            try:
                told = await worker.do("x", **({} if line is None else {"line": line}))
                found.append(told["result"])
            except InvalidInputError as problem:
                found.append(problem.code)
        await worker.end()
        return found

    return asyncio.run(work())


@pytest.mark.parametrize(
    "line",
    [
        "x" * 2000,  # longer than is allowed
        '{"number": 2, "result": "' + "x" * 2000 + '"}',
        "",
        "no JSON",
        "[]",
        '{"result": "of no order"}',
        '{"number": 1, "result": "of another order"}',
        '{"number": "2", "result": "of a number that is text"}',
        "[" * 900,
        '{"number": 2, "result": "right"}\n{"number": 3, "result": "too early"',
    ],
)
def test_an_answer_that_is_too_long_malformed_or_out_of_step_ends_the_process(
    line, tmp_path
):
    first, second, third, fourth = fake(tmp_path, None, line, None, None)
    assert first == "right"
    if "too early" in line:
        # the order is answered; what was left in the line is no answer to the next
        assert (second, third, fourth) == ("right", "garbled", "right")
    else:
        assert (second, third, fourth) == ("garbled", "right", "right")


def code_of(folder, program, *, stop):
    """Give an order to a program that does not answer; return what is told."""

    async def work():
        worker = Worker(folder, (sys.executable, "-c", program))
        await worker.warm_up()
        going = asyncio.create_task(worker.do("x"))
        if stop:
            await asyncio.sleep(0.2)
            worker.stop()
        with pytest.raises(InvalidInputError) as told:
            await going
        await worker.warm_up()  # which starts another
        await worker.end()
        return told.value.code

    return asyncio.run(work())


def test_a_process_that_ends_or_is_stopped_is_told_and_replaced(tmp_path):
    ends = "import sys; sys.stdin.readline()"
    assert code_of(tmp_path, ends, stop=False) == "crashed"
    assert code_of(tmp_path, "import sys; sys.stdin.read()", stop=True) == "stopped"
