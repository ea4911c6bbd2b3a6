"""The from-scratch seed on the engine: example, chunks, specials, memory, the course's files."""

from __future__ import annotations

import base64
import gzip
import json
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import byteweld
from byteweld import Counts, SpecialTokenError, Tokenizer

END = "<|endoftext|>"
DOUBLE = END * 2
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
BYTES = {byte: bytes([byte]) for byte in range(256)}

SHARED = Path(__file__).parents[3] / "shared" / "data"
COURSE = SHARED / "corpora" / "cs336_fixtures"
R50K = SHARED / "vocabs" / "tiktoken" / "r50k_base.tiktoken.gz"
needs_course = pytest.mark.skipif(not COURSE.is_dir(), reason=f"the course's files: no {COURSE}")


def train(*documents: str | bytes, vocab_size: int, **options: Any) -> Tokenizer:
    return byteweld.train(iter(documents), vocab_size=vocab_size, recipe="from-scratch", **options)


def count(source: Any, **options: Any) -> dict[bytes, int]:
    return dict(byteweld.count(source, recipe="from-scratch", **options).items())


def count_plainly(text: str, *specials: str) -> dict[bytes, int]:
    """Split at the special tokens in memory, longest first, and count with Python's `regex`."""
    cut = "|".join(regex.escape(s) for s in sorted(specials, key=len, reverse=True)) or "(?!)"
    parts = regex.split(cut, text)
    return dict(Counter(p.encode() for part in parts for p in regex.findall(PATTERN, part)))


