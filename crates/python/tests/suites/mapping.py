"""The tests that CPython has for mappings (`test.mapping_tests`), on dicts in a pool.

    python crates/python/tests/suites/mapping.py

`REASONS` has the tests that a persistent dict does not pass, and why. One that passes is an error.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
import unittest
from pathlib import Path
from test import mapping_tests
from typing import Any

import indelible

TEXT = "keys are text: the test uses others"
REASONS: dict[str, str] = {
    "test_clear": TEXT,
    "test_copy": TEXT,
    "test_eq": TEXT,
    "test_fromkeys": "a pool makes a dict, in an object with a name: the class has no `fromkeys`",
    "test_getitem": TEXT,
    "test_items": TEXT,
    "test_mutatingiteration": TEXT,
    "test_pop": TEXT,
    "test_repr": "it shows the name and the number of items, and no items",
    "test_repr_deep": TEXT,
    "test_setdefault": "a list comes out as a copy that refuses changes, which no psync would store",
    "test_update": TEXT,
    "test_values": TEXT,
}

numbers = itertools.count()
folder = tempfile.TemporaryDirectory(dir="/dev/shm")
pool = indelible.open(Path(folder.name) / "pool.pmo", 1 << 30)


def made(*given: Any, **named: Any) -> indelible.Dict:
    """A new dict."""
    values = pool.dict(f"d{next(numbers)}", size=1 << 16)
    values.update(*given, **named)
    return values


class OnDict(mapping_tests.TestHashMappingProtocol):
    type2test = staticmethod(made)


def load_tests(loader: unittest.TestLoader, _tests: object, _pattern: object) -> unittest.TestSuite:
    return loader.loadTestsFromTestCase(OnDict)


if __name__ == "__main__":
    result = unittest.TextTestRunner(verbosity=1).run(
        load_tests(unittest.defaultTestLoader, None, None)
    )
    failed = {
        case.id().rsplit(".", 1)[1]: text for case, text in [*result.failures, *result.errors]
    }
    print(f"{result.testsRun} tests, {result.testsRun - len(failed)} passed, {len(failed)} not:")
    for name in failed:
        print(f"- {name}: {REASONS.get(name, 'UNEXPECTED')}")
    sys.exit(failed.keys() != REASONS.keys())
