"""tiktoken: encoding only. On one thread its batch call is a detour, so texts go one by one."""

DISTRIBUTION = "tiktoken"


def list_out(job):
    encoding = _load(job)
    one = encoding.encode_ordinary

    def call(texts):
        if job.threads > 1:
            return encoding.encode_ordinary_batch(texts, num_threads=job.threads)
        return [one(text) for text in texts]

    return call, list


def array_out(job):
    one = _load(job).encode_to_numpy
    return lambda texts: [one(text, disallowed_special=()) for text in texts], list


def _load(job):
    import tiktoken

    return tiktoken.Encoding(
        "bench", pat_str=job.pattern, mergeable_ranks=job.ranks(), special_tokens={}
    )