def story(size: int, seed: int = 1) -> str:
    """Text of about `size` bytes with words, numbers, signs, line ends and other scripts."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(1, 9))) for _ in range(2000)]
    words += [
        "naïve",
        "€50",
        "mañana",
        "слово",
        "中文字",
        "🦊",
        "don't",
        "1234567",
        "--",
        "\n",
        "  ",
    ]
    weights = [1.0] * 2000 + [30.0] * 11
    pieces: list[str] = []
    length = 0
    while length < size:
        some = rng.choices(words, weights, k=1000)
        pieces.append(" ".join(some) + " ")
        length += len(pieces[-1].encode())
    return "".join(pieces)


EMPTY = train(vocab_size=256)
SMALL = train("ab ab endoftext <| |> €", vocab_size=280, special_tokens=[END])


# ---------------------------------------------------------------------- the worked example


def test_low_and_lower_give_the_seeds_four_merges_with_ties_at_steps_1_and_3():
    tok = byteweld.train(Counts({b"low": 5, b"lower": 2}), vocab_size=260, recipe="from-scratch")
    assert tok.vocab.merges == [(b"o", b"w"), (b"l", b"ow"), (b"low", b"e"), (b"lowe", b"r")]
    assert tok.training.merge_counts == (7, 7, 2, 2)
    steps = byteweld.explain_training(
        Counts({b"low": 5, b"lower": 2}), vocab_size=260, recipe="from-scratch"
    ).steps
    assert [step.total_tied for step in steps] == [1, 0, 1, 0]


def test_a_text_with_the_seeds_counts_gives_the_same_merges():
    tok = train("low\nlow\nlow\nlow\nlow\nlower\nlower", vocab_size=260)
    assert tok.vocab.merges == [(b"o", b"w"), (b"l", b"ow"), (b"low", b"e"), (b"lowe", b"r")]


def test_a_fresh_lower_is_collapsed_by_the_same_four_merges():
    sizes = []
    for merges in range(5):
        tok = byteweld.train(
            Counts({b"low": 5, b"lower": 2}), vocab_size=256 + merges, recipe="from-scratch"
        )
        sizes.append(len(tok.encode("lower")))
    assert sizes == [5, 4, 3, 2, 1]


def test_ties_go_to_the_greater_pair_where_hugging_face_takes_the_smaller():
    assert train("cab", vocab_size=257).vocab.merges == [(b"c", b"a")]
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.train_from_iterator(
        ["cab"],
        tokenizers.trainers.BpeTrainer(
            vocab_size=257,
            show_progress=False,
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    # Erratum: the seed's third note calls the greater pair the convention of the field.
    assert json.loads(theirs.to_str())["model"]["merges"] == [["a", "b"]]


def test_greater_means_greater_bytes_left_first_and_not_greater_ids():
    # (c, x) and (ba, x) tie at 2; ba has the greater id and the smaller bytes.
    counts = Counts({b"ba": 9, b"bax": 2, b"cx": 2})
    tok = byteweld.train(counts, vocab_size=258, recipe="from-scratch")
    assert tok.vocab.merges == [(b"b", b"a"), (b"c", b"x")]


@pytest.mark.parametrize("seed", range(4))
def test_many_ties_are_merged_greatest_first_whatever_their_order_in_the_corpus(seed):
    words = [f"y{right}" for right in "bcdefghijklm"] + [f"{left}a" for left in "bcdefghijklm"]
    expected = sorted(((left.encode(), right.encode()) for left, right in words), reverse=True)
    random.Random(seed).shuffle(words)
    assert train(*words, vocab_size=256 + len(words)).vocab.merges == expected


def test_both_occurrences_of_a_pair_in_one_pretoken_merge_in_one_pass():
    tok = byteweld.train(Counts({b"abab": 1}), vocab_size=258, recipe="from-scratch")
    assert tok.vocab.merges == [(b"a", b"b"), (b"ab", b"ab")]
    assert tok.training.merge_counts == (2, 1)


def test_no_merge_is_learned_from_a_pair_that_no_longer_occurs():
    tok = train(story(20_000), vocab_size=100_000)
    assert tok.training.stop == "no pairs"
    assert min(tok.training.merge_counts) == 1
    assert all(len(tok.encode_ordinary(p)) == 1 for p in count(iter([story(20_000)])))


# ---------------------------------------------------------------------- bytes and pre-tokens


def test_ids_are_the_bytes_then_the_special_tokens_then_the_merges():
    specials = [END, "<|sep|>"]
    tok = train("ab ab ab", vocab_size=260, special_tokens=specials)
    assert [tok.vocab.tokens[byte] for byte in range(256)] == list(BYTES.values())
    assert dict(tok.vocab.special_tokens) == {END: 256, "<|sep|>": 257}
    assert [new for *_, new in tok.vocab.merge_ids] == [258, 259]


def test_ten_thousand_tokens_are_256_bytes_one_special_and_9743_merges():
    rng = random.Random(1)
    words = ("".join(rng.choices("etaoinshrdlu", k=rng.randint(3, 9))) for _ in range(12_000))
    tok = train(" ".join(words), vocab_size=10_000, special_tokens=[END])
    assert (len(tok), tok.training.stop) == (10_000, "size")
    assert len(tok.vocab.merges) == tok.training.merges_learned == 9_743
    made = {new for *_, new in tok.vocab.merge_ids}
    assert made == set(range(257, 10_000))


def test_counts_and_pairs_may_exceed_32_bits():
    # Each of (a, b) fits into 32 bits, but not their sum, which would wrap to 2^31.
    counts = Counts({b"xab": 2**31, b"yab": 2**31, b"zab": 2**31, b"cd": 2**32 + 5, b"ef": 2**40})
    tok = byteweld.train(counts, vocab_size=259, recipe="from-scratch")
    assert tok.vocab.merges == [(b"e", b"f"), (b"a", b"b"), (b"c", b"d")]
    assert tok.training.merge_counts == (2**40, 3 * 2**31, 2**32 + 5)
    assert tok.training.total_pretokens == counts.total == 2**40 + 3 * 2**31 + 2**32 + 5
    # Every adjacent position counts, so one pre-token alone can pass 32 bits.
    run = byteweld.train(Counts({b"a" * 5: 2**30, b"bc": 2**32 - 1}), vocab_size=257)
    assert run.training.merge_counts == (2**32,)


def test_a_table_of_counts_has_each_pretoken_once_and_tables_add_up():
    text = story(300_000)
    counts = byteweld.count(documents=[text], recipe="from-scratch")
    assert dict(counts.items()) == count_plainly(text)
    assert counts.total == sum(count_plainly(text).values()) > 10 * len(counts)
    many = Counts.merge([Counts({b"ab": 2**62, b"c": 1}), Counts({b"ab": 2**61, b"d": 2})])
    assert dict(many.items()) == {b"ab": 2**62 + 2**61, b"c": 1, b"d": 2}


def test_a_size_below_bytes_and_specials_is_a_value_error_that_names_the_minimum():
    with pytest.raises(ValueError, match="at least 257"):
        train("ab", vocab_size=256, special_tokens=[END])
    assert train("ab", vocab_size=257, special_tokens=[END]).vocab.merge_ids == ()


def test_any_text_is_bytes_so_nothing_is_out_of_vocabulary():
    tok = train("ab ab", vocab_size=258)
    for text in ("English", "中文", "🦊", "naïve", "\x00\x7f", "ༀ"):
        assert tok.encode(text) == [b for b in text.encode()]
        assert tok.decode(tok.encode(text)) == text


def test_the_euro_sign_is_three_bytes_and_not_one_atom():
    assert train(vocab_size=256).encode("€") == [0xE2, 0x82, 0xAC]
    tok = train("€€€ €", vocab_size=258)
    assert tok.vocab.merges == [(b"\xe2", b"\x82"), (b"\xe2\x82", b"\xac")]
    assert tok.encode("€") == [257]
    assert tok.training.merge_counts == (4, 4)


def test_the_leading_space_belongs_to_the_word():
    tok = train("the cat, the hat and the 7", vocab_size=256)
    assert tok.pretokenize("the cat, the 7") == [b"the", b" cat", b",", b" the", b" 7"]


def test_the_six_alternatives_of_the_pattern_cut_as_the_seed_says():
    tok = train(vocab_size=256)
    assert tok.pretokenize("I'll pay 50€!  ok \n") == [
        *(b"I", b"'ll", b" pay", b" 50", "€!".encode(), b" ", b" ok", b" \n"),
    ]


def test_no_token_spans_pretokens_and_without_a_pattern_tokens_cross_words():
    text = "one of the many of the few of the best of the rest " * 20
    fenced = train(text, vocab_size=300)
    assert not [t for t in fenced.vocab.ids if len(t) > 1 and b" " in t[1:]]
    unfenced = train(text, vocab_size=300, pattern=None)
    assert b" of the " in b"".join(t for t in unfenced.vocab.ids if t.startswith(b" of the "))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_pretokens_are_those_of_the_seeds_regex(text):
    assert EMPTY.pretokenize(text) == [p.encode() for p in regex.findall(PATTERN, text)]


# ---------------------------------------------------------------------- special tokens as cuts


def test_a_special_token_in_the_corpus_is_a_boundary_and_is_not_counted():
    assert count(iter([f"ab{END}ab"]), special_tokens=[END]) == {b"ab": 2}
    assert count(iter([f"ab{END}ab"])) == {b"ab": 2, b"<|": 1, b"endoftext": 1, b"|>": 1}


def test_no_merge_contains_a_part_of_a_special_token():
    tok = train(f"once upon{END}a time{END}" * 50, vocab_size=400, special_tokens=[END])
    assert not [token for token in tok.vocab.ids if b"<|" in token or b"|>" in token]
    free = train(f"once upon{END}a time{END}" * 50, vocab_size=400)
    assert b"endoftext" in free.vocab.ids


def test_pretokens_do_not_cross_a_special_token():
    # Whitespace before and after: without the special token it would be one run.
    text = f"a \n{END}\n  b{END} {END}c"
    assert count(iter([text]), special_tokens=[END]) == count_plainly(text, END)


def test_of_two_special_tokens_the_longer_splits_the_corpus():
    specials = ["<|a|>", "<|a|><|b|>", "|>x"]
    text = "q<|a|><|b|>r<|a|>xs"
    assert count(iter([text]), special_tokens=specials) == {b"q": 1, b"r": 1, b"xs": 1}


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("marked", [False, True], ids=["without specials", "with specials"])
def test_counts_are_the_same_for_any_number_of_threads(tmp_path, marked, threads):
    text = story(5_000_000)
    if marked:
        text = END.join(text[start : start + 3_001] for start in range(0, len(text), 3_001))
    file = tmp_path / "story.txt"
    file.write_text(text, newline="")
    expected = _expected_counts(marked, text)
    assert count(file, special_tokens=[END], num_threads=threads) == expected


_KNOWN: dict[bool, dict[bytes, int]] = {}


def _expected_counts(marked: bool, text: str) -> dict[bytes, int]:
    """Count each text once, since Python is slow at it."""
    if marked not in _KNOWN:
        _KNOWN[marked] = count_plainly(text, END)
    return _KNOWN[marked]


def test_a_single_word_and_a_run_of_spaces_longer_than_any_block_stay_whole(tmp_path):
    file = tmp_path / "long.txt"
    word, spaces = "x" * 2_500_000, " " * 2_500_000
    file.write_text(f"a {word}{spaces}b", newline="")
    expected = {b"a": 1, f" {word}".encode(): 1, spaces[1:].encode(): 1, b" b": 1}
    assert count(file, num_threads=2) == expected


def test_python_runs_while_the_engine_counts(tmp_path):
    """The engine works without the lock: another thread gets ahead in the middle of a call."""
    file = tmp_path / "story.txt"
    for attempt in range(1, 4):  # on a busy machine, the other thread may have to wait
        file.write_text(story(2_000_000) * 20 * attempt, newline="")
        if _runs_meanwhile(lambda: count(file, num_threads=1)):
            return
    pytest.fail("no other thread ran while a file was counted")


@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="there is no lock")
def test_the_measure_of_the_lock_notices_work_that_holds_it():
    text = "ab" * 2_000_000
    assert not _runs_meanwhile(lambda: sorted(text))


def _runs_meanwhile(work: Callable[[], object]) -> bool:
    """Whether a thread runs in the middle half of a call."""
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        while not ticks:
            time.sleep(0.001)
        started = time.perf_counter()
        work()
        ended = time.perf_counter()
    finally:
        stop.set()
        thread.join()
    quarter = (ended - started) / 4
    return any(started + quarter < tick < ended - quarter for tick in ticks)


# ---------------------------------------------------------------------- the window trap


def snap(data: bytes, delimiter: bytes, guess: int, window: int = 4096) -> int:
    """The seed's scan, as printed: the next delimiter at or after `guess`, window by window."""
    position = guess
    while True:
        chunk = data[position : position + window]
        if chunk == b"":
            return len(data)
        found = chunk.find(delimiter)
        if found != -1:
            return position + found
        position += window


