//! Fuzz targets for the engine.
//!
//! A target is a function of a byte string: it decodes the bytes to a case (`input.rs`, `text.rs`), runs
//! the engine on it and compares the result with a plain implementation that it contains. A difference or
//! a panic is a finding. One execution is one call, for one case. A target returns a number that stands for
//! what happened, so that the driver can keep inputs that did something new.
//!
//! What is expensive to prepare (a compiled pattern, a vocabulary) has a number, which the first two bytes
//! of the input give, and is kept for later executions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a target reports a finding")]

pub mod corpus;
pub mod driver;
pub mod encoder;
mod guard;
mod input;
mod oracle;
mod patterns;
mod prepared;
pub mod random;
pub mod scanner;
pub mod spill;
pub mod tables;
mod text;
pub mod tiers;
pub mod train;

/// A fuzz target.
pub struct Target {
    /// Its name, in the command line and in `fuzz_targets/`.
    pub name: &'static str,
    /// Runs one case; panics if there is a finding.
    pub run: fn(&[u8]) -> u64,
    /// Whether the first two bytes of an input are the number of something prepared.
    pub is_numbered: bool,
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub static TARGETS: [Target; 7] = [
    Target { name: "scanner", run: scanner::run, is_numbered: true, seeds: Vec::new },
    Target { name: "tiers", run: tiers::run, is_numbered: true, seeds: Vec::new },
    Target { name: "encoder", run: encoder::run, is_numbered: true, seeds: Vec::new },
    Target { name: "train", run: train::run, is_numbered: false, seeds: Vec::new },
    Target { name: "tables", run: tables::run, is_numbered: false, seeds: tables::seeds },
    Target { name: "corpus", run: corpus::run, is_numbered: false, seeds: corpus::seeds },
    Target { name: "spill", run: spill::run, is_numbered: false, seeds: Vec::new },
];

/// A number for an outcome: equal for equal parts.
fn signature(parts: &[usize]) -> u64 {
    parts.iter().fold(0, |mixed, &part| random::mix(mixed ^ part as u64))
}

/// The number of bits of a number: an order of magnitude for signatures.
fn magnitude(number: usize) -> usize {
    (usize::BITS - number.leading_zeros()) as usize
}
