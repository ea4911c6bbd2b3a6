"""The named split patterns, each with its source and date.

A pattern splits text into pre-tokens: each match is one, and so is the text between two matches, so
that nothing is lost. The patterns are written in a dialect that Python's `regex`, Rust's fancy-regex
and Oniguruma (Hugging Face) read the same way: no possessive `{m,n}+`, no `$`. One matches bytes,
which no other library can do to a str.

>>> tokens = {b: bytes([b]) for b in range(256)}
>>> for name in ("gpt2", "cl100k", "qwen2"):
...     vocab = byteweld.Vocabulary(tokens, pattern=name)
...     byteweld.Tokenizer(vocab).pretokenize("in 2026!")
[b'in', b' 2026', b'!']
[b'in', b' ', b'202', b'6', b'!']
[b'in', b' ', b'2', b'0', b'2', b'6', b'!']
"""

from __future__ import annotations

from byteweld.errors import PatternError, check_text, nearest

# GPT-2 (openai/gpt-2 `encoder.py`, 2019), spelled as in tiktoken < 0.8 and bpetite.
GPT2 = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

# GPT-4 (tiktoken 0.14 `cl100k_base`, 2023, reordered 2024): white space at the very end of a text is
# one pre-token, before the newline rule. `(?![\s\S])` is "end of text" in every dialect.
CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s+(?![\s\S])|\s*[\r\n]|\s+(?!\S)|\s"""
)

# GPT-4o (tiktoken 0.14 `o200k_base`, 2024).
O200K = (
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)

# ck-bpe-train's `tokenizer.json` (2025): cl100k's older order with unlimited digits.
CK = (
    r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s*[\r\n]+|\s+(?!\S)|\s+"""
)

# ck's C runtime (2025) with a vocabulary of bytes. It matches bytes: each byte of a non-ASCII
# character is a mark. `(?-u)` is how Rust's regex crate says so.
CK_RUNTIME = (
    r"""(?-u)[^A-Za-z0-9 \n\t\r]?[A-Za-z]+|[0-9]| ?[^A-Za-z0-9 \n\t\r]+\n*| +\n+"""
    r"""| +(?= [A-Za-z0-9])| [A-Za-z]+| [0-9]| +|\n+|(?s:.)"""
)

# Llama 3 (2024), and cl100k's first spelling (2023).
LLAMA3 = CK.replace(r"|\p{N}+|", r"|\p{N}{1,3}|")

# Qwen 2 to 3 (2024): digits one by one.
QWEN2 = CK.replace(r"|\p{N}+|", r"|\p{N}|")

# Qwen 3.5 and 3.6 (2026): marks go with letters.
QWEN3_5 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(
    r"[^\s\p{L}\p{N}]+", r"[^\s\p{L}\p{M}\p{N}]+"
)

# Mistral's tekken (2024): o200k without contractions, digits one by one.
TEKKEN = O200K.replace(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")

# nanochat (2025): cl100k with at most two digits.
NANOCHAT = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
    r"""|\s*[\r\n]|\s+(?!\S)|\s+"""
)

PATTERNS: dict[str, str] = {
    "gpt2": GPT2,
    "cl100k": CL100K,
    "o200k": O200K,
    "llama3": LLAMA3,
    "qwen2": QWEN2,
    "qwen3_5": QWEN3_5,
    "tekken": TEKKEN,
    "nanochat": NANOCHAT,
    "ck": CK,
    "ck-runtime": CK_RUNTIME,
}
"""The split patterns by name, each a regular expression. A pattern decides what can be a token.

| name | from | digits per pre-token | notes |
|---|---|---|---|
| `gpt2` | GPT-2, 2019 | any number | Words and numbers start with at most one space. |
| `cl100k` | GPT-4, 2023 | up to 3 | Words may start with a space or a punctuation mark. |
| `o200k` | GPT-4o, 2024 | up to 3 | Splits camelCase; the recipe `modern` uses it. |
| `llama3` | Llama 3, 2024 | up to 3 | `cl100k`, except for white space at the end of a text. |
| `qwen2` | Qwen 2 to 3, 2024 | 1 | Otherwise `llama3`. |
| `qwen3_5` | Qwen 3.5 and 3.6, 2026 | 1 | `qwen2`, with combining marks in words. |
| `tekken` | Mistral's tekken, 2024 | 1 | `o200k` without contractions such as `'s`. |
| `nanochat` | nanochat, 2025 | up to 2 | Otherwise `llama3`. |
| `ck` | ck-bpe-train, 2025 | any number | Otherwise `llama3`. |
| `ck-runtime` | ck's C runtime, 2025 | 1 | Matches bytes, not characters. |

Wherever byteweld takes a pattern, it takes one of these names or any regular expression.
"""

# Other spellings of these patterns: they split every text in the same way, so they have the same
# name and fingerprint.
_SPELLINGS: dict[str, str] = {
    # Oniguruma and OpenAI's first spelling.
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""": "gpt2",
    # tiktoken 0.14.
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""": "gpt2",
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s""": "cl100k",
    # nanochat's own, with its possessive repeats.
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*"""
    r"""|\s*[\r\n]|\s+(?!\S)|\s+""": "nanochat",
}


def resolve_pattern(pattern: str | None) -> str | None:
    """Return the regular expression for a name or another spelling; None stays None.

    >>> resolve_pattern("gpt2") == GPT2
    True
    >>> resolve_pattern("[a-z]+")
    '[a-z]+'
    """
    if pattern is None:
        return None
    if not isinstance(pattern, str):
        raise TypeError(f"pattern is {pattern!r}; it must be a name, a regular expression or None")
    if pattern in PATTERNS:
        return PATTERNS[pattern]
    check_text("pattern", pattern, PatternError)
    if pattern in _SPELLINGS:
        return PATTERNS[_SPELLINGS[pattern]]
    if _is_word(pattern):  # useless as a pattern; probably a misspelled name
        hint = nearest(pattern, PATTERNS)
        raise PatternError(
            f"unknown pattern {pattern!r}; expected one of {', '.join(PATTERNS)}{hint}"
        )
    return pattern


def as_expression(pattern: str) -> str:
    """Put a bare word into a group, so that it is not taken for the name of a pattern.

    >>> as_expression("gpt2"), as_expression("[a-z]+")
    ('(?:gpt2)', '[a-z]+')
    """
    return f"(?:{pattern})" if _is_word(pattern) else pattern


def _is_word(pattern: str) -> bool:
    return pattern.strip("-") == pattern and pattern.replace("-", "_").isidentifier()


def is_over_bytes(pattern: str | None) -> bool:
    """Whether a pattern matches bytes instead of characters.

    >>> is_over_bytes("ck-runtime"), is_over_bytes("ck")
    (True, False)
    """
    return pattern is not None and resolve_pattern(pattern) == CK_RUNTIME


def pattern_name(pattern: str | None) -> str | None:
    """Return the name of a known pattern, or None.

    >>> pattern_name(GPT2)
    'gpt2'
    """
    if pattern is None:
        return None
    resolved = resolve_pattern(pattern)
    return next((name for name, known in PATTERNS.items() if known == resolved), None)
