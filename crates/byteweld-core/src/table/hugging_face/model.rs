//! The BPE model and the added tokens: which bytes each id has.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::json::{Kind, Object, Reader, Value, show, wrong};
use super::parts::{Part, id as read_id, list, missing, unreadable};
use super::texts::{Merges, Texts, read_merges};
use crate::error::{Error, Result};
use crate::rewrite::{AddedToken, byte_letter};
use crate::table::VocabTable;

/// Those of the merges, and of a vocabulary that is an object, are read elsewhere.
const MODEL_KEYS: [&str; 9] = [
    "type",
    "vocab",
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
];

/// With these keys, a byte has several tokens, depending on its position in the pre-token.
const POSITION_KEYS: [(&str, &str); 2] =
    [("continuing_subword_prefix", "start"), ("end_of_word_suffix", "end")];

const ADDED_KEYS: [&str; 7] =
    ["id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"];

/// One past the highest letter, U+0143.
const LETTER_END: usize = 0x144;

/// Which bytes have a token, and what becomes of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// All bytes.
    Bytes,
    /// Some bytes; another becomes unk, or is dropped if there is none.
    Partial,
    /// The characters of ASCII text; another becomes unk.
    Ascii,
}

/// All tokens and merges.
pub enum Tokens {
    /// As a table.
    Table(VocabTable),
    /// Tokens by ascending id, and merges, if a table would be mostly empty.
    Sparse(Vec<(u32, Vec<u8>)>, Vec<(u32, u32, u32)>),
}

/// The model of a file.
pub(super) struct Model {
    pub(super) texts: Texts,
    merges: Merges,
    /// For each token, whether a merge makes it.
    is_made: Vec<bool>,
    pub(super) unk_token: Option<String>,
    fuse_unk: bool,
    byte_fallback: bool,
    pub(super) ignore_merges: bool,
}

