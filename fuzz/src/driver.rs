//! Runs a target on stable Rust: inputs from a seeded generator and mutations of kept inputs, until the time
//! or the number of executions is over, or there is a finding.

use std::collections::HashMap;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Target;
use crate::random::{Random, mix};

mod crash;

/// How many inputs are kept for mutation.
const MAX_KEPT: usize = 4096;

/// Executions with one set of numbers for what is prepared, and the size of the set.
const EPOCH: u64 = 1 << 15;
const NUMBERS: usize = 16;

/// Longer messages of findings are cut off, in characters.
const MAX_MESSAGE: usize = 4000;

/// The time is looked at after this many executions.
const CHECK_INTERVAL: u64 = 64;

/// When a run ends.
#[derive(Clone, Copy)]
pub struct Limits {
    pub time: Option<Duration>,
    pub executions: Option<u64>,
}

/// What a run did.
pub struct Report {
    pub executions: u64,
    pub kept: usize,
    pub elapsed: Duration,
    /// The part of it that this process ran.
    pub processor_time: Duration,
    /// The message and the file of the finding that ended the run.
    pub finding: Option<(String, PathBuf)>,
}

/// Runs a target. Inputs with a finding are written to `findings`; `corpus` has inputs to start from. A crash
/// or a hang (20 s of one execution) writes its input, too, and ends the process.
pub fn run(target: &Target, seed: u64, limits: Limits, corpus: &Path, findings: &Path) -> Report {
    fs::create_dir_all(findings).unwrap();
    crash::catch(findings);
    let name = target.name.bytes().fold(seed, |mixed, byte| mix(mixed ^ u64::from(byte)));
    let mut generator = Generator::new(target, name, corpus);
    let (started, processor_time) = (Instant::now(), crash::processor_time());
    let mut executions = 0;
    let is_over = |executions: u64| {
        limits.executions.is_some_and(|most| executions >= most)
            || crash::is_stopped()
            || (executions.is_multiple_of(CHECK_INTERVAL)
                && limits.time.is_some_and(|most| started.elapsed() >= most))
    };
    let mut finding = None;
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {})); // the report has the message
    while !is_over(executions) && finding.is_none() {
        let input = generator.next(executions);
        executions += 1;
        match execute(target, &input) {
            Ok(signature) => generator.keep(signature, input),
            Err(message) => {
                let (input, message) = shortened(target, input, message);
                let path = findings.join(format!("panic-{:016x}", hash(&input)));
                fs::write(&path, &input).unwrap();
                finding = Some((message, path));
            }
        }
    }
    panic::set_hook(hook);
    let processor_time = crash::processor_time() - processor_time;
    let (kept, elapsed) = (generator.kept.len(), started.elapsed());
    Report { executions, kept, elapsed, processor_time, finding }
}

/// Runs a target once; the error is the message of its panic.
fn execute(target: &Target, input: &[u8]) -> Result<u64, String> {
    crash::enter(input);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    crash::leave();
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        text.chars().take(MAX_MESSAGE).collect()
    })
}

/// Removes what a finding does not need, as far as that goes. The first two bytes stay.
fn shortened(target: &Target, mut input: Vec<u8>, mut message: String) -> (Vec<u8>, String) {
    let mut length = input.len() / 2;
    while length > 0 {
        let mut at = 2;
        while at + length <= input.len() {
            let mut shorter = input.clone();
            shorter.drain(at..at + length);
            match execute(target, &shorter) {
                Err(found) => (input, message) = (shorter, found),
                Ok(_) => at += length,
            }
        }
        length /= 2;
    }
    (input, message)
}

/// Runs a target on the inputs in files, without catching anything.
pub fn replay(target: &Target, files: &[PathBuf]) {
    for file in files {
        let input = fs::read(file).unwrap();
        (target.run)(&input);
    }
}

fn hash(input: &[u8]) -> u64 {
    input.iter().fold(input.len() as u64, |mixed, &byte| mix(mixed ^ u64::from(byte)))
}

