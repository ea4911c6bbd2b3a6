"""rustbpe: a trainer over iterators; ties go to the smallest ids. Threads by RAYON_NUM_THREADS."""

DISTRIBUTION = "rustbpe"


def count(job):
    """It counts when it trains: no merges, and its log says how many pre-tokens are distinct."""
    import logging
    import re

    import rustbpe

    tokenizer = rustbpe.Tokenizer()
    said = []
    log = logging.getLogger("rustbpe")
    log.setLevel(logging.INFO)
    log.addHandler(logging.Handler())
    log.addFilter(lambda record: said.append(record.getMessage()))

    def call():
        tokenizer.train_from_iterator(job.documents(), vocab_size=256, pattern=job.pattern)

    def answer(_):
        return [re.search(r"([0-9]+) unique", "\n".join(said))[1].encode()]

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
