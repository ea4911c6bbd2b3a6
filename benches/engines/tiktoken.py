"""tiktoken: encoding only. On one thread its batch call only adds overhead, so it gets one text
at a time."""

DISTRIBUTION = "tiktoken"
IMPORTS = ("tiktoken", "numpy")


def list_out(job):
    encoding = _load(job)
    one = encoding.encode_ordinary

    def call(texts):
        if job.threads > 1:
            return encoding.encode_ordinary_batch(texts, num_threads=job.threads)
        return [one(text) for text in texts]

    return call, list


def encode(job):
    """With its safety check: text that contains a special token is an error."""
    one = _load(job, job.special_tokens).encode
    return lambda texts: [one(text) for text in texts], list


def array_out(job):
    one = _load(job).encode_to_numpy
    return lambda texts: [one(text, disallowed_special=()) for text in texts], list


def files_out(job):
    from pathlib import Path

    one = _load(job).encode_to_numpy

    def call(paths):
        documents = Path(paths[0]).read_bytes().decode().split(job.separator)
        return [one(document, disallowed_special=()) for document in documents]

    return call, list


def count_tokens(job):
    one = _load(job).encode_ordinary
    return lambda texts: [len(one(text)) for text in texts], lambda numbers: [numbers]


def decode_list(job):
    one = _load(job).decode
    return lambda batch: [one(ids) for ids in batch], list


def decode_array(job):
    """It accepts arrays as sequences."""
    one = _load(job).decode_bytes
    return lambda batch: [one(ids) for ids in batch], list


def load_ranks(job):
    import tiktoken  # noqa: F401

    return lambda: _load(job), lambda encoding: [encoding.encode_ordinary(job.probe)]


def load_json(job):
    """It does not read tokenizer.json; this computes the right ids."""
    return load_ranks(job)


def first_ids(job):
    """With its own reader, and without its cache of downloads."""
    import os

    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    os.environ["TIKTOKEN_CACHE_DIR"] = ""

    def call():
        ranks = load_tiktoken_bpe(job.rank_file)
        how = {"pat_str": job.pattern, "mergeable_ranks": ranks, "special_tokens": {}}
        return tiktoken.Encoding("bench", **how)

    return call, lambda encoding: [encoding.encode(job.probe)]


def _load(job, special_tokens=None):
    import tiktoken

    how = {"pat_str": job.pattern, "mergeable_ranks": job.ranks()}
    return tiktoken.Encoding("bench", **how, special_tokens=special_tokens or {})
