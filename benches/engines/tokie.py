"""tokie: encoding with a tokenizer.json, also from files. Threads by RAYON_NUM_THREADS."""

DISTRIBUTION = "tokie"


def list_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode

    def call(texts):
        if job.shape == "batch":
            return [part.ids for part in tokenizer.encode_batch(texts, add_special_tokens=False)]
        return [one(text, add_special_tokens=False).ids for text in texts]

    return call, list


encode = list_out  # one call per string; it has no safety check


def array_out(job):
    flat = _load(job).encode_batch_flat

    def call(texts):
        if job.shape == "batch":
            return [flat(texts, add_special_tokens=False)[0]]
        return [flat([text], add_special_tokens=False)[0] for text in texts]

    return call, list


def files_out(job):
    tokenizer = _load(job)
    separator = job.separator.encode()
    return lambda paths: [tokenizer.encode_files(paths, separator)[0]], list


def count_tokens(job):
    one = _load(job).count_tokens
    return lambda texts: [one(text) for text in texts], lambda numbers: [numbers]


def decode_list(job):
    """It returns None for text that is not UTF-8."""
    one = _load(job).decode
    return lambda batch: [one(ids) or "" for ids in batch], list


def load_json(job):
    import tokie  # noqa: F401

    def answer(tokenizer):
        return [tokenizer.encode(job.probe, add_special_tokens=False).ids]

    return lambda: _load(job), answer


def first_ids(job):
    """Its own binary format loads fastest; the first run writes the file."""
    import tokie

    saved = f"{job.tokenizer_json}.tkz"

    def call():
        try:
            return tokie.Tokenizer.from_file(saved)
        except tokie.TokieError:
            _load(job).save(saved)
            return tokie.Tokenizer.from_file(saved)

    def answer(tokenizer):
        return [tokenizer.encode(job.probe, add_special_tokens=False).ids]

    return call, answer


def _load(job):
    import tokie

    return tokie.Tokenizer.from_json(job.tokenizer_json)
