"""The method of Megatron-LM's tools/preprocess_data_fast.py, written anew.

A file is encoded whole by gigatoken; processes convert slices of the result to the dtype of the
file; the main process writes them as `.bin`, and the lengths as `.idx`. Megatron starts 128
processes, which would be slower on two cores; here there are as many as cores.
"""

DISTRIBUTION = "gigatoken"


def tokenize(job):
    import itertools
    import multiprocessing
    from pathlib import Path

    import gigatoken
    import numpy as np

    tokenizer = gigatoken.Tokenizer.from_tiktoken(job.rank_file, job.scheme)
    kind = gigatoken.ParquetFileSource if job.format == "parquet" else gigatoken.JsonlFileSource
    dtype = _dtype(job)
    for number, file in enumerate(job.files):
        encoded = tokenizer.encode_files(kind([file]))
        cuts = np.linspace(0, len(encoded), job.threads + 1, dtype=int).tolist()
        slices = [(encoded[a:b], dtype) for a, b in itertools.pairwise(cuts)]
        with multiprocessing.Pool(job.threads) as pool:
            parts = pool.map(_flat, slices)
        prefix = Path(job.out) / f"{number:03}_text_document"
        with prefix.with_suffix(".bin").open("wb") as out:
            for ids, _ in parts:
                out.write(ids.tobytes())
        _write_index(prefix.with_suffix(".idx"), np.concatenate([n for _, n in parts]), dtype)


def _dtype(job):
    return "uint16" if job.vocab_size < 65500 else "int32"


def _flat(part):
    import awkward
    import numpy as np

    documents, dtype = part
    lengths = np.asarray(awkward.num(documents, axis=1))
    return np.asarray(awkward.flatten(documents), dtype=dtype), lengths


def _write_index(path, lengths, dtype):
    import struct

    import numpy as np

    code, size = {"uint16": (8, 2), "int32": (4, 4)}[dtype]
    starts = (np.cumsum(lengths) - lengths) * size
    with path.open("wb") as out:
        out.write(b"MMIDIDX\x00\x00" + struct.pack("<QB", 1, code))
        out.write(struct.pack("<QQ", len(lengths), len(lengths) + 1))
        out.write(lengths.astype("<i4").tobytes())
        out.write(starts.astype("<i8").tobytes())
        out.write(np.arange(len(lengths) + 1, dtype="<i8").tobytes())


def documents(job):
    from pathlib import Path

    import numpy as np

    for path in sorted(Path(job.out).glob("*.idx")):
        index = path.read_bytes()
        count = int.from_bytes(index[18:26], "little")
        ids = np.fromfile(path.with_suffix(".bin"), _dtype(job))
        yield ids, np.frombuffer(index, "<i4", count, 34)
