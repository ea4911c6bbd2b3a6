//! What the processor offers: instruction sets, prefetching, huge pages.
//!
//! Hot loops are written once and compiled for several *tiers* of instruction sets. [`run`] picks the
//! best one this processor has, and passes its token ([`Avx512`], [`Avx2`] or [`Portable`]) to the
//! work. Holding a token proves that the instructions exist, which is what makes the SIMD code that
//! takes one sound. All tiers give the same results; tests and fuzz targets run each of them.

mod pages;
mod prefetch;

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};

pub(crate) use pages::{Zeroable, ZeroedPages, advise_huge_pages};
pub(crate) use prefetch::prefetch;

/// A set of instructions that the engine has code for, from slow to fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Plain Rust, for any processor.
    Portable,
    /// 32 bytes at a time, with the bit instructions of BMI.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 64 bytes at a time, with VBMI2's compression: Intel since Ice Lake, AMD since Zen 4.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Proof that no instruction is needed that a processor might lack.
#[derive(Clone, Copy)]
pub(crate) struct Portable(());

/// Proof that this processor has AVX2 and BMI. [`detect`] alone makes it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2 {
    has_fast_pext: bool,
}

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// Whether `pext` and `pdep` take a cycle or two. Before Zen 3, AMD's take hundreds.
    #[inline(always)]
    pub(crate) fn has_fast_pext(self) -> bool {
        self.has_fast_pext
    }
}

/// Proof that this processor has AVX-512 with VBMI2, and all of [`Avx2`]. [`detect`] alone makes it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// Work that is compiled for a tier. `run` and all it calls should be `inline(always)`: only code
/// that is inlined into the tier's own function uses the tier's instructions.
pub(crate) trait Work<T> {
    type Output;

    fn run(self, tier: T) -> Self::Output;
}

/// Tokens of the tiers that this processor has.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "there is one tier"))]
struct Detected {
    best: Tier,
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
    #[cfg(target_arch = "x86_64")]
    avx512: Option<Avx512>,
}

/// Never waits for another thread, which may not exist after a fork: both detect the same.
#[cfg(target_arch = "x86_64")]
#[inline]
fn detect() -> Detected {
    /// The best tier and whether `pext` is fast, in one number; 0 if not detected yet.
    static DETECTED: AtomicU8 = AtomicU8::new(0);
    match DETECTED.load(Ordering::Relaxed) {
        0 => {
            let flags = x86::detect();
            DETECTED.store(flags, Ordering::Relaxed);
            Detected::from_flags(flags)
        }
        flags => Detected::from_flags(flags),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Detected {
    Detected { best: Tier::Portable }
}

#[cfg(target_arch = "x86_64")]
impl Detected {
    const KNOWN: u8 = 1;
    const AVX2: u8 = 1 << 1;
    const AVX512: u8 = 1 << 2;
    const FAST_PEXT: u8 = 1 << 3;

    #[inline]
    fn from_flags(flags: u8) -> Self {
        let (has_avx2, has_avx512) = (flags & Self::AVX2 != 0, flags & Self::AVX512 != 0);
        Self {
            best: match (has_avx2, has_avx512) {
                (_, true) => Tier::Avx512,
                (true, _) => Tier::Avx2,
                _ => Tier::Portable,
            },
            avx2: has_avx2.then_some(Avx2 { has_fast_pext: flags & Self::FAST_PEXT != 0 }),
            avx512: has_avx512.then_some(Avx512(())),
        }
    }
}

thread_local! {
    /// The tier that [`Tier::force`] sets for this thread.
    static FORCED: Cell<Option<Tier>> = const { Cell::new(None) };
}

/// The fastest tier that the process may use, as a number; see [`Tier::limit`].
static LIMIT: AtomicU8 = AtomicU8::new(u8::MAX);

impl Tier {
    #[cfg(target_arch = "x86_64")]
    const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];
    #[cfg(not(target_arch = "x86_64"))]
    const ALL: [Self; 1] = [Self::Portable];

    /// The tiers that this processor has, from slow to fast.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|&tier| tier <= detect().best).collect()
    }

    /// The tier's name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }

    /// The tier that runs on this thread.
    #[inline]
    pub fn current() -> Self {
        let best = detect().best;
        match FORCED.get() {
            Some(forced) => forced.min(best),
            None if best as u8 > LIMIT.load(Ordering::Relaxed) => Self::limited(),
            None => best,
        }
    }

    #[cold]
    fn limited() -> Self {
        let limit = LIMIT.load(Ordering::Relaxed);
        Self::ALL.into_iter().rfind(|&tier| tier as u8 <= limit).unwrap_or(Self::Portable)
    }

    /// Calls `work` with this tier on this thread, or with the best one available if that is slower.
    pub fn force<R>(self, work: impl FnOnce() -> R) -> R {
        /// Restores the tier, also if the work panics.
        struct Restore(Option<Tier>);

        impl Drop for Restore {
            fn drop(&mut self) {
                FORCED.set(self.0);
            }
        }
        let _restore = Restore(FORCED.replace(Some(self)));
        work()
    }

    /// Lets the process use no faster tier than this one: for benchmarks and bug reports.
    pub fn limit(self) {
        LIMIT.store(self as u8, Ordering::Relaxed);
    }
}

/// Runs work on the current tier.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "instructions not all processors have")]
pub(crate) fn run<R, W>(work: W) -> R
where
    W: Work<Portable, Output = R> + Work<Avx2, Output = R> + Work<Avx512, Output = R>,
{
    let Detected { avx2, avx512, .. } = detect();
    match (Tier::current(), avx2, avx512) {
        // SAFETY: the token exists, so the instructions do.
        (Tier::Avx512, _, Some(tier)) => unsafe { x86::run_avx512(work, tier) },
        // SAFETY: the same.
        (Tier::Avx2, Some(tier), _) => unsafe { x86::run_avx2(work, tier) },
        _ => work.run(Portable(())),
    }
}

/// Runs work on the only tier there is.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn run<R, W: Work<Portable, Output = R>>(work: W) -> R {
    work.run(Portable(()))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::__cpuid;

    use super::{Avx2, Avx512, Detected, Work};

    /// The flags of [`Detected`].
    pub(super) fn detect() -> u8 {
        let has_avx2 =
            has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
        let has_avx512 = has_avx2
            && has!("avx512f")
            && has!("avx512bw")
            && has!("avx512dq")
            && has!("avx512vl")
            && has!("avx512vbmi")
            && has!("avx512vbmi2");
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        Detected::KNOWN
            | flag(has_avx2, Detected::AVX2)
            | flag(has_avx512, Detected::AVX512)
            | flag(has_avx2 && has_fast_pext(), Detected::FAST_PEXT)
    }

    /// AMD's families 15 to 18 (hexadecimal) have `pext` in microcode: Excavator, Zen, Zen 2, Hygon.
    fn has_fast_pext() -> bool {
        let vendor = __cpuid(0);
        let is_intel = vendor.ebx == u32::from_le_bytes(*b"Genu");
        let signature = __cpuid(1).eax;
        let family = (signature >> 8 & 0xF) + (signature >> 20 & 0xFF);
        is_intel || family >= 0x19
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn run_avx2<W: Work<Avx2>>(work: W, tier: Avx2) -> W::Output {
        work.run(tier)
    }

    #[target_feature(
        enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi1,bmi2,lzcnt,popcnt"
    )]
    pub(super) fn run_avx512<W: Work<Avx512>>(work: W, tier: Avx512) -> W::Output {
        work.run(tier)
    }
}

#[cfg(test)]
mod tests;
