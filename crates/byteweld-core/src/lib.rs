//! Byte-level BPE: the engine.
//!
//! Text goes through the rooms in one direction. [`pretoken`] cuts it into pre-tokens, [`counts`] counts
//! them, [`train`] learns merges from the counts; [`encode`] and [`decode`] apply a vocabulary that was
//! learned or loaded. `train` and `encode` do not know each other.
//!
//! What is not here: files, printing, environment variables, Python, a global thread pool. Work is done on
//! the caller's thread, or on as many scoped threads as the caller asks for, which end with the call.

// Only `pretoken/masks.rs` and `prefetch.rs` may: they ask for instructions that Rust has no words for.
#![deny(unsafe_code)]

pub mod counts;
mod cut;
pub mod decode;
pub mod encode;
pub mod error;
mod huge;
mod prefetch;
pub mod pretoken;
pub mod rewrite;
pub mod specials;
pub mod table;
mod threads;
pub mod train;

pub use error::{Error, Result};
