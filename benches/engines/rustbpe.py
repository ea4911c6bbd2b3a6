"""rustbpe: a trainer over iterators; ties go to the smallest ids. Threads by RAYON_NUM_THREADS."""

DISTRIBUTION = "rustbpe"


def count(job):
    """Train without merges: it counts, and logs the number of distinct pre-tokens."""
    import logging
    import re

    import rustbpe

    tokenizer = rustbpe.Tokenizer()
    messages = []
    log = logging.getLogger("rustbpe")
    log.setLevel(logging.INFO)
    log.addHandler(logging.Handler())
    log.addFilter(lambda record: messages.append(record.getMessage()))

    def call():
        tokenizer.train_from_iterator(job.documents(), vocab_size=256, pattern=job.pattern)

    def answer(_):
        return [re.search(r"([0-9]+) unique", "\n".join(messages))[1].encode()]

    return call, answer


def train(job):
    import rustbpe

    tokenizer = rustbpe.Tokenizer()

    def call():
        tokenizer.train_from_iterator(
            job.documents(), vocab_size=job.vocab_size, pattern=job.pattern
        )

    def answer(_):
        ranks = sorted(tokenizer.get_mergeable_ranks(), key=lambda item: item[1])
        return [bytes(token) for token, _ in ranks][256:]

    return call, answer
