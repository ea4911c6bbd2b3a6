//! The entries of a table of counts in order: by part, and within a part by their bytes.

use super::Counts;

/// Where each entry is, in order.
pub struct Order {
    /// Which table, and which of its entries.
    places: Vec<(u32, u32)>,
    /// Where each part starts, and where the last one ends.
    starts: Vec<usize>,
}

impl Order {
    /// Sorts counts by part and bytes.
    pub fn new(counts: &Counts, parts: usize, part_of: impl Fn(&[u8]) -> usize) -> Self {
        let mut starts = vec![0; parts + 1];
        for (bytes, _) in counts.iter() {
            starts[part_of(bytes) + 1] += 1;
        }
        for part in 1..starts.len() {
            starts[part] += starts[part - 1];
        }
        let mut next = starts.clone();
        let mut places = vec![(0, 0); counts.len()];
        for (t, table) in (0..).zip(&counts.tables) {
            for (e, entry) in (0..).zip(table.entries()) {
                let part = part_of(table.bytes(entry));
                places[next[part]] = (t, e);
                next[part] += 1;
            }
        }
        // What is compared lies together: looking it up in the tables would wait for memory each time.
        let mut keyed = Vec::new();
        for part in 0..parts {
            let places = &mut places[starts[part]..starts[part + 1]];
            keyed.clear();
            keyed.extend(places.iter().map(|&place| (counts.sort_key(place), place)));
            keyed.sort_unstable_by(|(a, a_place), (b, b_place)| {
                a.cmp(b).then_with(|| counts.at(*a_place).0.cmp(counts.at(*b_place).0))
            });
            for (place, (_, sorted)) in places.iter_mut().zip(&keyed) {
                *place = *sorted;
            }
        }
        Self { places, starts }
    }

    /// The entries of one part, from its `from`-th on.
    pub fn part<'c>(
        &'c self,
        counts: &'c Counts,
        part: usize,
        from: usize,
    ) -> impl Iterator<Item = (&'c [u8], u64)> {
        let places = &self.places[self.starts[part]..self.starts[part + 1]];
        places.iter().skip(from).map(|&place| counts.at(place))
    }
}
