//! The recounting trainer, as a baseline: for every merge it counts all pairs of the whole corpus
//! anew and rewrites the whole corpus. Threads that live for the whole training, one shard each.
//!
//! `recount CORPUS SEPARATOR MERGES THREADS` prints one line `left right` for each merge. Ids are
//! ck's: byte b is 4 + b, merges are 260, 261, …; ties go to the smallest ids; a pair that is
//! there only once is not merged. It is as quick as the method allows: 16-bit symbols (so at most
//! 65,275 merges), 8-byte slots, rewriting in place.

#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

type Id = u16;

const FIRST_BYTE: Id = 4;
const FIRST_MERGE: Id = 260;
const MIN_FREQUENCY: u32 = 2;
/// Stands between documents: no pair crosses it.
const BOUNDARY: Id = Id::MAX;
const MOST_MERGES: usize = (BOUNDARY - FIRST_MERGE) as usize;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [corpus, separator, merges, threads] = arguments.as_slice() else {
        return Err("usage: recount CORPUS SEPARATOR MERGES THREADS".into());
    };
    let merges = merges.parse::<usize>()?;
    if merges > MOST_MERGES {
        return Err(format!("{merges} merges; at most {MOST_MERGES} fit 16-bit ids").into());
    }
    let text = std::fs::read(corpus)?;
    if u32::try_from(text.len()).is_err() {
        return Err("the corpus has more than 4 GiB, and counts have 32 bits".into());
    }
    let threads = threads.parse::<usize>()?.max(1);
    let shards = into_shards(&text, separator.as_bytes(), threads);
    drop(text);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (left, right) in train(shards, merges) {
        writeln!(out, "{left} {right}")?;
    }
    out.flush()?;
    Ok(())
}

/// Deals the documents out to as many shards as there are threads, by size.
fn into_shards(text: &[u8], separator: &[u8], threads: usize) -> Vec<Vec<Id>> {
    let share = text.len().div_ceil(threads);
    let mut shards = vec![Vec::new()];
    for document in documents(text, separator) {
        if shards.last().is_some_and(|shard| shard.len() >= share) {
            shards.push(Vec::new());
        }
        if let Some(shard) = shards.last_mut() {
            shard.extend(document.iter().map(|&byte| FIRST_BYTE + Id::from(byte)));
            shard.push(BOUNDARY);
        }
    }
    shards.resize(threads.max(shards.len()), Vec::new());
    shards
}

fn documents<'t>(text: &'t [u8], separator: &[u8]) -> Vec<&'t [u8]> {
    let mut found = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        if !separator.is_empty() && text[at..].starts_with(separator) {
            found.push(&text[start..at]);
            at += separator.len();
            start = at;
        } else {
            at += 1;
        }
    }
    found.push(&text[start..]);
    found
}

/// Counts, chooses, rewrites, until there are enough merges or no pair is there twice.
fn train(shards: Vec<Vec<Id>>, merges: usize) -> Vec<(Id, Id)> {
    let tables: Vec<Mutex<Table>> = shards.iter().map(|_| Mutex::default()).collect();
    let learned: Mutex<Vec<(Id, Id)>> = Mutex::default();
    let goes_on = Mutex::new(merges > 0);
    let barrier = Barrier::new(shards.len());
    std::thread::scope(|scope| {
        for (number, mut shard) in shards.into_iter().enumerate() {
            let (tables, learned, goes_on, barrier) = (&tables, &learned, &goes_on, &barrier);
            scope.spawn(move || {
                let mut all = Table::default();
                while *lock(goes_on) {
                    lock(&tables[number]).count(&shard);
                    barrier.wait();
                    if number == 0 {
                        let best = sum(&mut all, tables);
                        let mut learned = lock(learned);
                        learned.extend(best);
                        *lock(goes_on) = best.is_some() && learned.len() < merges;
                    }
                    barrier.wait();
                    let (pair, id) = latest(&lock(learned));
                    if let Some(pair) = pair {
                        rewrite(&mut shard, pair, id);
                    }
                    // Nobody may begin to count while another still asks whether to go on.
                    barrier.wait();
                }
            });
        }
    });
    learned.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The merge learned last, and its id.
fn latest(learned: &[(Id, Id)]) -> (Option<(Id, Id)>, Id) {
    (learned.last().copied(), FIRST_MERGE + learned.len().saturating_sub(1) as Id)
}

/// Adds the threads' tables and gives the best pair.
fn sum(all: &mut Table, tables: &[Mutex<Table>]) -> Option<(Id, Id)> {
    all.clear();
    for table in tables {
        for &(key, count) in &lock(table).slots {
            if key != Table::EMPTY {
                all.add(key, count);
            }
        }
    }
    let better = |a: &(u32, u32), b: &(u32, u32)| a.1.cmp(&b.1).then(b.0.cmp(&a.0));
    let &(key, _) = all
        .slots
        .iter()
        .filter(|&&(key, count)| key != Table::EMPTY && count >= MIN_FREQUENCY)
        .max_by(|a, b| better(a, b))?;
    Some(((key >> 16) as Id, key as Id))
}

/// Puts `id` for every occurrence of the pair, from left to right without overlap, in place.
fn rewrite(symbols: &mut Vec<Id>, (left, right): (Id, Id), id: Id) {
    let (mut read, mut write) = (0, 0);
    while read < symbols.len() {
        let is_pair = symbols[read] == left && symbols.get(read + 1) == Some(&right);
        symbols[write] = if is_pair { id } else { symbols[read] };
        read += if is_pair { 2 } else { 1 };
        write += 1;
    }
    symbols.truncate(write);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pairs and their counts: open addressing, never more than half full.
struct Table {
    slots: Vec<(u32, u32)>,
    used: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self { slots: vec![(Self::EMPTY, 0); 1 << 12], used: 0 }
    }
}

impl Table {
    const EMPTY: u32 = u32::MAX; // BOUNDARY twice: no pair

    /// Counts every pair of neighbours, overlapping ones too.
    fn count(&mut self, symbols: &[Id]) {
        self.clear();
        for pair in symbols.windows(2) {
            if pair[0] != BOUNDARY && pair[1] != BOUNDARY {
                self.add(u32::from(pair[0]) << 16 | u32::from(pair[1]), 1);
            }
        }
    }

    fn clear(&mut self) {
        self.slots.fill((Self::EMPTY, 0));
        self.used = 0;
    }

    #[inline]
    fn add(&mut self, key: u32, count: u32) {
        let mask = self.slots.len() - 1;
        let mut at = (hash(key) >> 32) as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.0 == key {
                slot.1 += count;
                return;
            }
            if slot.0 == Self::EMPTY {
                *slot = (key, count);
                self.used += 1;
                if self.used * 2 > self.slots.len() {
                    self.grow();
                }
                return;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let larger = vec![(Self::EMPTY, 0); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, larger);
        self.used = 0;
        for (key, count) in old {
            if key != Self::EMPTY {
                self.add(key, count);
            }
        }
    }
}

/// Fibonacci hashing: the upper half is well mixed.
#[inline]
fn hash(key: u32) -> u64 {
    u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
