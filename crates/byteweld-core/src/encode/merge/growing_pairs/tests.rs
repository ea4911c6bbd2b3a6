//! Lookups while the table grows.

use super::*;

#[test]
fn pairs_are_found_after_the_table_has_grown() {
    let mut pairs = GrowingPairTable::with_capacity(0);
    for rank in (0..1000).rev() {
        pairs.insert(rank % 300, rank / 7, rank);
    }
    pairs.insert(5, 0, 900); // its rank is 5: the lower one stays
    for rank in 0..1000 {
        assert_eq!(pairs.rank(rank % 300, rank / 7), rank);
        assert_eq!(pairs.rank(1000 + rank, rank), NO_RANK);
    }
}
