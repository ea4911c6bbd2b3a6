"""Changes to bytes, to lines, to 32-bit fields and to JSON values.

Each takes a generator and returns new content; the same state of the generator gives the same.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

EDGES = (0, 1, 2, 127, 128, 255, 256, 257, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)
WIDE = (*EDGES, -1, -(2**31), 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40)

# ---------------------------------------------------------------------- bytes


def flip(rng: Random, data: bytes, other: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def overwrite(rng: Random, data: bytes, other: bytes) -> bytes:
    at = rng.randrange(len(data))
    chosen = rng.choice(
        (b'"', b"{", b"]", b",", b"0", b"\n", b" ", b"\\", b"\xff", b"\0", b"\xed\xa0\x80")
    )
    return data[:at] + chosen + data[at + len(chosen) :]


def truncate(rng: Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def insert(rng: Random, data: bytes, other: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.choice((1, 1, 4, 40))) + data[at:]


def remove(rng: Random, data: bytes, other: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 1, 2, 16, 200)) :]


def splice(rng: Random, data: bytes, other: bytes) -> bytes:
    at = rng.randrange(len(data))
    start = rng.choice((at, rng.randint(0, len(other))))
    return data[:at] + other[start:]


def repeat(rng: Random, data: bytes, other: bytes) -> bytes:
    at = rng.randrange(len(data))
    block = data[at : at + rng.choice((1, 8, 60, 600))]
    return data[:at] + block * rng.choice((2, 2, 3, 50)) + data[at + len(block) :]


def zero(rng: Random, data: bytes, other: bytes) -> bytes:
    at, size = rng.randrange(len(data)), rng.choice((1, 4, 64, 512))
    return data[:at] + bytes(min(size, len(data) - at)) + data[at + size :]


def append(rng: Random, data: bytes, other: bytes) -> bytes:
    return data + rng.choice((b"\n", b"\0", b" ", b"{}", other[:200], data))


_BYTES = (flip, flip, overwrite, overwrite, truncate, insert, remove, splice, repeat, zero, append)


def change_bytes(rng: Random, data: bytes, other: bytes = b"") -> bytes:
    """Change any bytes; `other` is a file to take parts from."""
    return rng.choice(_BYTES)(rng, data or b"\0", other)


# ---------------------------------------------------------------------- 32-bit fields


def change_u32(rng: Random, data: bytes, start: int = 0, stop: int | None = None) -> bytes:
    """Set a little-endian field at a multiple of four after `start` to an edge or a neighbor."""
    stop = len(data) if stop is None else min(stop, len(data))
    count = (stop - start) // 4
    if count <= 0:
        return data
    at = start + 4 * rng.randrange(count)
    (old,) = struct.unpack_from("<I", data, at)
    (other,) = struct.unpack_from("<I", data, start + 4 * rng.randrange(count))
    new = rng.choice((old + 1, old - 1, other, other, rng.choice(EDGES), rng.randrange(600)))
    return data[:at] + struct.pack("<I", new % 2**32) + data[at + 4 :]


# ---------------------------------------------------------------------- lines


def change_lines(rng: Random, data: bytes, spare: Sequence[bytes] = ()) -> bytes:
    """Drop, repeat, swap or move lines, or add one of `spare`."""
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    draw = rng.randrange(7)
    if draw == 0:
        del lines[one]
    elif draw == 1:
        lines.insert(other, lines[one])
    elif draw == 2:
        lines[one], lines[other] = lines[other], lines[one]
    elif draw == 3 and spare:
        lines.insert(one, rng.choice(spare))
    elif draw == 4:
        lines[one] += rng.choice((b" ", b"\r", b"\t", b" 1", b"=", b"\0"))
    elif draw == 5:
        left, _, right = lines[one].partition(b" ")
        value = rng.choice((*WIDE, 300, 301, "1_0", "0x1", "+1", "01", "١", "1.0", "1e2", "-0"))
        lines[one] = left + b" " + str(value).encode()
    else:
        left, _, right = lines[one].partition(b" ")
        first, _, second = lines[other].partition(b" ")
        lines[one], lines[other] = first + b" " + right, left + b" " + second
    return b"\n".join(lines)


# ---------------------------------------------------------------------- JSON


class Raw(str):
    """JSON text to write as it is, which no Python value gives."""

    __slots__ = ()


_MARK = "\ue000raw"
_RAW = (
    *("NaN", "Infinity", "-Infinity", "1E999", "-0", "0.5", "1.0", "1e3", "9" * 5000, "00", "'a'"),
    *(
        '"\\ud800"',
        '"\\udfff\\ud800"',
        '"\\ud83d\\ude00"',
        '"\\u0000"',
        '"\\x"',
        "tru",
        "",
        "[" * 40,
    ),
    *(
        "[" * 900 + "]" * 900,
        "[" * 20_000,
        '{"a":' * 700 + "1" + "}" * 700,
        '{"a":' * 20_000,
        "/**/1",
    ),
)
_VALUES = (
    *(None, True, False, *WIDE, "", "a", "\0", "é", "x" * 300, "<|end|>", "\ufeff", " ", "Ġthe"),
    *([], {}, [[]], [None], {"": None}, {"type": "Sequence"}, [1, 2], ["a", "b"], {"a": 300}),
    *(Raw(text) for text in _RAW),
)


def load(data: bytes) -> Any:
    return json.loads(data)


def dump(value: Any) -> bytes:
    """Write a value; `Raw` strings and keys are written as they are."""
    raws: list[str] = []

    def mark(item: Any) -> Any:
        if isinstance(item, Raw):
            raws.append(str(item))
            return f"{_MARK}{len(raws) - 1}."
        if isinstance(item, dict):
            if not any(isinstance(x, Raw | dict | list) for pair in item.items() for x in pair):
                return item
            return {mark(key) if isinstance(key, Raw) else key: mark(x) for key, x in item.items()}
        if isinstance(item, list):
            return [mark(x) if isinstance(x, Raw | dict | list) else x for x in item]
        return item

    text = json.dumps(mark(value), ensure_ascii=False)
    for number, raw in enumerate(raws):
        text = text.replace(f'"{_MARK}{number}."', raw)
    return text.encode("utf-8", "surrogatepass")


def change_json(rng: Random, root: Any, *, deep: float = 0.75) -> Any:
    """Change one place in a parsed document; the walk to it treats every level alike."""
    if not isinstance(root, dict | list) or not root:
        return rng.choice(_VALUES)
    holder: Any = root
    while True:
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        value = holder[key]
        if not isinstance(value, dict | list) or not value or rng.random() > deep:
            break
        holder = value
    rng.choice(_EDITS)(rng, root, holder, key)
    return root


def _delete(rng: Random, root: Any, holder: Any, key: Any) -> None:
    del holder[key]


def _replace(rng: Random, root: Any, holder: Any, key: Any) -> None:
    holder[key] = rng.choice(_VALUES)


def _duplicate(rng: Random, root: Any, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.insert(rng.randint(0, len(holder)), holder[key])
    else:
        value = holder[key] if rng.random() < 0.5 else rng.choice(_VALUES)
        holder[Raw(json.dumps(key))] = value  # the same key again


def _rename(rng: Random, root: Any, holder: Any, key: Any) -> None:
    if isinstance(holder, list):
        holder.append(holder.pop(key))
        return
    other = rng.choice(list(holder))
    fresh = (key + "x", key.upper(), "", key[:-1], other + key, Raw('"\\ud800"'), "a" * 300, "\0")
    holder[rng.choice(fresh)] = holder.pop(key)


def _swap(rng: Random, root: Any, holder: Any, key: Any) -> None:
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    other = rng.choice(keys)
    holder[key], holder[other] = holder[other], holder[key]


def _copy(rng: Random, root: Any, holder: Any, key: Any) -> None:
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    holder[key] = holder[rng.choice(keys)]


def _wrap(rng: Random, root: Any, holder: Any, key: Any) -> None:
    holder[key] = [holder[key]] if rng.random() < 0.5 else {"type": holder[key]}


def _tweak(rng: Random, root: Any, holder: Any, key: Any) -> None:
    """A small change that often stays valid."""
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = rng.choice((value + 1, value - 1, value * 2, 300, rng.choice(WIDE)))
    elif isinstance(value, str):
        at = rng.randint(0, len(value))
        middle = rng.choice(("a", "", " ", "é", "\0", "Ġ", "\u0301", "ab" * 20, value))
        holder[key] = value[:at] + middle + value[at + rng.randint(0, 1) :]
    elif isinstance(value, list) and value:
        draw = rng.randrange(4)
        if draw == 0:
            rng.shuffle(value)
        elif draw == 1:
            value.reverse()
        elif draw == 2:
            del value[rng.randrange(len(value)) :]
        else:
            value.append(rng.choice(value))
    elif isinstance(value, dict) and value:
        items = list(value.items())
        rng.shuffle(items)
        value.clear()
        value.update(items)
    else:
        holder[key] = rng.choice(_VALUES)


def _move(rng: Random, root: Any, holder: Any, key: Any) -> None:
    """Put another part of the document here."""
    part = root
    for _ in range(rng.randint(1, 3)):
        if not isinstance(part, dict | list) or not part:
            break
        part = part[rng.choice(list(part)) if isinstance(part, dict) else rng.randrange(len(part))]
    holder[key] = json.loads(dump(part)) if not _has_raw(part) else None


def _has_raw(value: Any) -> bool:
    if isinstance(value, dict):
        return any(isinstance(key, Raw) or _has_raw(item) for key, item in value.items())
    if isinstance(value, list):
        return any(map(_has_raw, value))
    return isinstance(value, Raw)


Edit = Callable[[Random, Any, Any, Any], None]
_EDITS: tuple[Edit, ...] = (
    *(_delete, _replace, _duplicate, _rename, _swap, _copy, _wrap, _move),
    *(_tweak, _tweak, _tweak, _tweak, _swap),
)
