//! The recounting trainer, as a baseline: for every merge it counts all pairs of the whole corpus
//! anew and rewrites the whole corpus. Threads that live for the whole training, one shard each.
//!
//! `recount CORPUS SEPARATOR MERGES THREADS` prints one line `left right` for each merge. Ids are
//! ck's: byte b is 4 + b, merges are 260, 261, …; ties go to the smallest ids; a pair that is
//! there only once is not merged. It is as quick as the method allows: 16-bit symbols (so at most
//! 65,275 merges), 8-byte slots, rewriting in place.

#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError, RwLock};

type Id = u16;
/// A pair of ids as one number, and its count.
type Slot = (u32, u32);

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
    let threads = shards.len();
    let tables: Vec<RwLock<Table>> = shards.iter().map(|_| RwLock::default()).collect();
    let bests: Mutex<Vec<Option<Slot>>> = Mutex::new(vec![None; threads]);
    let learned: Mutex<Vec<(Id, Id)>> = Mutex::default();
    let goes_on = Mutex::new(merges > 0);
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        for (number, mut shard) in shards.into_iter().enumerate() {
            let (tables, bests, learned) = (&tables, &bests, &learned);
            let (goes_on, barrier) = (&goes_on, &barrier);
            scope.spawn(move || {
                let mut sums = Table::default();
                while *lock(goes_on) {
                    tables[number].write().unwrap_or_else(PoisonError::into_inner).count(&shard);
                    barrier.wait();
                    let best = best_of_part(&mut sums, tables, number);
                    lock(bests)[number] = best;
                    barrier.wait();
                    if number == 0 {
                        let best = lock(bests).iter().flatten().copied().max_by(order);
                        let mut learned = lock(learned);
                        learned.extend(best.map(|(key, _)| pair(key)));
                        *lock(goes_on) = best.is_some() && learned.len() < merges;
                    }
                    barrier.wait();
                    let (pair, id) = latest(&lock(learned));
                    if let Some(pair) = pair {
                        rewrite(&mut shard, pair, id);
                    }
                }
            });
        }
    });
    learned.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Adds up the threads' counts for the pairs of one part of all pairs, and gives the best of them.
fn best_of_part(sums: &mut Table, tables: &[RwLock<Table>], part: usize) -> Option<Slot> {
    sums.clear();
    for table in tables {
        let table = table.read().unwrap_or_else(PoisonError::into_inner);
        for &(key, count) in &table.slots {
            if key != Table::EMPTY && (hash(key) >> 16) as usize % tables.len() == part {
                sums.add(key, count);
            }
        }
    }
    let often = |slot: &Slot| slot.0 != Table::EMPTY && slot.1 >= MIN_FREQUENCY;
    sums.slots.iter().copied().filter(often).max_by(order)
}

/// By count, then the smaller pair of ids: the best is the greatest.
fn order(a: &Slot, b: &Slot) -> std::cmp::Ordering {
    a.1.cmp(&b.1).then(b.0.cmp(&a.0))
}

fn pair(key: u32) -> (Id, Id) {
    ((key >> 16) as Id, key as Id)
}

/// The merge learned last, and its id.
fn latest(learned: &[(Id, Id)]) -> (Option<(Id, Id)>, Id) {
    (learned.last().copied(), FIRST_MERGE + learned.len().saturating_sub(1) as Id)
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
    slots: Vec<Slot>,
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
