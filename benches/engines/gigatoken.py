"""gigatoken: trains from a file with a separator, GPT-2's pattern only; encodes known patterns.

It splits the file at the separator, which is not counted. Threads by RAYON_NUM_THREADS.
"""

DISTRIBUTION = "gigatoken"
IMPORTS = ("gigatoken", "numpy")

_TIES = {"smallest-ids": "raw_token_ids", "huggingface": "huggingface"}


def count(job):
    """Train without merges: it counts, and prints the number of distinct pre-tokens."""
    import os
    import re
    import tempfile

    import gigatoken

    output = tempfile.TemporaryFile()

    def call():
        stdout = os.dup(1)
        os.dup2(output.fileno(), 1)
        try:
            gigatoken.train_bpe(job.corpus, 256, [], separator=job.separator.encode())
        finally:
            os.dup2(stdout, 1)

    def answer(_):
        output.seek(0)
        return [re.search(rb"([0-9]+) unique words", output.read())[1]]

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


def list_out(job):
    tokenizer = _load(job)
    one = tokenizer.backend.encode

    def call(texts):
        if job.shape == "batch" or job.threads > 1:
            return tokenizer.encode_batch_list(texts, parallel=job.threads > 1)
        return [one(text).tolist() for text in texts]

    return call, list


def encode(job):
    """It recognizes special tokens, which the text does not contain.

    Its own call has no safety check; `as_tiktoken()` has one, and takes three times as long.
    """
    import gigatoken

    load = gigatoken.Tokenizer.from_tiktoken
    one = load(job.rank_file, job.pattern_name, job.special_tokens).encode
    return lambda texts: [one(text).tolist() for text in texts], list


def array_out(job):
    tokenizer = _load(job)
    one = tokenizer.backend.encode

    def call(texts):
        if job.shape == "batch" or job.threads > 1:
            return tokenizer.encode_batch(texts, parallel=job.threads > 1)
        return [one(text) for text in texts]

    return call, _flat


def files_out(job):
    tokenizer = _load(job)

    def call(paths):
        import gigatoken

        source = gigatoken.TextFileSource(paths, separator=job.separator)
        return tokenizer.encode_files(source, parallel=job.threads > 1)

    return call, _flat


def decode_list(job):
    one = _load(job).decode
    return lambda batch: [one(ids).decode(errors="replace") for ids in batch], list


def decode_array(job):
    one = _load(job).decode
    return lambda batch: [one(ids) for ids in batch], list


def load_ranks(job):
    import gigatoken

    def call():
        return gigatoken.Tokenizer.from_tiktoken(job.rank_file, job.pattern_name)

    return call, lambda tokenizer: [tokenizer.backend.encode(job.probe)]


first_ids = load_ranks


def load_json(job):
    from pathlib import Path

    import gigatoken

    def call():
        return gigatoken.Tokenizer.from_json(Path(job.tokenizer_json).read_bytes())

    return call, lambda tokenizer: [tokenizer.backend.encode(job.probe)]


def _flat(result):
    """One awkward array for all texts, or an array for each."""
    if isinstance(result, list):
        return result
    import awkward

    return [awkward.flatten(result).to_numpy()]


def _load(job):
    """Load by the name of a scheme, or from tokenizer.json."""
    from pathlib import Path

    import gigatoken

    if job.pattern_name in ("gpt2", "cl100k", "o200k"):
        return gigatoken.Tokenizer.from_tiktoken(job.rank_file, job.pattern_name)
    return gigatoken.Tokenizer.from_json(Path(job.tokenizer_json).read_bytes())
