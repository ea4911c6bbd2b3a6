//! A ring of ids, for words that become many.

/// 2 MiB. New ids take the room of the oldest.
const ARENA_IDS: usize = 1 << 19;

/// What it grows to step by step, before it gets its whole room. (Room that is not written to takes no memory.)
const FIRST_IDS: usize = 1 << 12;

/// A ring of ids: places count up for ever, and what was written longest ago is written over.
#[derive(Default)]
pub(super) struct Arena {
    ids: Vec<u32>,
    /// The place that is written next.
    next: u64,
}

impl Arena {
    /// Writes ids, fewer than the ring has, and gives their place.
    pub(super) fn push(&mut self, ids: &[u32]) -> u64 {
        let mut start = self.next as usize % ARENA_IDS;
        if start + ids.len() > ARENA_IDS {
            self.next += (ARENA_IDS - start) as u64; // they lie on end
            start = 0;
        }
        let end = start + ids.len();
        if self.ids.len() < end {
            if end > FIRST_IDS {
                // Once, and not twice as much again and again: freed blocks would stay with the process.
                if self.ids.try_reserve_exact(ARENA_IDS - self.ids.len()).is_err() {
                    // As if they had been written and written over.
                    self.next += ARENA_IDS as u64 + 1;
                    return self.next - ARENA_IDS as u64 - 1;
                }
            }
            self.ids.resize(end, 0);
        }
        self.ids[start..end].copy_from_slice(ids);
        let place = self.next;
        self.next += ids.len() as u64;
        place
    }

    /// The ids at a place, unless they are written over.
    pub(super) fn get(&self, place: u64, length: usize) -> Option<&[u32]> {
        let start = place as usize % ARENA_IDS;
        let is_there = self.next - place <= ARENA_IDS as u64;
        is_there.then(|| &self.ids[start..start + length])
    }
}

#[cfg(test)]
mod tests;
