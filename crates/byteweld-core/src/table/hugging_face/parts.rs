//! Checked access to the parts of a file.

use super::json::{Kind, Object, Value, show, wrong};
use crate::error::{Error, Result};

/// The error of a valid file that cannot be represented exactly.
pub(super) fn unreadable(what: &str) -> Error {
    Error::Unsupported(format!("{what}, which cannot be read yet"))
}

/// Returns a value that must be a list.
pub(super) fn list<'v, 't>(value: &'v Value<'t>, what: &str) -> Result<&'v [Value<'t>]> {
    match &value.kind {
        Kind::List(items) => Ok(items),
        _ => Err(wrong(format!("{what} is {}; expected a list", value.show()))),
    }
}

/// A value that must be an id; the error says whose.
pub(super) fn id(value: &Value<'_>, whose: &str) -> Result<u32> {
    value.id().ok_or_else(|| {
        let (found, most) = (value.show(), u32::MAX - 1);
        wrong(format!("{whose} has the id {found}; expected an integer in 0..{most}"))
    })
}

/// An object, and what errors call it.
pub(super) struct Part<'v, 't> {
    pub(super) members: &'v Object<'t>,
    pub(super) what: String,
}

impl<'v, 't> Part<'v, 't> {
    pub(super) fn of(value: &'v Value<'t>, what: impl Into<String>) -> Result<Self> {
        let what = what.into();
        match &value.kind {
            Kind::Object(members) => Ok(Self { members, what }),
            _ => Err(wrong(format!("{what} is {}; expected an object", value.show()))),
        }
    }

    /// Rejects other keys, because they may change ids.
    pub(super) fn check_keys(&self, known: &[&str]) -> Result<()> {
        match self.members.iter().find(|(key, _)| !known.contains(&&key[..])) {
            Some((key, _)) => Err(unreadable(&format!("{} has the key {}", self.what, show(key)))),
            None => Ok(()),
        }
    }

    /// A value; none if it is missing or null.
    pub(super) fn get(&self, key: &str) -> Option<&'v Value<'t>> {
        self.find(key).filter(|value| !matches!(value.kind, Kind::Null))
    }

    pub(super) fn find(&self, key: &str) -> Option<&'v Value<'t>> {
        self.members.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(super) fn require(&self, key: &str) -> Result<&'v Value<'t>> {
        self.find(key).ok_or_else(|| missing(&self.what, key))
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool> {
        match self.require(key)?.kind {
            Kind::Bool(flag) => Ok(flag),
            _ => Err(self.other(key, "true or false")),
        }
    }

    /// A flag that may be missing.
    pub(super) fn flag_or(&self, key: &str, default: bool) -> Result<bool> {
        if self.find(key).is_none() { Ok(default) } else { self.flag(key) }
    }

    pub(super) fn text(&self, key: &str) -> Result<&'v str> {
        match &self.require(key)?.kind {
            Kind::String(text) => Ok(text),
            _ => Err(self.other(key, "a string")),
        }
    }

    /// The error of a value that is not what is expected.
    pub(super) fn other(&self, key: &str, expected: &str) -> Error {
        let found = self.find(key).map_or_else(|| "missing".to_owned(), Value::show);
        wrong(format!("{key} of {} is {found}; expected {expected}", self.what))
    }
}

pub(super) fn missing(what: &str, key: &str) -> Error {
    Error::MissingKey(format!("{what} has no key {}", show(key)))
}

/// The steps of a part of the pipeline: none, one, or those of nested Sequences.
pub(super) fn steps<'v, 't>(
    value: Option<&'v Value<'t>>,
    part: &str,
    key: &str,
) -> Result<Vec<(&'v str, Part<'v, 't>)>> {
    let mut steps = Vec::new();
    let mut pending: Vec<&Value<'t>> = value.into_iter().collect();
    while let Some(value) = pending.pop() {
        let mut step = Part::of(value, format!("the {part}"))?;
        let kind = step.text("type")?;
        step.what = format!("the {part} {}", kind.chars().take(200).collect::<String>());
        if kind == "Sequence" {
            step.check_keys(&["type", key])?;
            pending.extend(list(step.require(key)?, &show(key))?.iter().rev());
        } else {
            steps.push((kind, step));
        }
    }
    Ok(steps)
}
