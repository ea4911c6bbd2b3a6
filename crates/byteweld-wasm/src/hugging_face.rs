//! A tokenizer.json. The core reads it; patterns are those of the facts.
//!
//! The decoder and the post-processor are not checked: neither changes the ids of a text.

use byteweld_core::table::hugging_face::{TokenizerJson, Tokens};

use crate::Result;
use crate::facts::Facts;
use crate::opened::{Opened, Parts};
use crate::pipeline::{normalizer, splitting};

/// Opens a tokenizer.json.
pub(crate) fn open(data: &[u8], facts: &Facts) -> Result<Option<Opened>> {
    let file = TokenizerJson::read(data)
        .map_err(|error| format!("expected a tokenizer.json that byteweld reads: {error}"))?;
    let unk = file.unk_token.as_ref().and_then(|text| file.id(text));
    let Tokens::Table(table) = file.tokens else {
        return Err("an id is far above the others".to_owned());
    };
    Opened::new(Parts {
        table,
        added: file.added,
        splitting: splitting(&file.splits, facts)?,
        normalizer: normalizer(file.normalizer, facts)?,
        is_ranked_by_id: false,
        ignore_merges: file.ignore_merges,
        alphabet: file.alphabet,
        unk,
    })
    .map(Some)
}
