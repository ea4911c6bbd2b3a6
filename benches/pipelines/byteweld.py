"""byteweld: the command `byteweld tokenize`, flat format."""

DISTRIBUTION = "byteweld"


def tokenize(job):
    from byteweld.cli import main

    line = ["tokenize", *job.files, "--tokenizer", job.rank_file, "--out", job.out]
    code = main([*line, "--format", "flat", "--eot", "none", "--threads", str(job.threads)])
    if code != 0:
        raise SystemExit(code)


def documents(job):
    import numpy as np

    import byteweld

    dataset = byteweld.open_dataset(job.out)
    for number in range(len(dataset)):
        ids = np.asarray(dataset[number])
        yield ids, np.array([len(ids)])
