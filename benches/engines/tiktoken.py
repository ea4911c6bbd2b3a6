"""tiktoken: encoding only. On one thread its batch call is a detour, so texts go one by one."""

DISTRIBUTION = "tiktoken"


def encode(job):
    import tiktoken

    encoding = tiktoken.Encoding(
        "bench", pat_str=job.pattern, mergeable_ranks=job.ranks(), special_tokens={}
    )

    def call(texts):
        if job.threads > 1:
            return encoding.encode_ordinary_batch(texts, num_threads=job.threads)
        return [encoding.encode_ordinary(text) for text in texts]

    return call, list
