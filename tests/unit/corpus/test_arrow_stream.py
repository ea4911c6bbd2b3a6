"""Hand-made Arrow C streams: what a producer can get wrong within its own memory is an error."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from byteweld.corpus import Corpus, Reading
from byteweld.errors import CorpusError

Pointer = ctypes.c_void_p
SKIP = Reading(on_error="skip")


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


SchemaRelease = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
ArrayRelease = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))
StreamRelease = ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))
GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))
GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))
GetLastError = ctypes.CFUNCTYPE(Pointer, ctypes.POINTER(Stream))

Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", SchemaRelease),
    ("private_data", Pointer),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(Pointer)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", ArrayRelease),
    ("private_data", Pointer),
]
Stream._fields_ = [
    ("get_schema", GetSchema),
    ("get_next", GetNext),
    ("get_last_error", GetLastError),
    ("release", StreamRelease),
    ("private_data", Pointer),
]

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [Pointer, ctypes.c_char_p, Pointer]


class Producer:
    """A stream of one array, made field by field; counts what is released."""

    def __init__(self, schema: Schema, array: Array | None, *, error: bytes | None = None) -> None:
        self.released = {"schema": 0, "array": 0, "stream": 0}
        self._left = [] if array is None else [array]
        self._schema = schema
        self._error = None if error is None else ctypes.create_string_buffer(error)
        self._callbacks = {
            "schema": SchemaRelease(self._release("schema")),
            "array": ArrayRelease(self._release("array")),
            "stream": StreamRelease(self._release("stream")),
        }
        self.stream = Stream(
            GetSchema(self._get_schema),
            GetNext(self._get_next),
            GetLastError(lambda _: ctypes.addressof(self._error) if self._error else None),
            self._callbacks["stream"],
            None,
        )
        self._kept = array

    def _release(self, what: str) -> Callable[[Any], None]:
        def release(pointer: Any) -> None:
            self.released[what] += 1
            pointer.contents.release = type(pointer.contents.release)()

        return release

    def _get_schema(self, _: object, out: Any) -> int:
        ctypes.memmove(out, ctypes.byref(self._schema), ctypes.sizeof(Schema))
        out.contents.release = self._callbacks["schema"]
        return 0

    def _get_next(self, _: object, out: Any) -> int:
        if self._error is not None:
            return 5
        if self._left:
            ctypes.memmove(out, ctypes.byref(self._left.pop()), ctypes.sizeof(Array))
            out.contents.release = self._callbacks["array"]
        return 0

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return new_capsule(ctypes.addressof(self.stream), b"arrow_array_stream", None)

    def read(self) -> list[bytes]:
        return list(Corpus(table=self).documents())


def schema(format_: bytes, **fields: Any) -> Schema:
    return Schema(format=format_, name=b"text", **fields)


def array(length: int, *buffers: bytes | None, offset: int = 0, **fields: Any) -> Array:
    kept = [
        None if data is None else ctypes.create_string_buffer(data, len(data)) for data in buffers
    ]
    pointers = (Pointer * len(buffers))(
        *[None if data is None else ctypes.addressof(data) for data in kept]
    )
    made = Array(length=length, offset=offset, n_buffers=len(buffers), buffers=pointers, **fields)
    made.kept = kept, pointers  # type: ignore[attr-defined]
    return made


def ints(*values: int, width: int = 4) -> bytes:
    return b"".join(value.to_bytes(width, "little", signed=True) for value in values)


def view(length: int, index: int, offset: int) -> bytes:
    return ints(length) + b"abcd" + ints(index, offset)


def test_a_hand_made_stream_is_read_and_released():
    producer = Producer(schema(b"u"), array(2, None, ints(0, 1, 3), b"abc"))
    assert producer.read() == [b"a", b"bc"]
    assert producer.released == {"schema": 1, "array": 1, "stream": 1}


def test_offsets_of_arrays_and_validity():
    # Bits 2 and 4 of the bitmap are set; the array starts at its second row.
    made = array(3, b"\x14", ints(0, 9, 10, 11, 12, 13), b"........." + b"xyz.", offset=1)
    documents = Corpus(table=Producer(schema(b"u"), made), reading=SKIP).documents()
    assert list(documents) == [b"y"]


BAD = {
    "falling offsets": (b"u", array(2, None, ints(0, 3, 1), b"abc"), "offset 1 follows 3"),
    "negative offsets": (b"u", array(2, None, ints(-2, 0, 1), b"abc"), "offset -2 follows 0"),
    "negative large offsets": (
        b"U",
        array(1, None, ints(-(2**62), 1, width=8), b"abc"),
        "must not fall",
    ),
    "a negative length": (b"u", array(-1, None, ints(0), b""), "cannot exist"),
    "a huge length": (b"u", array(2**62, None, ints(0, 1), b"a"), "cannot exist"),
    "a huge offset": (b"u", array(1, None, ints(0, 1), b"a", offset=2**63 - 1), "cannot exist"),
    "a negative offset": (b"u", array(1, None, ints(0, 1), b"a", offset=-1), "cannot exist"),
    "too few buffers": (b"u", array(1, None, ints(0, 1)), "an array has 2 buffers; expected 3"),
    "no buffers": (b"u", array(1), "an array has 0 buffers"),
    "no offsets": (b"u", array(1, None, None, b"a"), "the offsets of a column are missing"),
    "no text": (b"u", array(1, None, ints(0, 1), None), "the text of a column is missing"),
    "no views": (b"vu", array(1, None, None, ints(width=8)), "the views of a column are missing"),
    "a view of no buffer": (
        b"vu",
        array(1, None, view(13, 1, 0), b"x" * 20, ints(20, width=8)),
        "row 0 of a batch is outside its buffers",
    ),
    "a view beyond its buffer": (
        b"vu",
        array(1, None, view(13, 0, 8), b"x" * 20, ints(20, width=8)),
        "outside its buffers",
    ),
    "a view before its buffer": (
        b"vu",
        array(1, None, view(13, 0, -1), b"x" * 20, ints(20, width=8)),
        "outside its buffers",
    ),
    "a view of negative length": (
        b"vu",
        array(1, None, view(-1, 0, 0), b"x" * 20, ints(20, width=8)),
        "outside its buffers",
    ),
    "no sizes": (b"vu", array(1, None, view(1, 0, 0), b"x", None), "no list of buffer sizes"),
    "no list of sizes": (b"vu", array(1, None, view(1, 0, 0)), "no list of buffer sizes"),
    "a negative size": (
        b"vu",
        array(1, None, view(1, 0, 0), b"x", ints(-1, width=8)),
        "a buffer of a column of views is missing",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_array_is_an_error(what):
    format_, made, message = BAD[what]
    producer = Producer(schema(format_), made)
    with pytest.raises(
        CorpusError, match=f"^Producer: the table is damaged after row 0: .*{message}"
    ):
        producer.read()
    assert producer.released["array"] == 1


@pytest.mark.parametrize("index", [2, -1])
def test_an_index_outside_its_dictionary(index):
    values = array(2, None, ints(0, 1, 2), b"ab")
    made = array(1, None, ints(index, width=1), dictionary=ctypes.pointer(values))
    of_values = schema(b"u")
    producer = Producer(schema(b"c", dictionary=ctypes.pointer(of_values)), made)
    with pytest.raises(CorpusError, match="an index is outside the dictionary of 2 values"):
        producer.read()


def test_a_column_shorter_than_its_batch():
    child = array(1, None, ints(0, 1), b"a")
    children = (ctypes.POINTER(Array) * 1)(ctypes.pointer(child))
    of_child = schema(b"u")
    of_children = (ctypes.POINTER(Schema) * 1)(ctypes.pointer(of_child))
    of_batch = Schema(format=b"+s", n_children=1, children=of_children)
    for rows, offset in ((2, 0), (1, 1)):
        made = array(rows, None, offset=offset, n_children=1, children=children)
        with pytest.raises(CorpusError, match="a column has 1 rows; expected"):
            Producer(of_batch, made).read()
    with pytest.raises(CorpusError, match="fewer columns than the schema"):
        Producer(of_batch, array(1, None)).read()


def test_an_error_of_the_stream_has_its_message():
    with pytest.raises(CorpusError, match="after row 0: the producer broke"):
        Producer(schema(b"u"), None, error=b"the producer broke").read()


def test_what_is_not_a_stream():
    class Wrong:
        def __arrow_c_stream__(self, requested: object = None) -> object:
            return "capsule"

    class Other:
        def __arrow_c_stream__(self, requested: object = None) -> object:
            return new_capsule(1, b"another", None)

    for table in (Wrong(), Other()):
        with pytest.raises(TypeError, match="did not return an Arrow stream capsule"):
            list(Corpus(table=table).documents())
