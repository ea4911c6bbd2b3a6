"""gigatoken: trains from a file with a separator, GPT-2's pattern only; encodes known patterns.

It cuts the file at the separator, which is not counted. Threads by RAYON_NUM_THREADS.
"""

DISTRIBUTION = "gigatoken"

_TIES = {"smallest-ids": "raw_token_ids", "huggingface": "huggingface"}


def count(job):
    """It counts when it trains: no merges, and it prints how many pre-tokens are distinct."""
    import os
    import re
    import tempfile

    import gigatoken

    said = tempfile.TemporaryFile()

    def call():
        stdout = os.dup(1)
        os.dup2(said.fileno(), 1)
        try:
            gigatoken.train_bpe(job.corpus, 256, [], separator=job.separator.encode())
        finally:
            os.dup2(stdout, 1)

    def answer(_):
        said.seek(0)
        return [re.search(rb"([0-9]+) unique words", said.read())[1]]

    return call, answer


def train(job):
    import gigatoken

    def call():
        return gigatoken.train_bpe(
            job.corpus,
            job.vocab_size,
            [],
            tie_breaking=_TIES[job.tie_rule],
            separator=job.separator.encode(),
        )

    def answer(result):
        tokens, _ = result
        return [tokens[token_id] for token_id in sorted(tokens)][256:]

    return call, answer


def encode(job):
    import gigatoken

    tokenizer = gigatoken.Tokenizer.from_tiktoken(job.rank_file, job.pattern_name)

    def call(texts):
        return tokenizer.backend.encode_batch_list(texts, parallel=job.threads > 1)

    return call, list