impl Model {
    /// Reads the value of `model`.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        if reader.peek() != Some(b'{') {
            let found = reader.value(1)?.show();
            return Err(wrong(format!("model is {found}; expected an object")));
        }
        let mut settings = Object::new();
        let (mut texts, mut merges, mut merges_at) = (None, None, None);
        reader.members(|reader, key| {
            match (key, &texts) {
                ("vocab", _) if reader.peek() == Some(b'{') => texts = Some(Texts::read(reader)?),
                ("merges", Some(texts)) => merges = Some(read_merges(reader, texts)?),
                ("merges", None) => {
                    merges_at = Some(reader.at);
                    reader.value(2)?;
                }
                _ => settings.push((key.to_owned(), reader.value(2)?)),
            }
            Ok(())
        })?;
        let settings = Part { members: &settings, what: "the model".to_owned() };
        let model = Self::of(&settings)?;
        let Some(texts) = texts else {
            let found = settings.require("vocab")?.show();
            let expected = "expected an object of text: id";
            return Err(wrong(format!("the vocabulary is {found}; {expected}")));
        };
        let end = reader.at;
        if let Some(at) = merges_at {
            reader.at = at;
            merges = Some(read_merges(reader, &texts)?);
            reader.at = end;
        }
        let merges = merges.ok_or_else(|| missing("the model", "merges"))?;
        let mut is_made = vec![false; texts.len()];
        merges.iter().for_each(|&(_, _, new)| is_made[new as usize] = true);
        Ok(Self { texts, merges, is_made, ..model })
    }

    /// A model with these settings and no tokens.
    fn of(settings: &Part<'_, '_>) -> Result<Self> {
        if settings.find("type").is_some() && settings.text("type")? != "BPE" {
            return Err(unreadable(&format!("its model is {}", show(settings.text("type")?))));
        }
        settings.check_keys(&MODEL_KEYS)?;
        if let Some(dropout) = settings.get("dropout").filter(|dropout| dropout.number() != 0.0) {
            return Err(unreadable(&format!("its model has the dropout {}", dropout.show())));
        }
        for (key, position) in POSITION_KEYS {
            let is_empty =
                |value: &&Value<'_>| matches!(&value.kind, Kind::String(s) if s.is_empty());
            if let Some(other) = settings.get(key).filter(|value| !is_empty(value)) {
                let other = other.show();
                return Err(Error::Unsupported(format!(
                    "its model has the {key} {other}: a byte is a different token at the \
                     {position} of a pre-token, which a byte-level vocabulary cannot express"
                )));
            }
        }
        let unk_token = match settings.get("unk_token").map(|value| &value.kind) {
            None => None,
            Some(Kind::String(text)) => Some(text.clone()),
            Some(_) => return Err(settings.other("unk_token", "a string or null")),
        };
        Ok(Self {
            texts: Texts::default(),
            merges: Vec::new(),
            is_made: Vec::new(),
            unk_token,
            fuse_unk: settings.flag_or("fuse_unk", false)?,
            byte_fallback: settings.flag_or("byte_fallback", false)?,
            ignore_merges: settings.flag_or("ignore_merges", false)?,
        })
    }

    /// Rewrites a model of ck-bpe-train in GPT-2's letters; does nothing to any other model.
    pub(super) fn undo_ck_letters(&mut self) -> Result<()> {
        let letters: BTreeMap<char, char> = (0..=255)
            .map(|byte| (ck_letter(byte), byte_letter(byte)))
            .filter(|(theirs, ours)| theirs != ours)
            .collect();
        let has = |letter: &char| self.has_letter(*letter);
        if letters.keys().any(has) && !letters.values().any(has) {
            let change = |letter| letters.get(&letter).copied().unwrap_or(letter);
            if let Some(texts) = self.texts.map(|text| text.chars().map(change).collect())? {
                self.texts = texts;
            }
        }
        Ok(())
    }

    /// Reads the added tokens, with the ids that `tokenizers` gives them: the one in the model, or
    /// else the next after it. If the file has another id, the library warns and assigns its own.
    pub(super) fn added(&self, value: &Value<'_>, has_normalizer: bool) -> Result<Vec<AddedToken>> {
        let items = list(value, "'added_tokens'")?;
        let mut tokens: Vec<AddedToken> = Vec::with_capacity(items.len());
        let mut texts = HashSet::new();
        let mut next_id = self.texts.len() as u32; // fits, as indices do
        for item in items {
            let mut part = Part::of(item, "an added token")?;
            part.check_keys(&ADDED_KEYS)?;
            let text = part.text("content")?;
            if text.is_empty() {
                return Err(part.other("content", "a non-empty string"));
            }
            part.what = format!("added token {}", show(text));
            if !texts.insert(text) {
                return Err(wrong(format!("{} is listed twice", part.what)));
            }
            read_id(part.require("id")?, &part.what)?;
            let id = self.texts.id(text).unwrap_or_else(|| {
                next_id += 1;
                next_id - 1
            });
            tokens.push(AddedToken {
                text: text.to_owned(),
                id,
                single_word: part.flag("single_word")?,
                lstrip: part.flag("lstrip")?,
                rstrip: part.flag("rstrip")?,
                normalized: part.flag("normalized")?,
                special: part.flag("special")?,
            });
        }
        // The library searches text for tokens with normalized=False first. Without a normalizer,
        // if all tokens have the same flag, its value does not matter.
        if !has_normalizer && tokens.iter().all(|token| token.normalized) {
            tokens.iter_mut().for_each(|token| token.normalized = false);
        }
        Ok(tokens)
    }

    /// The alphabet; rejects a model that neither drops other text nor makes it unk.
    pub(super) fn alphabet(&self, letters: &Letters) -> Result<Alphabet> {
        let missing: Vec<char> = letters.all().filter(|&letter| !self.has_letter(letter)).collect();
        let first = missing.first().map(|letter| show(&letter.to_string())).unwrap_or_default();
        if letters.is_ascii && !missing.is_empty() {
            let what = format!("the character {first} of the ASCII alphabet has no token");
            return Err(unreadable(&what));
        }
        if !letters.is_ascii && missing.is_empty() {
            return Ok(Alphabet::Bytes);
        }
        if self.unk_token.is_some() && self.fuse_unk {
            return Err(unreadable("its model has fuse_unk and does not cover all bytes"));
        }
        let is_byte = |byte: u8| self.texts.id(&format!("<0x{byte:02X}>")).is_some();
        if self.byte_fallback && (0..=u8::MAX).any(is_byte) {
            return Err(unreadable("its model has byte_fallback and tokens for it"));
        }
        match &self.unk_token {
            None if letters.is_ascii => {
                Err(unreadable("its model has no unk_token, so unknown characters are dropped"))
            }
            _ if letters.is_ascii => Ok(Alphabet::Ascii),
            Some(unk) if self.texts.id(unk).is_none() => Err(Error::Unsupported(format!(
                "{} of 256 bytes have no token, first {first} in byte letters, and unk_token {} is \
                 not in the vocabulary; the library fails on such bytes",
                missing.len(),
                show(unk)
            ))),
            _ => Ok(Alphabet::Partial),
        }
    }

    /// The bytes of all tokens, and the merges.
    pub(super) fn tokens(&self, added: &[AddedToken], letters: &Letters) -> Result<Tokens> {
        let given = self.given(added, letters)?;
        let mut given = given.into_iter().peekable();
        let mut bytes = Vec::new();
        let mut spans: Vec<(u32, Range<usize>)> = Vec::with_capacity(self.texts.len());
        for &index in self.texts.by_id() {
            let id = self.texts.id_at(index);
            while let Some((other, own)) = given.next_if(|(other, _)| *other <= id) {
                spans.push((other, bytes.len()..bytes.len() + own.len()));
                bytes.extend(own);
            }
            if spans.last().is_none_or(|(last, _)| *last != id) {
                let start = bytes.len();
                letters.read(self.texts.text_at(index), &mut bytes);
                spans.push((id, start..bytes.len()));
            }
        }
        for (id, own) in given {
            spans.push((id, bytes.len()..bytes.len() + own.len()));
            bytes.extend(own);
        }
        let id = |index: u32| self.texts.id_at(index);
        let merges = self.merges.iter().map(|&(a, b, c)| (id(a), id(b), id(c))).collect();
        let tokens = || spans.iter().map(|(id, span)| (*id, &bytes[span.clone()]));
        Ok(match VocabTable::from_tokens(spans.len(), tokens()) {
            Some(table) => Tokens::Table(VocabTable { merges, ..table }),
            None => Tokens::Sparse(tokens().map(|(id, own)| (id, own.to_vec())).collect(), merges),
        })
    }

    /// The tokens that are not what their letters spell, and the added ones.
    fn given(&self, added: &[AddedToken], letters: &Letters) -> Result<BTreeMap<u32, Vec<u8>>> {
        let mut given = BTreeMap::new();
        let added_texts: HashSet<&str> = added.iter().map(|token| &token.text[..]).collect();
        let mut spelled = Vec::new();
        for entry in &self.texts.entries {
            spelled.clear();
            let text = self.texts.text(entry);
            if letters.read(text, &mut spelled) || added_texts.contains(text) {
                continue;
            }
            // The library looks up only byte letters, so it never finds a token in other letters.
            // byteweld would find it with `ignore_merges`, or if it is a single byte.
            if letters.is_ascii || self.ignore_merges || text.len() < 2 {
                let known = match letters.is_ascii {
                    true => "the 98 characters of the ASCII alphabet",
                    false => "byte letters",
                };
                return Err(unreadable(&format!("token {} is not written in {known}", show(text))));
            }
            given.insert(entry.id, text.as_bytes().to_vec());
        }
        for token in added {
            let own = token.text.as_bytes();
            let problem = if let Some(index) = self.texts.find(&token.text) {
                let is_made = self.is_made[index as usize];
                let (bytes, problem) = letters.added(token, is_made, self.ignore_merges);
                given.insert(token.id, bytes);
                problem
            } else {
                let other = self.texts.with_id(token.id).map(|text| letters.spell(text));
                let known = given.entry(token.id).or_insert_with(|| other.unwrap_or(own.to_vec()));
                let is_letter = |&byte: &u8| self.has_letter(byte_letter(byte));
                if known != own {
                    Some(format!("shares its id {} with {}", token.id, show_bytes(known)))
                } else if own.len() == 1 && !own.iter().all(is_letter) {
                    Some("is a byte for which the model has no token".to_owned())
                } else {
                    None
                }
            };
            if let Some(problem) = problem {
                let kind = if token.special { "special" } else { "added" };
                let text = show(&token.text);
                return Err(Error::Unsupported(format!("{kind} token {text} {problem}")));
            }
        }
        Ok(given)
    }

    fn has_letter(&self, letter: char) -> bool {
        self.texts.id(letter.encode_utf8(&mut [0; 4])).is_some()
    }
}