def test_erratum_the_seeds_scan_misses_a_delimiter_that_straddles_two_windows():
    delimiter = END.encode()
    data = b"a" * 4090 + delimiter + b"b" * 9000 + delimiter + b"c"
    assert data.find(delimiter) == 4090
    assert snap(data, delimiter, 0) == 4090 + len(delimiter) + 9000  # the first one is missed
    assert count(iter([data]), special_tokens=[END]) == {b"a" * 4090: 1, b"b" * 9000: 1, b"c": 1}


# Powers of two at which a reader may end a window or a block: 4 KiB, 64 KiB, 256 KiB, 1 MiB, 2 MiB.
EDGES = (1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 21)


def straddling(shift: int) -> str:
    """A text in which a special token starts `shift` bytes before every edge."""
    filler = story(5 << 19, seed=shift).encode("ascii", "ignore")
    pieces: list[bytes] = []
    length = 0
    for edge in EDGES:
        start = edge - shift
        pieces += [filler[length:start], END.encode()]
        length = start + len(END)
    return b"".join([*pieces, filler[length:]]).decode("ascii")


@pytest.mark.parametrize("shift", range(len(END) + 1))
def test_a_special_token_that_straddles_any_cut_is_found(tmp_path, shift):
    text = straddling(shift)
    for edge in EDGES:
        assert text.startswith(END, edge - shift)
    file = tmp_path / "straddling.txt"
    file.write_text(text, newline="")
    # In memory, each part by itself: the special token is never near a cut there.
    expected = count(iter(text.split(END)))
    assert b"endoftext" not in expected
    for threads in (1, 2):
        assert count(file, special_tokens=[END], num_threads=threads) == expected
    assert count(iter([text]), special_tokens=[END]) == expected


