"""Hugging Face datasets: `load_dataset`, `map` with a fast tokenizer, `save_to_disk`."""

DISTRIBUTION = "datasets"


def tokenize(job):
    import os

    os.environ["HF_HUB_OFFLINE"] = "1"
    from datasets import load_dataset
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=job.tokenizer_json)

    def encode(batch):
        return {"input_ids": tokenizer(batch["text"], return_attention_mask=False)["input_ids"]}

    kind = "parquet" if job.format == "parquet" else "json"
    made = load_dataset(kind, data_files=job.files, split="train", cache_dir=f"{job.out}/cache")
    made = made.map(encode, batched=True, num_proc=job.threads, remove_columns=["text"])
    made.save_to_disk(f"{job.out}/tokens", num_proc=job.threads)


def documents(job):
    import numpy as np
    from datasets import load_from_disk

    for batch in load_from_disk(f"{job.out}/tokens").with_format("arrow").iter(10_000):
        column = batch["input_ids"].combine_chunks()
        yield np.asarray(column.flatten()), np.asarray(column.value_lengths())