/// The files of a folder, in order of their names.
pub fn files_of(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort_unstable();
    files
}

struct Generator {
    random: Random,
    seed: u64,
    is_numbered: bool,
    has_seeds: bool,
    /// Inputs that are run first, as they are; the last one first.
    first: Vec<Vec<u8>>,
    kept: Vec<Vec<u8>>,
    /// The index in `kept` of each outcome's input.
    outcomes: HashMap<u64, usize>,
}

impl Generator {
    fn new(target: &Target, seed: u64, corpus: &Path) -> Self {
        let mut kept = (target.seeds)();
        let has_seeds = !kept.is_empty();
        kept.extend(files_of(corpus).iter().filter_map(|file| fs::read(file).ok()));
        let first = kept.clone();
        let (random, outcomes) = (Random(seed), HashMap::new());
        Self { random, seed, is_numbered: target.is_numbered, has_seeds, first, kept, outcomes }
    }

    fn next(&mut self, executions: u64) -> Vec<u8> {
        if let Some(input) = self.first.pop() {
            return input;
        }
        // Random bytes rarely make a file of a format: those inputs are mostly mutations.
        let fresh = if self.has_seeds { self.random.one_in(4) } else { !self.random.one_in(4) };
        let mut input = if self.kept.is_empty() || fresh { self.fresh() } else { self.mutated() };
        if self.is_numbered {
            let number = self.number(executions / EPOCH);
            input.resize(input.len().max(2), 0);
            input[..2].copy_from_slice(&number.to_le_bytes());
        }
        input
    }

    /// A number for what is prepared: few at a time, half of them small (the known patterns).
    fn number(&mut self, epoch: u64) -> u16 {
        let slot = self.random.below(NUMBERS) as u64;
        let number = mix(self.seed ^ mix(epoch * NUMBERS as u64 + slot)) as u16;
        if slot.is_multiple_of(2) { number % crate::patterns::WRITTEN as u16 } else { number }
    }

    /// Bytes of any value, or of few values.
    fn fresh(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        let most = match random.below(1000) {
            0 => 2048,
            1..10 => 256,
            10..200 => 64,
            _ => 24,
        };
        let length = random.below(most);
        if random.one_in(3) {
            let few: Vec<u8> = (0..1 + random.below(6)).map(|_| random.number() as u8).collect();
            let mut input: Vec<u8> = (0..6).map(|_| random.number() as u8).collect();
            input.extend((0..length).map(|_| few[random.below(few.len())]));
            return input;
        }
        (0..length).map(|_| random.number() as u8).collect()
    }

    fn mutated(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        let mut input = self.kept[random.below(self.kept.len())].clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(input.len() + 1);
            match random.below(7) {
                0 => input.insert(at, random.number() as u8),
                1 if at < input.len() => {
                    input.remove(at);
                }
                2 if at < input.len() => input[at] ^= 1 << random.below(8),
                3 if at < input.len() => input[at] = random.number() as u8,
                4 => {
                    let end = (at + random.below(16)).min(input.len());
                    let part = input[at..end].to_vec();
                    let to = random.below(input.len() + 1);
                    input.splice(to..to, part);
                }
                5 => input.truncate(at.max(input.len() / 2)),
                _ => {
                    let other = &self.kept[random.below(self.kept.len())];
                    let from = random.below(other.len() + 1);
                    input.truncate(at);
                    input.extend_from_slice(&other[from..]);
                }
            }
        }
        input.truncate(2048);
        input
    }

    /// Keeps an input whose outcome is new, or that is shorter than the one kept for its outcome.
    fn keep(&mut self, signature: u64, input: Vec<u8>) {
        match self.outcomes.get(&signature) {
            Some(&at) if input.len() < self.kept[at].len() => self.kept[at] = input,
            Some(_) => {}
            None if self.kept.len() < MAX_KEPT => {
                self.outcomes.insert(signature, self.kept.len());
                self.kept.push(input);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
