//! Extracts one field of a JSON record without building the rest.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

/// The bytes of a record's string field. A lone surrogate becomes its three bytes, which are not
/// UTF-8.
pub(crate) fn field(record: &[u8], name: &str) -> Result<Vec<u8>, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(record);
    let found = Record { name }
        .deserialize(&mut deserializer)
        .and_then(|found| deserializer.end().map(|()| found))
        .map_err(|e| format!("cannot parse the record: {e}"))?;
    found.ok_or_else(|| {
        format!("the record has no field {name:?}; pass the field of the text as field= (--field)")
    })
}

struct Record<'a> {
    name: &'a str,
}

impl<'de> DeserializeSeed<'de> for Record<'_> {
    type Value = Option<Vec<u8>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Record<'_> {
    type Value = Option<Vec<u8>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.name {
                found = Some(map.next_value::<Text>()?.0);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

struct Text(Vec<u8>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text, E> {
                Ok(Text(bytes.to_vec()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.as_bytes().to_vec()))
            }
        }
        // As bytes, serde_json accepts lone surrogates, so that the caller can handle them.
        deserializer.deserialize_bytes(Bytes)
    }
}
