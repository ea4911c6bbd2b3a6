"""wordchipper: encoding with OpenAI's vocabularies, from files that we put into its cache.

Otherwise it would download them; offline, it treats an empty file as a vocabulary of 256 bytes.
"""

DISTRIBUTION = "wordchipper"
VOCABS = ("r50k_base", "cl100k_base", "o200k_base")


def list_out(job):
    tokenizer = _load(job)
    one = tokenizer.encode

    def call(texts):
        if job.shape == "batch":
            return tokenizer.encode_batch(texts)
        return [one(text) for text in texts]

    return call, list


encode = list_out  # one call per string; it has no safety check


def first_ids(job):
    return lambda: _load(job), lambda tokenizer: [tokenizer.encode(job.probe)]


def decode_list(job):
    one = _load(job).decode
    return lambda batch: [one(ids) for ids in batch], list


def _load(job):
    import os
    import shutil
    from pathlib import Path

    folder = Path(job.cache) / "wordchipper"
    path = folder / "io.crates.wordchipper" / "openai" / job.vocab / f"{job.vocab}.tiktoken"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        shutil.copyfile(job.rank_file, part)
        part.replace(path)
    os.environ["XDG_CACHE_HOME"] = str(folder)
    import wordchipper

    return wordchipper.Tokenizer.from_pretrained(f"openai:{job.vocab}")
