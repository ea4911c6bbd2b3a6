"""sentencepiece: BPE over characters of words split at spaces, so its tokens differ by design.

For context only: its answer is not compared. It gets lines, as it expects, and skips none for its
length.
"""

DISTRIBUTION = "sentencepiece"

_LONGEST_LINE = 1 << 20


def train(job):
    import io

    import sentencepiece

    def call():
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_lines(job),
            model_writer=model,
            model_type="bpe",
            vocab_size=job.vocab_size,
            byte_fallback=True,
            hard_vocab_limit=False,
            normalization_rule_name="identity",
            max_sentence_length=_LONGEST_LINE,
            num_threads=job.threads,
            minloglevel=2,
        )
        return model.getvalue()

    def answer(model):
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        return [processor.id_to_piece(i).encode() for i in range(processor.get_piece_size())]

    return call, answer


def _lines(job):
    for document in job.documents():
        yield from filter(None, document.split("\n"))
