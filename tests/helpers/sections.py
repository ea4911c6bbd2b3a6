"""BPE1 sections, valid or not, by the byte tables of docs/formats/bpe1.md, for both readers."""

from __future__ import annotations

import struct

from byteweld import Vocabulary
from byteweld._native import crc32c

ROLES = {"bos": 256, "eos": 257, "pad": 258, "unk": 259}
SPECIALS = {f"<|{role}|>": token_id for role, token_id in ROLES.items()}
SPECIAL_BYTES = {token_id: text.encode() for text, token_id in SPECIALS.items()}
BYTES = {byte: bytes([byte]) for byte in range(256)}
TOKENS = [(260, b"th"), (261, b"the")]
MERGES = [(116, 104, 260, 0), (260, 101, 261, 1)]
MOST = 2**32 - 1


def the(pattern: str | None = None) -> Vocabulary:
    """Return the vocabulary of the sections with TOKENS and MERGES."""
    return Vocabulary(
        BYTES | SPECIAL_BYTES | dict(TOKENS),
        [merge[:3] for merge in MERGES],
        special_tokens=SPECIALS,
        roles=ROLES,
        pattern=pattern,
    )


def section(
    tokens: list[tuple[int, bytes]] = TOKENS,
    merges: list[tuple[int, int, int, int]] = MERGES,
    *,
    magic: bytes = b"BPE1",
    version: int = 1,
    vocab_size: int = 262,
    roles: tuple[int, ...] = (256, 257, 258, 259),
    counts: tuple[int, int] | None = None,
    pattern: bytes = b"",
    pattern_length: int | None = None,
    fingerprint: str = "00" * 32,
    more: bytes = b"",
) -> bytes:
    """Return a section, valid or not; one of version 2 has the right checksum."""
    counts = counts or (len(tokens), len(merges))
    data = struct.pack("<4s8I", magic, version, vocab_size, *roles, *counts)
    if version == 2:
        length = len(pattern) if pattern_length is None else pattern_length
        data += struct.pack("<I", length) + bytes.fromhex(fingerprint) + pattern
    data += b"".join(struct.pack("<2I", i, len(token)) + token for i, token in tokens)
    data += b"".join(struct.pack("<4I", *merge) for merge in merges) + more
    return signed(data) if version == 2 else data


def signed(data: bytes) -> bytes:
    """Append the checksum of version 2."""
    return data + struct.pack("<I", crc32c(data))


def _length(data: bytes, at: int, length: int) -> bytes:
    """Return a section with another length of the token record whose length is at an offset."""
    return data[:at] + struct.pack("<I", length) + data[at + 4 :]


LOOSE = section([(260, b"loose")], [], vocab_size=261)  # ends with a token
_MADE = section(
    [(260, b"<|"), (261, b"bo"), (262, b"s|"), (263, b"bos|"), (264, b"<|bos|")],
    [
        *((60, 124, 260, 0), (98, 111, 261, 1), (115, 124, 262, 2)),
        *((261, 262, 263, 3), (260, 263, 264, 4), (264, 62, 256, 5)),
    ],
    vocab_size=265,
)
_GPT2 = the("gpt2").fingerprint

