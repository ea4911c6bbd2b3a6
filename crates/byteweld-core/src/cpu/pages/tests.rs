//! Zeroed memory, and advice about huge pages.

use super::*;

#[expect(unsafe_code, reason = "a promise about the type")]
// SAFETY: an integer.
unsafe impl Zeroable for u64 {
    const ZERO: Self = 0;
}

#[test]
fn advice_does_not_change_the_memory() {
    for size in [0, 1, 1 << 12, 3 << 20] {
        let memory = vec![7u8; size];
        advise_huge_pages(&memory);
        advise_huge_pages(memory.get(1..).unwrap_or_default());
        assert!(memory.iter().all(|&byte| byte == 7));
    }
}

#[test]
fn pages_are_zero_and_can_be_written_to() {
    for length in [0, 1, 1000, 1 << 18, (1 << 18) + 1] {
        let mut pages = ZeroedPages::<u64>::new(length).unwrap();
        assert_eq!(pages.len(), length);
        assert!(pages.iter().all(|&value| value == 0));
        pages.fill(7);
        assert!(pages.iter().all(|&value| value == 7));
    }
}

#[test]
fn large_tables_start_on_a_huge_page() {
    let pages = ZeroedPages::<u64>::new(1 << 19).unwrap();
    if cfg!(target_os = "linux") {
        assert_eq!(pages.as_ptr() as usize % HUGE_PAGE, 0);
    }
}

#[test]
fn too_much_memory_is_refused() {
    assert!(ZeroedPages::<u64>::new(usize::MAX / 8).is_none());
    assert!(ZeroedPages::<u64>::new(usize::MAX).is_none());
}
