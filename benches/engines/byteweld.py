"""byteweld: counts and trains from a file (`byteweld:iterator`: an iterator), encodes, decodes."""

DISTRIBUTION = "byteweld"

_PLAIN = {"disallowed_special": ()}
_RECIPES = {"smallest-ids": "rustbpe", "huggingface": "huggingface", "ck": "ck"}


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


def array_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode_to_numpy

    def call(texts):
        if job.shape == "batch" or job.threads > 1:
            return [tokenizer.encode_ragged(texts, num_threads=job.threads, **_PLAIN)[0]]
        return [one(text, **_PLAIN) for text in texts]

    return call, list


def files_out(job):
    tokenizer = _load(job)

    def call(paths):
        how = {"separator": job.separator, "num_threads": job.threads}
        return [tokenizer.encode_files(paths, **how, **_PLAIN)[0]]

    return call, list


def count_tokens(job):
    one = _load(job).count
    return lambda texts: [one(text, **_PLAIN) for text in texts], lambda numbers: [numbers]


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


def _load(job):
    import byteweld

    return byteweld.load(job.rank_file, pattern=job.pattern, special_tokens={})


def _source(job):
    how = {"pattern": job.pattern, "num_threads": job.threads}
    if job.variant == "iterator":
        return job.documents(), how
    return job.corpus, how | {"separator": job.separator, "document_unit": "file"}