def test_the_counts_around_a_cut_are_those_of_pythons_regex(tmp_path):
    text = straddling(7)
    file = tmp_path / "straddling.txt"
    file.write_text(text, newline="")
    assert count(file, special_tokens=[END]) == count_plainly(text, END)


@pytest.mark.parametrize("shift", range(3))
def test_a_character_that_straddles_a_cut_stays_whole(tmp_path, shift):
    filler = story(1 << 20).encode("ascii", "ignore")
    text = filler[: (1 << 20) - shift].decode() + "€" * 100_000 + " end"
    file = tmp_path / "euro.txt"
    file.write_text(text, newline="")
    assert count(file, num_threads=2) == count_plainly(text)


# ---------------------------------------------------------------------- encoding


def test_abc_with_merges_bc_then_ab_is_a_bc():
    vocab = BYTES | {256: b"bc", 257: b"ab"}
    tok = Tokenizer.from_merges(vocab, [(b"b", b"c"), (b"a", b"b")])
    assert tok.encode("abc") == [97, 256]
    assert tok.encode("abcab") == [97, 256, 257]


def test_special_tokens_get_their_own_id_and_the_text_between_them_is_kept():
    tok = train("ab ab ab", vocab_size=260, special_tokens=[END])
    text = f"{END}ab ab{END}{END} ab"
    ids = tok.encode(text, allowed_special="all")
    assert ids == [256, 257, 258, 256, 256, 258]
    assert tok.decode(ids) == text


