"""iree-tokenizer: encoding. OpenAI's vocabularies as rank files, others as tokenizer.json."""

DISTRIBUTION = "iree-tokenizer"


def list_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode

    def call(texts):
        if job.shape == "batch":
            return tokenizer.encode_batch(texts)
        return [one(text) for text in texts]

    return call, list


encode = list_out  # one call per string; it has no safety check


def array_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode_to_array

    def call(texts):
        if job.shape == "batch":
            return [tokenizer.encode_batch_to_array(texts)[0]]
        return [one(text) for text in texts]

    return call, list


def decode_list(job):
    one = _load(job).decode
    return lambda batch: [one(ids) for ids in batch], list


def load_ranks(job):
    import iree.tokenizer  # noqa: F401

    return lambda: _load(job), lambda tokenizer: [tokenizer.encode(job.probe)]


first_ids = load_ranks


def load_json(job):
    from iree.tokenizer import Tokenizer

    def call():
        return Tokenizer.from_file(job.tokenizer_json)

    return call, lambda tokenizer: [tokenizer.encode(job.probe)]


def _load(job):
    from iree.tokenizer import Tokenizer

    if job.vocab in ("r50k_base", "cl100k_base", "o200k_base"):
        return Tokenizer.from_tiktoken(job.rank_file, job.vocab)
    return Tokenizer.from_file(job.tokenizer_json)
