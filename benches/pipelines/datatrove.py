"""datatrove: a reader and `DocumentTokenizer`, a task per file, a worker per core."""

DISTRIBUTION = "datatrove"


def tokenize(job):
    from pathlib import Path

    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader, ParquetReader
    from datatrove.pipeline.tokens import DocumentTokenizer

    reader = ParquetReader if job.format == "parquet" else JsonlReader
    LocalPipelineExecutor(
        pipeline=[
            reader(str(Path(job.files[0]).parent)),
            DocumentTokenizer(
                f"{job.out}/tokens",
                tokenizer_name_or_path=job.tokenizer_json,
                shuffle_documents=False,  # so that its ids can be compared; it saves time, too
            ),
        ],
        tasks=len(job.files),
        workers=job.threads,
        logging_dir=f"{job.out}/logs",
    ).run()


def documents(job):
    from pathlib import Path

    import numpy as np

    for path in sorted(Path(job.out).glob("tokens/*.ds")):
        ends = np.fromfile(f"{path}.index", "<u8").astype("i8")
        yield np.fromfile(path, job.dtype), np.diff(ends, prepend=0)
