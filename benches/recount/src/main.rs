//! A baseline trainer that, for every merge, recounts all pairs and rewrites the whole corpus. Each
//! thread processes one shard for the whole training.
//!
//! `recount CORPUS SEPARATOR MERGES THREADS` prints one line `left right` per merge. Ids are those
//! of ck: byte b is 4 + b, merges are 260, 261, …; ties go to the smallest ids; pairs that occur
//! only once are not merged. It is as fast as the method allows: 16-bit ids (so at most 65,275
//! merges), 8-byte slots, rewriting in place.

#![forbid(unsafe_code)]

use std::io::Write;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError, RwLock};

type Id = u16;
/// A pair of ids as one number, and its count.
type Slot = (u32, u32);

const FIRST_BYTE: Id = 4;
const FIRST_MERGE: Id = 260;
const MIN_FREQUENCY: u32 = 2;
/// Separates documents; no pair crosses it.
const BOUNDARY: Id = Id::MAX;
const MAX_MERGES: usize = (BOUNDARY - FIRST_MERGE) as usize;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [corpus, separator, merges, threads] = arguments.as_slice() else {
        return Err("usage: recount CORPUS SEPARATOR MERGES THREADS".into());
    };
    let merges = merges.parse::<usize>()?;
    if merges > MAX_MERGES {
        return Err(format!("{merges} merges; at most {MAX_MERGES} fit 16-bit ids").into());
    }
    let text = std::fs::read(corpus)?;
    if u32::try_from(text.len()).is_err() {
        return Err("the corpus is larger than 4 GiB, too large for 32-bit counts".into());
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

/// Distributes the documents to one shard per thread, of about equal size.
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

/// Counts, chooses and rewrites until there are enough merges or no pair occurs twice.
fn train(shards: Vec<Vec<Id>>, merges: usize) -> Vec<(Id, Id)> {
    let threads = shards.len();
    let tables: Vec<RwLock<PairTable>> = shards.iter().map(|_| RwLock::default()).collect();
    let bests: Mutex<Vec<Option<Slot>>> = Mutex::new(vec![None; threads]);
    let learned: Mutex<Vec<(Id, Id)>> = Mutex::default();
    let is_running = Mutex::new(merges > 0);
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        for (number, mut shard) in shards.into_iter().enumerate() {
            let (tables, bests, learned) = (&tables, &bests, &learned);
            let (is_running, barrier) = (&is_running, &barrier);
            scope.spawn(move || {
                let mut sums = PairTable::default();
                while *lock(is_running) {
                    tables[number].write().unwrap_or_else(PoisonError::into_inner).count(&shard);
                    barrier.wait();
                    let best = best_of_part(&mut sums, tables, number);
                    lock(bests)[number] = best;
                    barrier.wait();
                    if number == 0 {
                        let best = lock(bests).iter().flatten().copied().max_by(order);
                        let mut learned = lock(learned);
                        learned.extend(best.map(|(key, _)| pair(key)));
                        *lock(is_running) = best.is_some() && learned.len() < merges;
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

/// Adds up the counts of all threads for one part of the pairs and returns the best pair.
fn best_of_part(sums: &mut PairTable, tables: &[RwLock<PairTable>], part: usize) -> Option<Slot> {
    sums.clear();
    for table in tables {
        let table = table.read().unwrap_or_else(PoisonError::into_inner);
        for &(key, count) in &table.slots {
            if key != PairTable::EMPTY && (hash(key) >> 16) as usize % tables.len() == part {
                sums.add(key, count);
            }
        }
    }
    let is_frequent = |slot: &Slot| slot.0 != PairTable::EMPTY && slot.1 >= MIN_FREQUENCY;
    sums.slots.iter().copied().filter(is_frequent).max_by(order)
}

/// Orders by count, then by smaller ids: the best pair is the maximum.
fn order(a: &Slot, b: &Slot) -> std::cmp::Ordering {
    a.1.cmp(&b.1).then(b.0.cmp(&a.0))
}

fn pair(key: u32) -> (Id, Id) {
    ((key >> 16) as Id, key as Id)
}

/// The last learned merge, and its id.
fn latest(learned: &[(Id, Id)]) -> (Option<(Id, Id)>, Id) {
    (learned.last().copied(), FIRST_MERGE + learned.len().saturating_sub(1) as Id)
}

/// Replaces every occurrence of the pair by `id`, in place, from left to right without overlap.
fn rewrite(ids: &mut Vec<Id>, (left, right): (Id, Id), id: Id) {
    let (mut read, mut write) = (0, 0);
    while read < ids.len() {
        let is_pair = ids[read] == left && ids.get(read + 1) == Some(&right);
        ids[write] = if is_pair { id } else { ids[read] };
        read += if is_pair { 2 } else { 1 };
        write += 1;
    }
    ids.truncate(write);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pairs and their counts: open addressing with a load factor of at most one half.
struct PairTable {
    slots: Vec<Slot>,
    used: usize,
}

impl Default for PairTable {
    fn default() -> Self {
        Self { slots: vec![(Self::EMPTY, 0); 1 << 12], used: 0 }
    }
}

impl PairTable {
    const EMPTY: u32 = u32::MAX; // BOUNDARY twice, which is not a pair

    /// Counts every adjacent pair, including overlapping ones.
    fn count(&mut self, ids: &[Id]) {
        self.clear();
        for pair in ids.windows(2) {
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

/// Fibonacci hashing, which mixes the upper half well.
#[inline]
fn hash(key: u32) -> u64 {
    u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
