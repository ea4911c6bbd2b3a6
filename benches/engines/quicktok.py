"""quicktok-v1: encoding with its built-in vocabularies."""

DISTRIBUTION = "quicktok-v1"
IMPORTS = ("quicktok", "numpy")
VOCABS = ("cl100k_base", "o200k_base", "llama3", "qwen")


def list_out(job):
    one = _load(job).encode_ordinary
    return lambda texts: [one(text) for text in texts], list


def encode(job):
    """With its safety check, which is tiktoken's."""
    one = _load(job).encode
    return lambda texts: [one(text) for text in texts], list


def array_out(job):
    """Only its batch call returns arrays."""
    batch = _load(job).encode_batch

    def call(texts):
        if job.shape == "batch":
            return [batch(texts, job.threads)[0]]
        return [batch([text], 1)[0] for text in texts]

    return call, list


def count_tokens(job):
    one = _load(job).count
    return lambda texts: [one(text) for text in texts], lambda numbers: [numbers]


def decode_list(job):
    one = _load(job).decode
    return lambda batch: [one(ids) for ids in batch], list


def first_ids(job):
    return lambda: _load(job), lambda tokenizer: [tokenizer.encode(job.probe)]


def _load(job):
    import quicktok

    return quicktok.Tokenizer("qwen3" if job.vocab == "qwen" else job.vocab, "")
