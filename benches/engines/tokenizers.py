"""Hugging Face tokenizers. Trains from an iterator of documents, since it reads files by line.

Its ByteLevel pre-tokenizer has GPT-2's pattern built in. `encode_batch_fast` is its fastest call.
Threads by RAYON_NUM_THREADS and TOKENIZERS_PARALLELISM, which run.py sets.
"""

DISTRIBUTION = "tokenizers"

_SHOWN = frozenset([*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)])
_HIDDEN = [byte for byte in range(256) if byte not in _SHOWN]


def train(job):
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=job.vocab_size,
        min_frequency=0,
        show_progress=False,
        special_tokens=[],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )

    def call():
        tokenizer.train_from_iterator(job.documents(), trainer)

    def answer(_):
        ids = tokenizer.get_vocab()
        return [_bytes(token) for token in sorted(ids, key=ids.__getitem__)][256:]

    return call, answer


def list_out(job):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(job.tokenizer_json)

    def call(texts):
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    return call, list


def load_json(job):
    from tokenizers import Tokenizer

    def call():
        return Tokenizer.from_file(job.tokenizer_json)

    return call, lambda tokenizer: [tokenizer.encode(job.probe, add_special_tokens=False).ids]


first_ids = load_json


def _bytes(token):
    """The bytes for GPT-2's letters; unprintable bytes map to letters from U+0100."""
    return bytes(ord(c) if ord(c) < 0x100 else _HIDDEN[ord(c) - 0x100] for c in token)
