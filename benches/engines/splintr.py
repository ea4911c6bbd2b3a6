"""splintr-rs: encoding with a rank file and a pattern. Threads by RAYON_NUM_THREADS.

Its regex engine lacks possessive repeats; it has its own spellings of the published patterns.
"""

DISTRIBUTION = "splintr-rs"
IMPORTS = ("splintr",)

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


def encode(job):
    """It recognizes special tokens, which the text does not contain; it has no safety check."""
    one = _load(job, job.special_tokens).encode
    return lambda texts: [one(text) for text in texts], list


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


def first_ids(job):
    """Its built-in vocabularies load faster than rank files."""
    import splintr

    def call():
        return splintr.Tokenizer.from_pretrained(job.vocab)

    return call, lambda tokenizer: [tokenizer.encode(job.probe)]


def _load(job, special_tokens=None):
    import splintr

    known = None if job.own_pattern else _PATTERNS.get(job.pattern_name)
    pattern = getattr(splintr, known) if known else job.pattern
    return splintr.Tokenizer(job.rank_file, pattern, special_tokens)
