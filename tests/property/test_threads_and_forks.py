"""One tokenizer in many threads and across forks: the answers are those of one thread."""

from __future__ import annotations

import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import byteweld
from byteweld import errors
from tests.harness import run
from tests.helpers.programs import run_python
from tests.helpers.strategies import ENDOFTEXT, NASTY

TEXTS = [text[:3000] for text in NASTY] * 3
has_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@pytest.fixture(scope="module")
def tok(data):
    documents = [(data / name).read_text("utf-8") for name in ("prose.txt", "code.txt", "many.txt")]
    return byteweld.train(iter(documents), vocab_size=900, special_tokens=[ENDOFTEXT])


@pytest.fixture(scope="module")
def expected(tok):
    return [tok.encode(text, allowed_special="all") for text in TEXTS]


def test_a_long_text_has_the_same_ids_on_many_threads_wherever_its_pieces_end():
    # Pieces are cut by bytes, so some end inside a character; some tokens span "n" and "ä".
    text = "nächste Wäsche, ärmere Bären, naïve Kähne. "
    tok = byteweld.train(iter([text * 20]), vocab_size=320, special_tokens=[ENDOFTEXT])
    for shift in range(len(text.encode())):
        long = "x" * shift + text * 6000
        one, two = (tok.encode_ragged([long], num_threads=threads)[0] for threads in (1, 2))
        assert one.tolist() == two.tolist(), shift


def in_child(work):
    """Run `work` in a fork; return whether it succeeded without hanging."""
    return run.in_child(work, 240) == (0, "True")


# ---------------------------------------------------------------------- threads


def test_eight_threads_share_a_tokenizer(tok, expected):
    start = threading.Barrier(8)

    def work(n):
        start.wait()
        for i in range(n, len(TEXTS) * 2, 3):
            text, ids = TEXTS[i % len(TEXTS)], expected[i % len(TEXTS)]
            assert tok.encode(text, allowed_special="all") == ids
            assert tok.count(text, allowed_special="all") == len(ids)
            assert tok.decode(ids) == text
            assert tok.encode(text, allowed_special={ENDOFTEXT}, disallowed_special=()) == ids
            assert tok.encode_to_numpy(text, allowed_special="all").tolist() == ids
        assert tok.encode_batch(TEXTS, allowed_special="all", num_threads=2) == expected
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.parametrize("name", ["tokens", "pre-tokens"])
def test_other_threads_run_while_the_engine_works(tok, name, tmp_path):
    text = "".join(NASTY) * 20
    file = tmp_path / "hard.txt"
    file.write_text(text, "utf-8", newline="")
    beats = 0
    done = threading.Event()

    def beat():
        nonlocal beats
        while not done.wait(0.001):
            beats += 1

    pulse = threading.Thread(target=beat)
    pulse.start()
    for times in (1, 2, 4, 8, 16, 32, 64):  # a busy machine may not let the other thread run
        given = text * times if name == "tokens" else [file] * times
        before = beats
        if name == "tokens":
            tok.count(given, disallowed_special=())
        else:
            byteweld.count(given, num_threads=1)
        if beats - before >= 10:  # with the lock held, it could run at the two ends only
            break
    done.set()
    pulse.join()
    assert beats - before >= 10


def test_trainings_in_eight_threads_are_identical(data):
    document = (data / "prose.txt").read_text("utf-8")

    def work(_):
        return byteweld.train(
            iter([document]), vocab_size=500, recipe="from-scratch"
        ).vocab.fingerprint

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(work, range(8)))) == 1


# ---------------------------------------------------------------------- forks


@has_fork
def test_a_fork_after_use_in_threads_encodes_counts_and_trains(tok, expected, data):
    document = (data / "prose.txt").read_text("utf-8")
    with ThreadPoolExecutor(8) as pool:  # the engine's threads and tables are warm in the parent
        batches = pool.map(lambda _: tok.encode_batch(TEXTS, allowed_special="all"), range(8))
        assert all(batch == expected for batch in batches)
    byteweld.count(iter([document] * 50), num_threads=4)

    def work():
        again = tok.encode_batch(TEXTS, allowed_special="all", num_threads=4) == expected
        single = tok.encode(TEXTS[3], allowed_special="all") == expected[3]
        trained = byteweld.train(iter([document] * 50), vocab_size=400, num_threads=4)
        return again and single and len(trained) == 400

    assert in_child(work)
    assert in_child(lambda: in_child(work))
    assert tok.encode_batch(TEXTS, allowed_special="all") == expected


@has_fork
def test_a_fork_while_other_threads_encode_is_safe(tok, expected):
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            tok.encode_batch(TEXTS, allowed_special="all", num_threads=2)
            tok.encode(TEXTS[5], allowed_special={ENDOFTEXT}, disallowed_special=())

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert in_child(
                lambda: tok.encode_batch(TEXTS, allowed_special="all", num_threads=3) == expected
            )
    finally:
        stop.set()
        for thread in threads:
            thread.join()


# ---------------------------------------------------------------------- pickling


@pytest.mark.parametrize(
    "error",
    [
        errors.FormatError("bad byte", path="a.json", offset=7),
        errors.FormatError("bad byte", path="a.json"),
        errors.MissingKeyError("no key 'x'", path="a.json"),
        errors.CorpusError("bad line", path="a.jsonl", offset=0),
        errors.UnknownIdError("id 9 is unknown", 9),
        errors.IdRangeError(2**70),
        errors.SpecialTokenError("text holds '<|a|>'"),
        errors.VocabularyError("two ids"),
        errors.PatternError("no"),
        errors.UnsupportedError("no"),
        errors.NativeError("bug"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_pickling(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


WHILE_FORKED = {
    "a property is computed": """
from byteweld import Tokenizer, Vocabulary
from byteweld._cached import cached_property
entered = threading.Event()
class Slow:
    @cached_property
    def value(self):
        entered.set()
        time.sleep(1)
        return 1
for made in (Vocabulary, Tokenizer):  # functools' one has a lock
    assert any(isinstance(part, cached_property) for part in vars(made).values())
slow = Slow()
work, wait = lambda: slow.value, entered.wait
""",
    "a pattern is prepared for streams": """
from byteweld import Tokenizer
tok = Tokenizer.from_ranks({bytes([b]): b for b in range(256)}, pattern="o200k")
text = "hello world " * 500
work, wait = lambda: tok.encode_stream().feed(text), lambda: time.sleep(0.005)
""",
}


@pytest.mark.parametrize("what", WHILE_FORKED)
def test_a_fork_meanwhile_does_not_hang_the_child(what):
    script = f"""
import os, signal, threading, time
{WHILE_FORKED[what]}
first = threading.Thread(target=work)
first.start()
wait()
child = os.fork()
if child == 0:
    signal.alarm(120)
    os._exit(0 if work() else 3)
first.join()
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python("-c", script).returncode == 0


def test_nothing_uses_the_cached_property_of_functools():
    files = Path(byteweld.__file__).parent.rglob("*.py")
    assert not [file for file in files if "functools import cached_property" in file.read_text()]
