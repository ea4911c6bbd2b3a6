//! Prefetching never faults.

use super::*;

#[test]
fn any_index_of_any_slice_may_be_prefetched() {
    prefetch(&[1, 2, 3], 1);
    prefetch(&[1, 2, 3], usize::MAX);
    prefetch::<u64>(&[], 7);
}
