"""fastokens: encoding. Threads by RAYON_NUM_THREADS. Special tokens are split, not recognized.

Its fast path recognizes patterns by their published spelling, so it gets the name of an encoding or
a tokenizer.json.
"""

DISTRIBUTION = "fastokens"
IMPORTS = ("fastokens",)

_PLAIN = {"split_special_tokens": True}


def list_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode_ordinary

    def call(texts):
        if job.shape == "batch":
            return [encoding.ids for encoding in tokenizer.encode_batch(texts, **_PLAIN)]
        return [one(text).ids for text in texts]

    return call, list


def encode(job):
    """It recognizes special tokens, which the text does not contain; it has no safety check."""
    one = _load(job).encode
    return lambda texts: [one(text).ids for text in texts], list


def array_out(job):
    flat = _load(job).encode_batch_flat

    def call(texts):
        if job.shape == "batch":
            return [flat(texts, **_PLAIN)[0]]
        return [flat([text], split_special_tokens=True)[0] for text in texts]

    return call, list


def decode_list(job):
    one = _load(job).decode
    return lambda batch: [one(ids) for ids in batch], list


def load_ranks(job):
    import fastokens  # noqa: F401

    return lambda: _load(job), lambda tokenizer: [tokenizer.encode_ordinary(job.probe).ids]


first_ids = load_ranks


def load_json(job):
    import fastokens

    def call():
        return fastokens.Tokenizer.from_file(job.tokenizer_json)

    return call, lambda tokenizer: [tokenizer.encode_ordinary(job.probe).ids]


def _load(job):
    import fastokens

    if job.own_pattern:
        return fastokens.Tokenizer.from_tiktoken(job.rank_file, pattern=job.pattern)
    if job.vocab in ("cl100k_base", "o200k_base"):
        return fastokens.Tokenizer.from_tiktoken(job.rank_file, encoding=job.vocab)
    return fastokens.Tokenizer.from_file(job.tokenizer_json)