/// How the keys of a model are written: in byte letters, or as ASCII text.
pub struct Letters {
    /// The byte of each character up to U+0143, or 256.
    bytes: [u16; LETTER_END],
    is_ascii: bool,
}

impl Letters {
    /// Byte letters, or ASCII text.
    pub fn new(is_ascii: bool) -> Self {
        let mut bytes = [256; LETTER_END];
        for byte in 0..=u8::MAX {
            let letter = if is_ascii { char::from(byte) } else { byte_letter(byte) };
            if !is_ascii || matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') {
                bytes[letter as usize] = u16::from(byte);
            }
        }
        Self { bytes, is_ascii }
    }

    /// The letters, in order.
    fn all(&self) -> impl Iterator<Item = char> {
        let codes = (0..).zip(&self.bytes).filter(|(_, byte)| **byte < 256);
        codes.filter_map(|(code, _)| char::from_u32(code))
    }

    /// Appends the bytes that a text stands for; `false`, and nothing, if it is empty or has other
    /// characters.
    fn read(&self, text: &str, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        for character in text.chars() {
            match self.bytes.get(character as usize) {
                Some(&byte) if byte < 256 => out.push(byte as u8),
                _ => {
                    out.truncate(start);
                    return false;
                }
            }
        }
        !text.is_empty()
    }

    /// The bytes that a text stands for; none if it is not in these letters.
    fn spell(&self, text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.read(text, &mut bytes);
        bytes
    }

    /// The bytes of an added token that is also in the model, and why other text could become it.
    ///
    /// If its text is also the key of other bytes, it is their token as well: `é` is the letter of
    /// byte E9. Otherwise it has the bytes of its own text. For example, the special token `Ġthe`
    /// is also the key of the ordinary bytes ` the`.
    pub fn added(
        &self,
        token: &AddedToken,
        is_made: bool,
        ignore_merges: bool,
    ) -> (Vec<u8>, Option<String>) {
        let (spelled, own) = (self.spell(&token.text), token.text.as_bytes());
        let is_key = !spelled.is_empty();
        let is_own = !is_key || !(is_made || spelled.len() == 1 || ignore_merges);
        let bytes = if is_own { own.to_vec() } else { spelled };
        let problem = if token.special && bytes != own {
            let shown = show_bytes(&bytes);
            Some(format!("is also how the bytes {shown} are written in byte letters"))
        } else if token.single_word && ignore_merges && is_key {
            let problem = "has single_word, but a pre-token inside a word could also become it";
            Some(problem.to_owned())
        } else {
            None
        };
        (bytes, problem)
    }
}

/// The letter of ck-bpe-train, which intends GPT-2's, but shifts unprintable bytes by 0x100, and
/// does not shift 0xAD: 35 bytes have other letters.
fn ck_letter(byte: u8) -> char {
    match byte {
        ..=0x20 | 0x7F..=0xA0 => char::from_u32(0x100 + u32::from(byte)).unwrap_or_default(),
        _ => char::from(byte),
    }
}

fn show_bytes(bytes: &[u8]) -> String {
    format!("b'{}'", bytes[..bytes.len().min(200)].escape_ascii())
}
