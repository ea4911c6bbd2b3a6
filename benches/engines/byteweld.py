"""byteweld: counts and trains from a file (`byteweld:iterator`: an iterator), encodes, decodes.

`byteweld:avx2` is the same without AVX-512; `byteweld:parent` is another commit (run.py --parent).
"""

DISTRIBUTION = "byteweld"
IMPORTS = ("byteweld", "numpy")  # before a `fresh` process starts the clock

_PLAIN = {"disallowed_special": ()}
_RECIPES = {"smallest-ids": "rustbpe", "huggingface": "huggingface", "ck": "ck"}


def unavailable(variant):
    """Why a variant cannot run on this machine, or an empty string."""
    if variant != "avx2":
        return ""
    from byteweld import _native

    if not hasattr(_native, "limit_tier"):
        return "this build cannot limit its tier"
    if "avx512" not in _native.tiers():
        return "byteweld itself runs without AVX-512 here"
    return ""


def count(job):
    from byteweld import count  # names are imported on first use, which must not be timed

    def call():
        source, how = _source(job)
        return count(source, recipe="rustbpe", **how)

    return call, lambda counts: [b"%d" % len(counts)]


def train(job):
    from byteweld import RECIPES, train

    recipe = RECIPES[_RECIPES[job.tie_rule]]

    def call():
        source, how = _source(job)
        return train(source, vocab_size=job.vocab_size, recipe=recipe, **how)

    def answer(tokenizer):
        tokens = tokenizer.vocab.tokens
        return [tokens[token_id] for token_id in sorted(tokens)][recipe.minimum_size :]

    return call, answer


def list_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode_ordinary

    def call(texts):
        if job.shape == "batch":
            return tokenizer.encode_ordinary_batch(texts, num_threads=job.threads)
        return [one(text) for text in texts]

    return call, list


def encode(job):
    """With the safety check: text that contains a special token is an error."""
    one = _load(job, job.special_tokens).encode
    return lambda texts: [one(text) for text in texts], list


def array_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode_to_numpy

    def call(texts):
        if job.shape == "batch" or job.threads > 1:
            return [tokenizer.encode_ragged(texts, num_threads=job.threads, **_PLAIN)[0]]
        return [one(text, disallowed_special=()) for text in texts]

    return call, list


def files_out(job):
    tokenizer = _load(job)

    def call(paths):
        how = {"separator": job.separator, "num_threads": job.threads}
        return [tokenizer.encode_files(paths, **how, **_PLAIN)[0]]

    return call, list


def count_tokens(job):
    one = _load(job).count
    return (
        lambda texts: [one(text, disallowed_special=()) for text in texts],
        lambda numbers: [numbers],
    )


def decode_list(job):
    one = _load(job).decode
    return lambda batch: [one(ids) for ids in batch], list


def decode_array(job):
    one = _load(job).decode_bytes
    return lambda batch: [one(ids) for ids in batch], list


def load_ranks(job):
    return lambda: _load(job), lambda tokenizer: [tokenizer.encode_ordinary(job.probe)]


def load_json(job):
    import byteweld

    def call():
        return byteweld.load(job.tokenizer_json)

    return call, lambda tokenizer: [tokenizer.encode_ordinary(job.probe)]


def first_ids(job):
    """Load with a cache, which the first run fills. Each variant has its own."""
    import byteweld

    folder = f"{job.cache}/compiled-{job.variant or 'best'}"

    def call():
        how = {"pattern": job.pattern, "special_tokens": {}}
        return byteweld.load(job.rank_file, cache=folder, **how)

    return call, lambda tokenizer: [tokenizer.encode(job.probe)]


def _load(job, special_tokens=None):
    import byteweld

    if job.variant == "avx2":
        byteweld._native.limit_tier("avx2")
    return byteweld.load(job.rank_file, pattern=job.pattern, special_tokens=special_tokens or {})


def _source(job):
    how = {"pattern": job.pattern, "num_threads": job.threads}
    if job.variant == "iterator":
        return job.documents(), how
    return job.corpus, how | {"separator": job.separator, "document_unit": "file"}
