//! Advice about huge pages.

use super::advise;

#[test]
fn advice_does_not_change_the_memory() {
    for size in [0, 1, 1 << 12, 3 << 20] {
        let memory = vec![7u8; size];
        advise(&memory);
        advise(memory.get(1..).unwrap_or_default());
        assert!(memory.iter().all(|&byte| byte == 7));
    }
}