def test_of_two_special_tokens_the_longer_is_taken_first():
    text = f"Hello, how {DOUBLE} are you?{END}"
    for specials in ([END, DOUBLE], [DOUBLE, END]):
        tok = train("hello", vocab_size=258, special_tokens=specials)
        ids = tok.encode(text, allowed_special="all")
        single, double = tok.vocab.special_tokens[END], tok.vocab.special_tokens[DOUBLE]
        assert [i for i in ids if i in (single, double)] == [double, single]
        assert tok.decode(ids) == text
        three = tok.encode(END * 3, allowed_special="all")
        assert three == [double, single]


def test_overlapping_special_tokens_are_taken_leftmost_first():
    tok = train(vocab_size=259, special_tokens=["abc", "bcde", "ab"])
    assert tok.encode("abcde", allowed_special="all") == [256, ord("d"), ord("e")]
    assert tok.encode("xbcde", allowed_special="all") == [ord("x"), 257]
    assert tok.encode("abx", allowed_special="all") == [258, ord("x")]


def test_special_tokens_in_text_are_rejected_unless_allowed():
    tok = train("ab", vocab_size=258, special_tokens=[END])
    with pytest.raises(SpecialTokenError):
        tok.encode(f"a{END}")
    assert tok.encode(END, disallowed_special=()) == list(END.encode())


def test_decoding_replaces_invalid_utf8_and_round_trips_are_exact():
    assert EMPTY.decode([0xE2, 0x82, ord("a")]) == "\ufffda"
    assert EMPTY.decode([0xE2, 0x82, 0xAC]) == "€"


@given(st.lists(st.text(alphabet="ab<|endoftext|> \n€", max_size=12), max_size=6))
def test_documents_can_be_encoded_separately_because_special_tokens_are_boundaries(documents):
    joined = END.join(documents)
    parts = [SMALL.encode(part) for part in joined.split(END)]
    expected = parts[0]
    for ids in parts[1:]:
        expected = [*expected, SMALL.eot_token, *ids]
    assert SMALL.encode(joined, allowed_special="all") == expected
    assert SMALL.encode_batch(documents, allowed_special="all", num_threads=2) == [
        SMALL.encode(document, allowed_special="all") for document in documents
    ]


# ---------------------------------------------------------------------- streams


@given(
    st.lists(
        st.sampled_from([*"ab<|>é€🦊'\n", "  ", END, "<|endo", "ftext|>", "don't"]), max_size=40
    ),
    st.integers(1, 9),
)
def test_a_stream_in_any_pieces_has_the_ids_of_the_whole(atoms, size):
    text = "".join(atoms)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    expected = SMALL.encode(text, allowed_special="all")
    assert list(SMALL.encode_iterable(pieces, allowed_special="all")) == expected


@pytest.mark.parametrize("size", [1 << 16, 65_521, 4_093, 7])
def test_a_long_stream_cut_anywhere_has_the_ids_of_the_whole(size):
    text = END.join(story(300_000)[start : start + 9_973] for start in range(0, 250_000, 9_973))
    data = text.encode()
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    expected = SMALL.encode(text, allowed_special="all")
    assert list(SMALL.encode_iterable(pieces, allowed_special="all")) == expected


