"""Reach every unsafe block of the bindings once, for a memory checker (see check_memory.sh)."""

from __future__ import annotations

import contextlib
import gc
import threading

import byteweld

TEXTS = [
    "",
    "a",
    "hello hello world",
    "\xe9t\xe9",
    "\u65e5\u672c\u8a9e",
    "\U0001f600 mixed \xe9 \u65e5",
    "x" * 3000,
]


def use(tok: byteweld.Tokenizer) -> None:
    for text in TEXTS:
        ids = tok.encode(text)  # lists.rs: list, integer, make; text.rs: has_utf8, transcode
        assert ids == tok.encode(text.encode().decode())  # now from the table of integers
        assert tok.decode(ids) == text  # lists.rs: read; output.rs: string_with
        assert tok.decode(tuple(ids)) == text
        assert tok.decode_bytes(ids) == text.encode()
        assert tok.encode_to_numpy(text).tolist() == ids
    assert tok.decode(tok.encode("\u65e5")[:1], errors="replace") == "\ufffd"  # output.rs: string
    for wrong in ([-1], [1 << 40], [True], [1 << 70]):  # lists.rs: read_items without a value
        with contextlib.suppress(KeyError, ValueError, OverflowError, TypeError):
            tok.decode(wrong)


def main() -> None:
    tok = byteweld.train(documents=[text * 3 for text in TEXTS], vocab_size=270)
    use(tok)
    threads = [threading.Thread(target=use, args=(tok,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del tok, threads, thread  # lists.rs: drop
    gc.collect()


if __name__ == "__main__":
    main()
