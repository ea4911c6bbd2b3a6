"""gigatoken: `encode_files`, which reads all three formats, and numpy to write the ids."""

DISTRIBUTION = "gigatoken"


def tokenize(job):
    from pathlib import Path

    import numpy as np

    encoded = load(job).encode_files(source(job)).layout
    out = Path(job.out)
    encoded.content.data.astype(job.dtype).tofile(out / "tokens.bin")
    np.asarray(encoded.offsets).tofile(out / "offsets.bin")


def source(job):
    import gigatoken

    kinds = {"parquet": gigatoken.ParquetFileSource}
    return kinds.get(job.format, gigatoken.JsonlFileSource)(job.files)


def load(job):
    import gigatoken

    return gigatoken.Tokenizer.from_tiktoken(job.rank_file, job.scheme)


def documents(job):
    from pathlib import Path

    import numpy as np

    out = Path(job.out)
    yield (
        np.fromfile(out / "tokens.bin", job.dtype),
        np.diff(np.fromfile(out / "offsets.bin", "i8")),
    )
