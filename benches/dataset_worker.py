"""One run of a pipeline in a new process, or the digest of what it wrote.

Started by dataset.py as `python -P dataset_worker.py PIPELINE_FILE tokenize|digest JOB_JSON`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from types import SimpleNamespace


def main() -> None:
    path, what, job_json = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("pipeline", path)
    assert spec is not None and spec.loader is not None
    # By its name, so that processes that it starts can import it.
    pipeline = sys.modules["pipeline"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pipeline)
    job = SimpleNamespace(**json.loads(job_json))
    if what == "tokenize":
        pipeline.tokenize(job)
        return
    ids, lengths = hashlib.sha256(), hashlib.sha256()
    num_documents = num_tokens = 0
    for some_ids, some_lengths in pipeline.documents(job):
        ids.update(some_ids.astype("<u4").tobytes())
        lengths.update(some_lengths.astype("<i8").tobytes())
        num_documents += len(some_lengths)
        num_tokens += len(some_ids)
    digest = hashlib.sha256(ids.digest() + lengths.digest()).hexdigest()
    print(json.dumps({"digest": digest[:16], "documents": num_documents, "tokens": num_tokens}))


if __name__ == "__main__":
    main()
