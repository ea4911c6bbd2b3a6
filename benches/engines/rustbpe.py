"""rustbpe: a trainer over iterators; ties go to the smallest ids. Threads by RAYON_NUM_THREADS."""

DISTRIBUTION = "rustbpe"


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
