"""byteweld: the command `byteweld tokenize`, flat format; the ids are read back with numpy."""

DISTRIBUTION = "byteweld"


def tokenize(job):
    from byteweld.cli import main

    line = ["tokenize", *job.files, "--tokenizer", job.rank_file, "--out", job.out]
    code = main([*line, "--format", "flat", "--eot", "none", "--threads", str(job.threads)])
    if code != 0:
        raise SystemExit(code)


def documents(job):
    from pathlib import Path

    import numpy as np

    for path in sorted(Path(job.out).glob("train*.bin")):
        ends = np.fromfile(f"{path}.index", "<u8").astype("i8")
        yield np.fromfile(path, job.dtype), np.diff(ends, prepend=0)
