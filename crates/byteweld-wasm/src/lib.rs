//! The engine for a web page: opens a vocabulary file, encodes text, describes tokens.
//!
//! JavaScript writes its arguments to the memory that [`input`] returns, calls a function, and reads
//! the answer at [`output`]. Every function returns whether it succeeded; if not, the answer is a
//! message for people. Nothing here reads files or the clock, and no input can cause a panic.
//!
//! Not here: facts about public encodings and patterns. They come from Python's tables, as JSON, when
//! the page starts ([`configure`]).

// Names are exported only in WebAssembly: elsewhere, `open` would replace that of the C library.
#![cfg_attr(not(target_family = "wasm"), forbid(unsafe_code))]

mod facts;
mod hugging_face;
mod opened;
mod pipeline;
mod ranks;
mod token;

use std::cell::RefCell;

use byteweld_core::encode::{Allowed, WithEnds};
use serde::Serialize;

use facts::Facts;
use opened::Opened;
use ranks::Options;

/// What went wrong, for people.
type Result<T> = std::result::Result<T, String>;

/// The inputs of one call: a file, text or JSON, and options.
const INPUTS: usize = 2;

#[derive(Default)]
struct State {
    facts: Facts,
    opened: Option<Opened>,
    inputs: [Vec<u8>; INPUTS],
    output: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Makes room for an input of this many bytes, and returns where to write it; null if there is no
/// memory, or no such input.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn input(number: usize, bytes: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        let Some(buffer) = state.inputs.get_mut(number) else { return std::ptr::null_mut() };
        *buffer = Vec::new();
        if buffer.try_reserve_exact(bytes).is_err() {
            return std::ptr::null_mut();
        }
        buffer.resize(bytes, 0);
        buffer.as_mut_ptr()
    })
}

/// Where the answer of the last call is.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn output() -> *const u8 {
    STATE.with_borrow(|state| state.output.as_ptr())
}

/// How many bytes the answer of the last call has.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn output_length() -> usize {
    STATE.with_borrow(|state| state.output.len())
}

/// Reads the facts, which are JSON in input 0.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn configure() -> bool {
    answer(|state, [json, _]| {
        state.facts = serde_json::from_slice(&json).map_err(|error| format!("facts: {error}"))?;
        Ok(Vec::new())
    })
}

/// Opens the vocabulary file in input 0 with the options in input 1; answers what it is, as JSON.
/// The vocabulary that was open stays open if this fails.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn open() -> bool {
    answer(|state, [file, options]| {
        let options: Options =
            serde_json::from_slice(&options).map_err(|error| format!("options: {error}"))?;
        let most = state.facts.limits.file_bytes;
        if file.len() > most {
            return Err(format!("it has {} bytes; at most {most} are supported", file.len()));
        }
        let opened = match file.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => hugging_face::open(&file, &state.facts)?,
            _ => ranks::open(&file, options, &state.facts)?,
        };
        let Some(opened) = opened else { return json(&Summary::NEEDS_PATTERN) };
        let summary = Summary {
            needs_pattern: false,
            tokens: opened.table.len(),
            pattern: state.facts.pattern_words(&opened.splitting),
        };
        state.opened = Some(opened);
        json(&summary)
    })
}

/// Encodes the text in input 0. Answers little-endian numbers of 32 bits: how many tokens there are,
/// their ids, and how many bytes of the text each covers; then the indices of special tokens.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn encode(recognizes_specials: bool) -> bool {
    answer(|state, [text, _]| {
        let most = state.facts.limits.text_bytes;
        if text.len() > most {
            return Err(format!(
                "text has {} bytes, more than {most}; use a part of it",
                text.len()
            ));
        }
        let opened = state.opened()?;
        let mut found = WithEnds::default();
        let allowed = if recognizes_specials { Allowed::All } else { Allowed::None };
        opened.encoder.encode(&text, &allowed, &mut found).map_err(|error| error.to_string())?;
        let WithEnds { ids, ends } = found;
        let mut numbers = Vec::with_capacity(1 + 2 * ids.len());
        numbers.push(ids.len() as u32); // fits: there are at most 64 tokens per byte
        numbers.extend_from_slice(&ids);
        let mut start = 0;
        for end in ends {
            numbers.push((end - start) as u32);
            start = end;
        }
        let is_special = |id: &u32| opened.special_ids.binary_search(id).is_ok();
        numbers.extend((0..).zip(&ids).filter(|(_, id)| is_special(id)).map(|(index, _)| index));
        Ok(numbers.into_iter().flat_map(u32::to_le_bytes).collect())
    })
}

/// Answers the details of a token, as JSON.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn token(id: u32) -> bool {
    answer(|state, _| {
        let limits = &state.facts.limits;
        json(&token::details(state.opened()?, id, limits)?)
    })
}

/// What the page shows of an open vocabulary.
#[derive(Serialize)]
struct Summary {
    /// Whether nothing was opened, because a rank file does not have a pattern.
    needs_pattern: bool,
    tokens: usize,
    pattern: String,
}

impl Summary {
    const NEEDS_PATTERN: Self = Self { needs_pattern: true, tokens: 0, pattern: String::new() };
}

impl State {
    fn opened(&self) -> Result<&Opened> {
        self.opened.as_ref().ok_or_else(|| "no vocabulary is open; open one first".to_owned())
    }
}

/// Takes the inputs, does the work, and keeps its result or its message as the answer.
fn answer(work: impl FnOnce(&mut State, [Vec<u8>; INPUTS]) -> Result<Vec<u8>>) -> bool {
    STATE.with_borrow_mut(|state| {
        state.output = Vec::new();
        let inputs = std::mem::take(&mut state.inputs);
        let result = work(state, inputs);
        let is_done = result.is_ok();
        state.output = result.unwrap_or_else(String::into_bytes);
        is_done
    })
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
