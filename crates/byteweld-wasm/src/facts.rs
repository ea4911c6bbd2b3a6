//! What Python's tables say about public encodings and patterns; `scripts/make_page.py` writes it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::pipeline::Splitting;

/// Facts that this crate does not repeat.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Facts {
    pub(crate) limits: Limits,
    /// Regular expressions by name.
    pub(crate) patterns: BTreeMap<String, String>,
    /// Regular expressions that Hugging Face's library and the engine read in the same way.
    pub(crate) regexes: BTreeMap<String, Regex>,
    /// The name of the pattern that a ByteLevel implies, and those of two other pre-tokenizers.
    pub(crate) byte_level: String,
    pub(crate) digits: String,
    pub(crate) punctuation: String,
    /// Patterns and special tokens of well-known rank files, by SHA-256.
    pub(crate) rank_files: BTreeMap<String, RankSettings>,
}

/// A regular expression that may occur in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Regex {
    /// The spelling that has a name.
    pub(crate) same_as: String,
    /// Whether it matches at every character, so that nothing is between matches.
    pub(crate) matches_everywhere: bool,
}

/// What a rank file lacks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RankSettings {
    /// The name of a pattern.
    pub(crate) pattern: String,
    pub(crate) special_tokens: BTreeMap<String, u32>,
}

/// How much is read and shown.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) file_bytes: usize,
    pub(crate) text_bytes: usize,
    /// Merges and tokens of each kind in a token's details.
    pub(crate) shown: usize,
    /// Longer tokens are shown without their tree.
    pub(crate) tree_bytes: usize,
    /// Longer tokens are cut.
    pub(crate) token_bytes: usize,
}

impl Facts {
    /// How text is split, in a few words: the name of a pattern, if it has one.
    pub(crate) fn pattern_words(&self, splitting: &Splitting) -> String {
        const SHOWN: usize = 300;
        match splitting {
            Splitting::Whole => "none".to_owned(),
            Splitting::Pattern(pattern) => {
                let name = self.patterns.iter().find(|(_, known)| *known == pattern);
                match name {
                    Some((name, _)) => name.clone(),
                    None => pattern.chars().take(SHOWN).collect(),
                }
            }
            Splitting::Steps(steps) => format!("{} steps", steps.len()),
        }
    }
}
