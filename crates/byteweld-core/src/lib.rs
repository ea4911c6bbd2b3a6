//! Byte-level BPE: the engine.
//!
//! Text flows through the modules in one direction: [`pretoken`] splits it into pre-tokens,
//! [`counts`] counts them, [`train`] learns merges from the counts; [`encode`] and [`decode`] apply
//! a vocabulary. `train` and `encode` do not depend on each other.
//!
//! Not here: files, printing, environment variables, Python, a global thread pool. Work is done on
//! the caller's thread or on scoped threads, as many as the caller allows, which end with the call.

// Exceptions: `cpu/` for instructions and system calls, `pretoken/bits/tiers/x86.rs` and
// `encode/cache/tiers/x86.rs` for instructions, `utf8/` for instructions and memory that is not
// zeroed, `encode/cache/table.rs` for a promise about a type.
#![deny(unsafe_code)]

pub mod counts;
mod cut;
pub mod decode;
pub mod documents;
pub mod encode;
pub mod error;

pub mod cpu;
mod hash;
mod lazy;
mod packed;
pub mod pretoken;
pub mod reserve;
pub mod rewrite;
pub mod specials;
pub mod table;
#[cfg(test)]
mod testing;
mod threads;
pub mod train;
pub mod utf8;
pub mod watch;

pub use error::{Error, Result};
