"""splintr-rs: encoding with a rank file and a pattern. Threads by RAYON_NUM_THREADS.

Its regex engine lacks possessive repeats; it has its own spellings of the published patterns.
"""

DISTRIBUTION = "splintr-rs"

_PATTERNS = {
    "gpt2": "GPT2_PATTERN",
    "cl100k": "CL100K_BASE_PATTERN",
    "o200k": "O200K_BASE_PATTERN",
    "llama3": "LLAMA3_PATTERN",
    "qwen2": "QWEN2_PATTERN",
}


def list_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode_ordinary

    def call(texts):
        if job.shape == "batch":
            return tokenizer.encode_batch(texts)
        return [one(text) for text in texts]

    return call, list


def array_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode_flat

    def call(texts):
        if job.shape == "batch":
            return [tokenizer.encode_batch_flat(texts)[0]]
        return [one(text) for text in texts]

    return call, list


def decode_list(job):
    one = _load(job).decode_lossy
    return lambda batch: [one(ids) for ids in batch], list


def load_ranks(job):
    import splintr  # noqa: F401

    return lambda: _load(job), lambda tokenizer: [tokenizer.encode_ordinary(job.probe)]


def _load(job):
    import splintr

    known = None if job.own_pattern else _PATTERNS.get(job.pattern_name)
    return splintr.Tokenizer(job.rank_file, getattr(splintr, known) if known else job.pattern)
