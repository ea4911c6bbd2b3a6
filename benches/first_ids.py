"""From a started interpreter to the first ids: import a library, load a vocabulary, encode a line.

Started by worker.py as `python -P first_ids.py ENGINE_FILE JOB`; prints what worker.py prints. The
clock starts in a bare interpreter: a module that we imported first would cost the library nothing.
So the job is a Python literal, not JSON, and the engine is read without importlib.
"""

import sys
import time  # built in, like sys


def main() -> None:
    """Run once and print the result."""
    engine_file, literal = sys.argv[1:]
    engine = {"__name__": "engine"}
    with open(engine_file, encoding="utf-8") as file:  # noqa: PTH123 - pathlib is not imported yet
        exec(compile(file.read(), engine_file, "exec"), engine)
    job = type(sys.implementation)(**eval(literal))  # a SimpleNamespace
    cpu, wall = time.process_time(), time.perf_counter()
    call, answer = engine["first_ids"](job)
    ids = answer(call())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    sys.path.insert(0, __file__.rpartition("/")[0])
    import json

    import worker

    passes = {"start": {"wall": wall, "cpu": cpu}}
    result = {"passes": passes, "peak": worker.peak_bytes(), "digest": worker.digest_ids(ids)}
    print(json.dumps(result))


main()
