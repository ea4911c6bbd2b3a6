"""Ours. Trains from a file; the variant `iterator` trains from an iterator of documents."""

DISTRIBUTION = "byteweld"

_RECIPES = {"smallest-ids": "rustbpe", "huggingface": "huggingface"}


def train(job):
    import byteweld

    def call():
        how = {"separator": job.separator, "document_unit": "file"}
        if job.variant == "iterator":
            how = {}
        return byteweld.train(
            job.documents() if job.variant == "iterator" else job.corpus,
            vocab_size=job.vocab_size,
            recipe=_RECIPES[job.tie_rule],
            pattern=job.pattern,
            num_threads=job.threads,
            **how,
        )

    def answer(tokenizer):
        tokens = tokenizer.vocab.tokens
        return [tokens[token_id] for token_id in sorted(tokens)][256:]

    return call, answer


def encode(job):
    import byteweld

    tokenizer = byteweld.load(job.rank_file, pattern=job.pattern, special_tokens={})

    def call(texts):
        if job.threads > 1:
            return tokenizer.encode_ordinary_batch(texts, num_threads=job.threads)
        return [tokenizer.encode_ordinary(text) for text in texts]

    return call, list