@pytest.mark.parametrize("shift", range(len(END) + 1))
def test_a_special_token_that_straddles_a_cut_of_a_stream_is_found(shift):
    filler = story(200_000).encode("ascii", "ignore").decode()
    text = filler[: (1 << 16) - shift] + END + filler[: (1 << 16)] + END + "tail"
    lines = text.splitlines(keepends=True)
    expected = SMALL.encode(text, allowed_special="all")
    assert expected.count(SMALL.eot_token) == 2
    assert list(SMALL.encode_iterable(lines, allowed_special="all")) == expected


def test_a_stream_is_lazy():
    def pieces() -> Iterator[str]:
        yield "word " * 100_000
        raise AssertionError("read more than was needed")

    ids = SMALL.encode_iterable(pieces())
    assert [next(ids) for _ in range(4)] == SMALL.encode("word")


# ---------------------------------------------------------------------- memory

# Peak memory is read from /proc in a separate process: VmHWM starts from zero in each program,
# while ru_maxrss is inherited from the parent.
STATUS = Path("/proc/self/status")
needs_proc = pytest.mark.skipif(not STATUS.is_file(), reason="peak memory is read from /proc")

PEAK = """
import sys
from pathlib import Path

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
"""


def growth_of_peak(program: str, *arguments: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PEAK + program, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


STREAM = """
import byteweld
tok = byteweld.train(iter(["low lower lowest"]), vocab_size=270, recipe="from-scratch",
                     special_tokens=["<|endoftext|>"])
list(tok.encode_iterable(["warm up"]))
before = peak()
lines = ("a lower line than the line before, number %d\\n" % n for n in range(1_400_000))
made = sum(1 for _ in tok.encode_iterable(lines))
assert made > 20_000_000, made
print(peak() - before)
"""


@needs_proc
def test_encoding_a_stream_of_60_megabytes_needs_a_few():
    # Every number is a new pre-token, so the cache fills.
    assert growth_of_peak(STREAM) < 14_000_000


COUNT = """
import byteweld
byteweld.count(iter(["warm up"]), recipe="from-scratch", num_threads=2)
before = peak()
counts = byteweld.count(sys.argv[1], recipe="from-scratch", special_tokens=["<|endoftext|>"],
                        num_threads=2)
assert counts.total > 30_000_000, counts.total
print(peak() - before)
"""


@needs_proc
@pytest.mark.parametrize("separator", [END, " ", "\n"], ids=["specials", "one line", "lines"])
def test_counting_a_file_of_200_megabytes_needs_a_few(tmp_path, separator):
    file = tmp_path / "large.txt"
    block = (story(1_000_000) + separator).replace("\n", " " if separator == " " else "\n")
    try:
        with file.open("w", newline="") as out:
            for _ in range(200):
                out.write(block)
        assert file.stat().st_size >= 200_000_000
        assert growth_of_peak(COUNT, str(file)) < 24_000_000
    finally:
        file.unlink()


# ---------------------------------------------------------------------- the course's files


def gpt2_bytes() -> dict[str, int]:
    """The letters of GPT-2's files and their bytes, as the course's test reads them."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = {chr(byte): byte for byte in visible}
    return letters | {chr(256 + n): byte for n, byte in enumerate(hidden)}


def from_letters(text: str) -> bytes:
    letters = gpt2_bytes()
    return bytes(letters[letter] for letter in text)


@needs_course
def test_merges_and_vocabulary_of_the_course_are_learned_exactly():
    tok = byteweld.train(
        COURSE / "corpus.en", vocab_size=500, recipe="from-scratch", special_tokens=[END]
    )
    lines = (COURSE / "train-bpe-reference-merges.txt").read_text("utf-8").splitlines()
    merges = [tuple(from_letters(part) for part in line.split(" ")) for line in lines]
    assert len(merges) == 243
    assert tok.vocab.merges == merges
    vocab = json.loads((COURSE / "train-bpe-reference-vocab.json").read_text("utf-8"))
    tokens = {text.encode() if text == END else from_letters(text) for text in vocab}
    assert sorted(tok.vocab.tokens) == sorted(vocab.values()) == list(range(500))
    assert set(tok.vocab.tokens.values()) == tokens


@pytest.fixture(scope="module")
def r50k() -> tuple[Tokenizer, Any]:
    """GPT-2's vocabulary in byteweld, and in tiktoken itself."""
    if not R50K.is_file():
        pytest.skip(f"GPT-2's ranks: no {R50K}")
    tiktoken = pytest.importorskip("tiktoken")
    with gzip.open(R50K, "rt", encoding="ascii") as file:
        pairs = [line.split() for line in file]
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    specials = {END: 50256}
    theirs = tiktoken.Encoding(
        "r50k", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=specials
    )
    return Tokenizer.from_ranks(ranks, pattern=PATTERN, special_tokens=specials), theirs


@needs_course
@pytest.mark.parametrize("name", ["tinystories_sample.txt", "address.txt", "german.txt"])
def test_a_stream_of_lines_has_the_ids_of_tiktoken_on_the_whole(r50k, name):
    ours, theirs = r50k
    text = (COURSE / name).read_text("utf-8")
    expected = theirs.encode(text, allowed_special={END})
    assert ours.encode(text, allowed_special={END}) == expected
    with (COURSE / name).open(encoding="utf-8", newline="") as lines:
        assert list(ours.encode_iterable(lines, allowed_special={END})) == expected
    assert ours.decode(expected) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "🙃",
        "Hello, how are you?",
        "Héllò hôw are ü? 🙃",
        f"Héllò hôw {DOUBLE} are ü? 🙃{END}",
        f"{END}\n\nHello, how\n\n\n",
    ],
)
def test_the_texts_of_the_course_have_the_ids_of_tiktoken(r50k, text):
    ours, theirs = r50k
    ids = ours.encode(text, allowed_special="all")
    assert ids == theirs.encode(text, allowed_special="all")
    assert ours.decode(ids) == text


