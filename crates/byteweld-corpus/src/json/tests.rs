//! The same answers as `serde_json`, on records and on what is left of them after damage.

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{Invalid, MAX_DEPTH, field, unescape};

fn text(record: &[u8]) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let found = field(record, "text").map_err(|invalid| invalid.message("text"))?;
    unescape(found, &mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

#[test]
fn a_field_that_is_not_a_string_is_named() {
    for (record, expected) in [
        (r#"{"text": null}"#, Invalid::Null),
        (r#"{"text": 1.5}"#, Invalid::NotString("a number")),
        (r#"{"text": -}"#, Invalid::NotString("a number")),
        (r#"{"text": true}"#, Invalid::NotString("true or false")),
        (r#"{"text": ["a"]}"#, Invalid::NotString("a list")),
        (r#"{"text": {}}"#, Invalid::NotString("an object")),
        (r#"{"texts": "a"}"#, Invalid::NoField),
        (r#"{"text": nul}"#, Invalid::NotJson { expected: "a value", column: 10 }),
        (r#"{"text": }"#, Invalid::NotJson { expected: "a value", column: 10 }),
        (r#"{"text": "#, Invalid::NotJson { expected: "a value", column: 10 }),
        (r#""text""#, Invalid::NotJson { expected: "an object", column: 1 }),
    ] {
        assert_eq!(field(record.as_bytes(), "text"), Err(expected), "{record}");
    }
}

/// The same by `serde_json`; `None` for an error.
fn expected(record: &[u8]) -> Option<Vec<u8>> {
    struct Record;
    struct Key(Vec<u8>);
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = Key;
        fn expecting(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Ok(())
        }
        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Key, E> {
            Ok(Key(bytes.to_vec()))
        }
    }
    impl<'de> Deserialize<'de> for Key {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_bytes(Bytes)
        }
    }
    impl<'de> Visitor<'de> for Record {
        type Value = Option<Vec<u8>>;
        fn expecting(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Ok(())
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(key) = map.next_key::<String>()? {
                if key == "text" {
                    found = Some(map.next_value::<Key>()?.0);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }
    impl<'de> DeserializeSeed<'de> for Record {
        type Value = Option<Vec<u8>>;
        fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
            d.deserialize_map(self)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_slice(record);
    let found = Record.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    found
}

const RECORDS: [&str; 10] = [
    r#"{"text": "one\n\"two\" \\ \/ \b\f\r\t \u0041\u00e9\u6f22", "n": [1, -2.5e+10, {}]}"#,
    r#"{"a": {"b": [[], [{}, {"text": "no"}], null, true, false]}, "text": "yes"}"#,
    r#"{"text": "\ud83d\ude00 \ud83d \ude00 \ud83d\ud83d\ude00 \ud83dx"}"#,
    r#"{"te\u0078t": "an escaped key", "texts": "x", "tex": "y"}"#,
    r#"{"text": "first", "text": "last"}"#,
    r#"  {  "text"  :  ""  }  "#,
    r#"{"n": 0, "m": -0.0E-1, "k": 10, "text": "漢👍"}"#,
    r#"{"text": "a", "x": "\u0000\uFFFF"}"#,
    r#"{"x": [1, 2, [3, "]"], {"y": "}"}], "text": "b"}"#,
    r"{}",
];

#[test]
fn records_are_read_as_serde_json_reads_them() {
    for record in RECORDS {
        assert_eq!(text(record.as_bytes()).ok(), expected(record.as_bytes()), "{record}");
    }
}

#[test]
fn damaged_records_are_read_as_serde_json_reads_them() {
    // Two bytes of each record are replaced, by every pair of these; or it ends early.
    const BYTES: &[u8] = b"\"\\{}[]:,ut0-1.eEd8 \x01\x80\xFF";
    let mut found = [0; 2];
    for record in RECORDS {
        for end in 0..record.len() {
            let cut = &record.as_bytes()[..end];
            assert_eq!(text(cut).ok(), expected(cut), "{:?}", String::from_utf8_lossy(cut));
        }
        for at in 0..record.len() - 1 {
            for &first in BYTES {
                for &second in BYTES {
                    let mut damaged = record.as_bytes().to_vec();
                    (damaged[at], damaged[at + 1]) = (first, second);
                    let (ours, theirs) = (text(&damaged).ok(), expected(&damaged));
                    assert_eq!(ours, theirs, "{:?}", String::from_utf8_lossy(&damaged));
                    found[usize::from(ours.is_some())] += 1;
                }
            }
        }
    }
    assert!(found[0] > 10_000 && found[1] > 10_000, "{found:?}");
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!("{{\"x\": {open}{close}, \"text\": \"a\"}}")
    };
    assert_eq!(text(nested(MAX_DEPTH).as_bytes()).unwrap(), b"a");
    let error = text(nested(MAX_DEPTH + 2).as_bytes()).unwrap_err();
    assert!(error.contains("less nesting"), "{error}");
    let objects = "{\"a\":".repeat(1 << 20);
    assert!(text(format!("{{\"x\": {objects}").as_bytes()).is_err());
}