# What is wrong: the section, the offset and words of Python's error, and the status in C; "OK" for
# fingerprints and names of patterns, which C does not check.
REFUSED: dict[str, tuple[bytes, int, str, str]] = {
    "nothing": (b"", 0, "expected b'BPE1'", "BAD_MAGIC"),
    "wrong magic": (section(magic=b"BPE2"), 0, "expected b'BPE1'", "BAD_MAGIC"),
    "a header cut short": (section()[:35], 35, "ends inside the header", "TRUNCATED"),
    "version 0": (section(version=0), 4, "version is 0", "BAD_VERSION"),
    "version 3": (section(version=3), 4, "version is 3; only 1 and 2", "BAD_VERSION"),
    "a size below the truth": (section(vocab_size=261), 46, "the last id is 260", "BAD_ID"),
    "a size above the truth": (section(vocab_size=263), 8, "vocab_size is 263", "BAD_VOCAB_SIZE"),
    "a size below the base": (section(vocab_size=259), 8, "make 260 to 262 ids", "BAD_VOCAB_SIZE"),
    "a size of all ids": (section(vocab_size=MOST), 8, "size is 4294967295", "BAD_VOCAB_SIZE"),
    "a table that fills too few ids": (section([*TOKENS, (97, b"a")], vocab_size=263), 8, "the tables hold 262 ids", "BAD_VOCAB_SIZE"),
    "bos among the bytes": (section(roles=(255, 257, 258, 259)), 12, "bos is id 255", "BAD_SPECIAL"),
    "eos after the last id": (section(roles=(256, 262, 258, 259)), 16, "eos is id 262", "BAD_SPECIAL"),
    "pad that is bos": (section(roles=(256, 257, 256, 259)), 20, "bos and pad are both id 256", "BAD_SPECIAL"),
    "unk of all ones": (section(roles=(256, 257, 258, MOST)), 24, "unk is id 4294967295", "BAD_SPECIAL"),
    "an id listed twice": (section([*TOKENS, (260, b"th")]), 57, "id 260, which an earlier record has", "BAD_ID"),
    "a byte listed twice": (section([*TOKENS, (9, b"\t"), (9, b"\t")]), 66, "id 9, which an", "BAD_ID"),
    "an id out of range": (section([(260, b"th"), (262, b"the")]), 46, "has id 262", "BAD_ID"),
    "an empty token": (section([(260, b""), (261, b"the")]), 40, "an empty token", "BAD_LENGTH"),
    "a byte listed as another": (section([*TOKENS, (97, b"b")]), 57, "it is always b'a'", "BAD_TOKEN"),
    "a special listed as another": (section([*TOKENS, (256, b"<s>")]), 57, "always b'<|bos", "BAD_TOKEN"),
    "two ids of one token": (section([(260, b"th"), (261, b"th")]), 46, "260 and 261 are both b'th'", "DUPLICATE_TOKEN"),
    "a learned token that is a byte": (section([(260, b"t"), (261, b"the")]), 36, "116 and 260 are both b't'", "DUPLICATE_TOKEN"),
    "a left part out of range": (section(merges=[(262, 104, 260, 0), MERGES[1]]), 57, "262 is not a token", "BAD_MERGE"),
    "a right part out of range": (section(merges=[(116, MOST, 260, 0), MERGES[1]]), 57, "4294967295 is not a token", "BAD_MERGE"),
    "a missing merge output": (section(merges=[MERGES[0], (260, 101, 262, 1)]), 73, "262 is not a token", "BAD_MERGE"),
    "a special token as part": (section(merges=[(256, 104, 260, 0), MERGES[1]]), 57, "256 is the special token b'<|bos|>'", "BAD_MERGE"),
    "a special token as output": (section(merges=[(116, 104, 259, 0), MERGES[1]]), 57, "token 259 is b'<|unk|>'", "BAD_MERGE"),
    "an output of other bytes": (section(merges=[(104, 116, 260, 0), MERGES[1]]), 57, "makes b'h' + b't', but token 260 is b'th'", "BAD_MERGE"),
    "a length of the last token that is the first's": (section(TOKENS[:1], [], counts=(2, 0)) + struct.pack("<2I", 261, 3), 50, "a token of 3 bytes", "BAD_LENGTH"),
    "a part that is not a token": (section(merges=[MERGES[0], (999, 101, 261, 1)]), 73, "999 is not a token", "BAD_MERGE"),
    "a merge twice": (section(merges=[MERGES[0], MERGES[0]]), 73, "has rank 0, as has an earlier record", "DUPLICATE_MERGE"),
    "a special token that merges make": (_MADE, 172, "merge 5 uses id 256, which is also a special", "BAD_MERGE"),
    "a rank used twice": (section(merges=[MERGES[0], (260, 101, 261, 0)]), 73, "has rank 0, as has an earlier record", "DUPLICATE_MERGE"),
    "a pair used twice": (section(merges=[*MERGES, (116, 104, 260, 2)]), 89, "merges 0 and 2 merge the same pair", "DUPLICATE_MERGE"),
    "one byte too many": (section() + b"\0", 89, "1 bytes follow the last merge", "TRAILING_BYTES"),
    "more merges than counted": (section(counts=(2, 1)), 73, "16 bytes follow the last merge", "TRAILING_BYTES"),
    "fewer merges than counted": (section(counts=(2, 3)), 36, "claims 2 tokens and 3 merges", "BAD_COUNTS"),
    "long tokens that hide missing merges": (section([(260, b"th"), (261, b"t" * 20)], counts=(2, 3)), 74, "3 merge records need 48 bytes, but 32 remain", "BAD_COUNTS"),
    "more tokens than can be": (section(counts=(6, 2)), 36, "claims 6 tokens", "BAD_COUNTS"),
    "billions of tokens": (section([], [], counts=(MOST, 0)) + bytes(4), 36, "but 4 bytes follow it", "BAD_COUNTS"),
    "billions of merges": (section([], [], counts=(0, MOST)) + bytes(4), 36, "but 4 bytes follow it", "BAD_COUNTS"),
    "billions of both": (section([], [], counts=(MOST, MOST)) + bytes(4), 36, "but 4 bytes follow it", "BAD_COUNTS"),
    "a token longer than the file": (_length(section(), 50, 40), 50, "a token of 40 bytes; expected 1 to 35", "BAD_LENGTH"),
    "a token one byte too long": (_length(LOOSE, 40, 6), 40, "a token of 6 bytes; expected 1 to 5", "BAD_LENGTH"),
    "a token of 4 GiB": (_length(section(), 40, MOST), 40, "a token of 4294967295 bytes", "BAD_LENGTH"),
    "a token that swallows the merges": (_length(section(), 50, 35), 89, "2 merge records need 32 bytes, but 0 remain", "BAD_COUNTS"),
    "a token record cut short": (section([(260, b"long token")], [], counts=(2, 0), more=struct.pack("<I3s", 261, b"\1\0\0")), 54, "ends inside token record 1", "TRUNCATED"),
    "version 2, cut": (section(version=2)[:75], 75, "inside the header of version 2", "TRUNCATED"),
    "version 2, a damaged byte": (section(version=2)[:80] + b"?" + section(version=2)[81:], 125, "the checksum is", "BAD_CHECKSUM"),
    "version 2, a damaged checksum": (section(version=2)[:-1] + b"?", 125, "damaged or not complete", "BAD_CHECKSUM"),
    "version 2, a long pattern": (section(version=2, pattern_length=MOST), 36, "a pattern of 4294967295 bytes, but 53 bytes follow it", "BAD_PATTERN"),
    "version 2, a pattern that takes a token": (section(version=2, pattern_length=7), 79, "at least 50 bytes", "BAD_COUNTS"),
    "version 2, not UTF-8": (section(version=2, pattern=b"ab\xff"), 74, "expected UTF-8", "BAD_PATTERN"),
    "version 2, more": (section(version=2, more=b"?"), 125, "1 bytes follow the last merge", "TRAILING_BYTES"),
    "version 2, billions": (section(version=2, counts=(MOST, MOST), vocab_size=MOST), 72, "claims 4294967295 tokens", "BAD_COUNTS"),
    "version 2, a wrong size": (section(version=2, vocab_size=263), 8, "vocab_size is 263", "BAD_VOCAB_SIZE"),
    "version 2, a wrong role": (section(version=2, roles=(256, 257, 258, 12)), 24, "unk is id 12", "BAD_SPECIAL"),
    "version 2, a wrong merge": (section(merges=[(116, 104, 261, 0), MERGES[1]], version=2), 93, "makes b't' + b'h', but token 261 is b'the'", "BAD_MERGE"),
    "another fingerprint": (section(version=2, pattern=b"gpt2"), 40, f"has {_GPT2}; the section must be written again", "OK"),
    "another pattern": (section(version=2, pattern=b"ck", fingerprint=_GPT2), 40, f"fingerprint is {_GPT2}", "OK"),
    "an unknown name": (section(version=2, pattern=b"gtp2"), 72, "unknown pattern 'gtp2'", "OK"),
}  # fmt: skip
