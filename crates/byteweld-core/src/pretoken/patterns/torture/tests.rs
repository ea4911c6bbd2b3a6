//! The generated text contains every sequence.

use super::*;

#[test]
fn every_sequence_of_three_occurs() {
    let text: Vec<char> = all_triples(&['a', 'b', 'c', 'd', 'e']).chars().collect();
    let threes: std::collections::HashSet<_> = text.windows(3).collect();
    assert_eq!(threes.len(), 5 * 5 * 5);
}
