//! Tiers can be forced, and work runs on the one that is current.

use super::*;

struct Name;

impl Work<Portable> for Name {
    type Output = &'static str;

    fn run(self, _: Portable) -> &'static str {
        "portable"
    }
}

#[cfg(target_arch = "x86_64")]
impl Work<Avx2> for Name {
    type Output = &'static str;

    fn run(self, _: Avx2) -> &'static str {
        "avx2"
    }
}

#[cfg(target_arch = "x86_64")]
impl Work<Avx512> for Name {
    type Output = &'static str;

    fn run(self, _: Avx512) -> &'static str {
        "avx512"
    }
}

#[test]
fn work_runs_on_the_forced_tier() {
    let best = Tier::current();
    for tier in Tier::available() {
        tier.force(|| {
            assert_eq!(Tier::current(), tier);
            assert_eq!(run(Name), tier.name());
        });
        assert_eq!(Tier::current(), best);
    }
    assert_eq!(run(Name), best.name());
}

#[test]
fn the_first_available_tier_runs_everywhere() {
    assert_eq!(Tier::available().first(), Some(&Tier::Portable));
}
