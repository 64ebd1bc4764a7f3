"""The process that works for the app: it cannot answer out of step."""

import asyncio
import sys

from sigmascale.app.worker import Worker
from sigmascale.exceptions import InvalidInputError

# Answers an order by the line that it brings; by one that is right if it brings none.
FAKE = """
import json, sys
for order in map(json.loads, sys.stdin):
    right = json.dumps({"number": order["number"], "result": "right"})
    print(order["with"].get("line", right), flush=True)
"""
GARBLED = [
    *("", "no JSON", "[]", "[" * 900, "x" * 2000),
    '{"number": 2, "result": "' + "x" * 2000 + '"}',  # longer than is allowed
    '{"result": "of no order"}',
    '{"number": 1, "result": "of another order"}',
    '{"number": "2", "result": "of a number that is text"}',
]
TWO = '{"number": 2, "result": "right"}\n{"number": 9, "result": "left in the line"}'


def told(folder, program, *orders, stop=False):
    """Give orders to a program; return the result, or the code, of each."""

    async def work():
        worker = Worker(folder, (sys.executable, "-c", program), longest=1000)
        found = []
        for order in orders:
            going = asyncio.create_task(worker.do("x", **order))
            if stop:
                await asyncio.sleep(0.2)
                worker.stop()
            try:
                found.append((await going)["result"])
            except InvalidInputError as problem:
                found.append(problem.code)
        await worker.end()
        return found

    return asyncio.run(work())


def test_an_answer_that_is_too_long_malformed_or_out_of_step_ends_the_process(tmp_path):
    for line in GARBLED:
        found = told(tmp_path, FAKE, {}, {"line": line}, {}, {})
        assert found == ["right", "garbled", "right", "right"], line
    found = told(tmp_path, FAKE, {}, {"line": TWO}, {}, {})
    assert found == ["right", "right", "garbled", "right"]


def test_a_process_that_ends_or_is_stopped_is_told_and_replaced(tmp_path):
    ends = "import sys; sys.stdin.readline()"
    assert told(tmp_path, ends, {}, {}) == ["crashed", "crashed"]
    waits = "import sys; sys.stdin.read()"
    assert told(tmp_path, waits, {}, {}, stop=True) == ["stopped", "stopped"]
