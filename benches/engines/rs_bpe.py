"""rs-bpe: encoding with its two built-in vocabularies."""

DISTRIBUTION = "rs-bpe"
VOCABS = ("cl100k_base", "o200k_base")


def list_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode

    def call(texts):
        if job.shape == "batch" and job.threads > 1:
            return tokenizer.encode_batch_parallel(texts, None)[0]
        return [one(text) for text in texts]

    return call, list


encode = list_out  # one call per string; it has no safety check


def count_tokens(job):
    one = _load(job).count
    return lambda texts: [one(text) for text in texts], lambda numbers: [numbers]


def decode_list(job):
    one = _load(job).decode
    return lambda batch: [one(ids) for ids in batch], list


def first_ids(job):
    return lambda: _load(job), lambda tokenizer: [tokenizer.encode(job.probe)]


def _load(job):
    from rs_bpe.bpe import openai

    return getattr(openai, job.vocab)()
