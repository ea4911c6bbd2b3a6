//! Counts in sorted order: by part, and within a part by bytes.

use super::Counts;
use crate::error::Result;
use crate::reserve::{filled, reserve};

/// The locations of all entries, in sorted order.
pub struct SortedIndex {
    /// The table of each entry, and its index in that table.
    locations: Vec<(u32, u32)>,
    /// Where each part starts in `locations`, and the end of the last.
    starts: Vec<usize>,
}

impl SortedIndex {
    /// Sorts counts by part and bytes.
    pub fn new(counts: &Counts, parts: usize, part_of: impl Fn(&[u8]) -> usize) -> Result<Self> {
        let mut starts = vec![0; parts + 1];
        for (bytes, _) in counts.iter() {
            starts[part_of(bytes) + 1] += 1;
        }
        for part in 1..starts.len() {
            starts[part] += starts[part - 1];
        }
        let mut next = starts.clone();
        let mut locations = filled((0, 0), counts.len())?;
        for (t, table) in (0..).zip(&counts.tables) {
            for (e, entry) in (0..).zip(table.entries()) {
                let part = part_of(table.bytes(entry));
                locations[next[part]] = (t, e);
                next[part] += 1;
            }
        }
        // Sort keys are copied next to the locations: looking them up in the tables on every
        // comparison would miss the cache.
        let mut keyed = Vec::new();
        for part in 0..parts {
            let locations = &mut locations[starts[part]..starts[part + 1]];
            keyed.clear();
            reserve(&mut keyed, locations.len())?;
            keyed.extend(locations.iter().map(|&location| (counts.sort_key(location), location)));
            keyed.sort_unstable_by(|(a, a_location), (b, b_location)| {
                a.cmp(b).then_with(|| counts.at(*a_location).0.cmp(counts.at(*b_location).0))
            });
            for (location, (_, sorted)) in locations.iter_mut().zip(&keyed) {
                *location = *sorted;
            }
        }
        Ok(Self { locations, starts })
    }

    /// The entries of one part, starting with entry `from`.
    pub fn part<'c>(
        &'c self,
        counts: &'c Counts,
        part: usize,
        from: usize,
    ) -> impl Iterator<Item = (&'c [u8], u64)> {
        let locations = &self.locations[self.starts[part]..self.starts[part + 1]];
        locations.iter().skip(from).map(|&location| counts.at(location))
    }
}