def test_ranks_that_were_learned_here_have_the_ids_of_tiktoken():
    tiktoken = pytest.importorskip("tiktoken")
    learned = train(story(100_000), vocab_size=2000)
    ranks = {token: token_id for token_id, token in learned.vocab.tokens.items()}
    specials = {END: 2000, DOUBLE: 2001}
    theirs = tiktoken.Encoding(
        "story", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=specials
    )
    ours = Tokenizer.from_ranks(ranks, pattern=PATTERN, special_tokens=specials)
    merges = Tokenizer.from_merges(
        learned.vocab.tokens, learned.vocab.merges, special_tokens=[END, DOUBLE], pattern=PATTERN
    )
    for text in (
        story(50_000, seed=2),
        f"Héllò hôw {DOUBLE} are ü? 🙃{END}",
        f"{END}\n\n a\n\n\n",
        "",
    ):
        expected = theirs.encode(text, allowed_special="all")
        assert ours.encode(text, allowed_special="all") == expected
        assert merges.encode(text, allowed_special="all") == expected
        lines = text.splitlines(keepends=True)
        assert list(ours.encode_iterable(lines, allowed_special="all")) == expected
        assert ours.decode(expected) == text


@needs_course
def test_a_merge_list_of_gpt2_is_gpt2(r50k):
    ours, theirs = r50k
    vocab = dict(ours.vocab.tokens)
    again = Tokenizer.from_merges(vocab, ours.vocab.merges, special_tokens=[END, DOUBLE])
    assert again.vocab.special_tokens[END] == 50256
    text = (COURSE / "tinystories_sample.txt").read_text("utf-8")
    assert again.encode_ordinary(text) == theirs.encode_ordinary(text)
    doubled = again.encode(f"a{DOUBLE}{END}", allowed_special="all")
    assert doubled == [64, again.vocab.special_tokens[DOUBLE], 50256]


@needs_course
def test_a_longest_token_keeps_its_leading_space():
    # The seed's longest token on TinyStories is b' accomplishment'; the corpus of the course is
    # smaller, but its long tokens have the same shape.
    tok = byteweld.train(COURSE / "corpus.en", vocab_size=3000, recipe="from-scratch")
    longest = max(tok.vocab.ids, key=len)
    assert longest.startswith(b" ")
    assert longest[1:].decode().isalpha()


def test_the_longest_tokens_of_a_story_keep_their_leading_space():
    text = "".join(letter for letter in story(200_000) if letter.isascii())
    tok = train(text, vocab_size=3000)
    longest = max(map(len, tok.vocab.ids))
    for token in (token for token in tok.vocab.ids if len(token) >= longest - 1):
        assert token.startswith(b" ")
        assert token[1:].isalpha()
