"""tiktoken: the right ids; its time is not compared."""

DISTRIBUTION = "tiktoken"


def tokenize(job):
    import itertools
    import json
    from pathlib import Path

    import numpy as np
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    ranks = load_tiktoken_bpe(job.rank_file)
    encoding = tiktoken.Encoding(
        job.vocab, pat_str=job.pattern, mergeable_ranks=ranks, special_tokens={}
    )
    out = Path(job.out)
    with (out / "tokens.bin").open("wb") as tokens, (out / "lengths.bin").open("wb") as lengths:
        for file in job.files:
            with Path(file).open("rb") as lines:
                while batch := [json.loads(line)["text"] for line in itertools.islice(lines, 4096)]:
                    found = encoding.encode_ordinary_batch(batch, num_threads=job.threads)
                    np.array([len(ids) for ids in found], "i8").tofile(lengths)
                    np.fromiter(itertools.chain.from_iterable(found), "u4").tofile(tokens)


def documents(job):
    from pathlib import Path

    import numpy as np

    out = Path(job.out)
    yield np.fromfile(out / "tokens.bin", "u4"), np.fromfile(out / "lengths.bin", "i8")
