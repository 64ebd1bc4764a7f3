"""How many functions and modules of ours a common call goes through."""

import os
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

import sigmascale as ss

PACKAGE = str(Path(ss.__file__).parent) + os.sep


def walk(call):
    """Return the names of our functions by module, in a second call.

    Comprehensions and lambdas do not count; what is computed once, such as an import,
    is done by the first call.
    """
    found = defaultdict(set)

    def note(frame, event, _):
        code = frame.f_code
        ours = code.co_filename.startswith(PACKAGE)
        if event == "call" and ours and not code.co_name.startswith("<"):
            found[code.co_filename.removeprefix(PACKAGE)].add(code.co_qualname)

    call()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return dict(found)


def assert_walk(call, *, functions, modules):
    found = walk(call)
    names = [f"{module}:{name}" for module in found for name in found[module]]
    assert len(names) <= functions, sorted(names)
    assert len(found) <= modules, sorted(found)


def test_validate_goes_through_few_functions_in_few_modules():
    rng = np.random.default_rng(1)
    u = rng.uniform(1, 2, 1000)
    error, features = (
        rng.normal(scale=u),
        {"a": rng.random(1000), "b": rng.random(1000)},
    )
    assert_walk(lambda: ss.validate(error, u, features), functions=202, modules=20)
