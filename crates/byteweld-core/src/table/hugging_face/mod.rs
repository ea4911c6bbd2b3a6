//! Reads a tokenizer.json: a BPE model in byte letters or ASCII text, and the pipeline around it.
//!
//! Ids are those that the `tokenizers` library assigns, which are not always those in the file.
//! What cannot be represented exactly is rejected by name. Callers check the regular expressions,
//! which are in Oniguruma's dialect.

mod json;
mod model;
mod parts;
mod pipeline;
mod texts;

use json::{Reader, show, wrong};
use model::Model;
use parts::{Part, missing, unreadable};

pub use model::{Alphabet, Letters, Tokens};
pub use pipeline::{Pattern, Rewrite, Split, Template};

use crate::error::Result;
use crate::rewrite::AddedToken;
use texts::Texts;

const VERSION: &str = "1.0";
const FILE_KEYS: [&str; 8] = [
    "version",
    "truncation",
    "padding",
    "added_tokens",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "decoder",
];

/// What a tokenizer.json says.
pub struct TokenizerJson {
    texts: Texts,
    /// The tokens, added ones included, and the merges.
    pub tokens: Tokens,
    /// The added tokens, in the order of the file.
    pub added: Vec<AddedToken>,
    /// The steps of the pre-tokenizer.
    pub splits: Vec<Split>,
    /// The steps of the normalizer.
    pub normalizer: Vec<Rewrite>,
    /// Which bytes have a token.
    pub alphabet: Alphabet,
    /// The model's token for what is not in the alphabet, if it is in the model.
    pub unk_token: Option<String>,
    /// Whether pre-tokens are looked up whole before they are merged.
    pub ignore_merges: bool,
    /// What is added around the ids of a text; an error also if the decoder is unknown. Neither
    /// changes the ids of a text.
    pub template: Result<Template>,
}

impl TokenizerJson {
    /// Reads a file.
    pub fn read(data: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(data)?;
        if reader.peek() != Some(b'{') {
            let found = reader.value(0)?.show();
            return Err(wrong(format!("expected a JSON object, found {found}")));
        }
        let (mut parts, mut model) = (Vec::new(), None);
        reader.members(|reader, key| {
            match key {
                "model" => model = Some(Model::read(reader)?),
                _ => parts.push((key.to_owned(), reader.value(1)?)),
            }
            Ok(())
        })?;
        reader.end()?;
        let file = Part { members: &parts, what: "the file".to_owned() };
        file.check_keys(&FILE_KEYS)?;
        if file.find("version").is_some() && file.text("version")? != VERSION {
            let (found, expected) = (show(file.text("version")?), show(VERSION));
            return Err(wrong(format!("version is {found}; only {expected} can be read")));
        }
        for part in ["truncation", "padding"] {
            if let Some(value) = file.get(part) {
                return Err(unreadable(&format!("its {part} is {}", value.show())));
            }
        }
        let normalizer = pipeline::read_normalizer(file.get("normalizer"))?;
        let (splits, is_byte_level) = pipeline::read_pre_tokenizer(file.get("pre_tokenizer"))?;
        let mut model = model.ok_or_else(|| missing("the file", "model"))?;
        if is_byte_level {
            model.undo_ck_letters()?;
        }
        let letters = Letters::new(!is_byte_level);
        let added = match file.find("added_tokens") {
            Some(value) => model.added(value, !normalizer.is_empty())?,
            None => Vec::new(),
        };
        let tokens = model.tokens(&added, &letters)?;
        let alphabet = model.alphabet(&letters)?;
        let Model { texts, unk_token, ignore_merges, .. } = model;
        let unk_token = unk_token.filter(|text| !text.is_empty() && texts.id(text).is_some());
        let template = pipeline::check_decoder(file.get("decoder"))
            .and_then(|()| pipeline::read_post_processor(file.get("post_processor")));
        Ok(Self {
            texts,
            tokens,
            added,
            splits,
            normalizer,
            alphabet,
            unk_token,
            ignore_merges,
            template,
        })
    }

    /// The id of the token with this text in the model.
    pub fn id(&self, text: &str) -> Option<u32> {
        self.texts.id(text)
    }
}

#[cfg(test)]
mod tests;
