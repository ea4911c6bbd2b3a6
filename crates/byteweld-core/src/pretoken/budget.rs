//! What the patterns of one text may cost.
//!
//! A backtracking engine, or an automaton that looks ahead, can take quadratic or exponential time. So their steps are
//! counted, over the whole text however it is divided, and are limited in proportion to its length: the time is
//! linear, and what is refused is the same on every machine.

use crate::error::Result;
use crate::watch::Watch;

/// The steps that a text may take for each of its bytes. Patterns of the field take ten or twenty.
const STEPS_PER_BYTE: usize = 512;

/// The steps that any text may take: a millisecond or two.
const STEPS_FREE: usize = 1 << 18;

/// Number of steps between two checks for an interrupt.
const LOAN: usize = 1 << 16;

/// The steps that are left for a text.
#[derive(Clone, Default)]
pub(crate) struct Budget {
    steps: usize,
    watch: Watch,
}

impl Budget {
    /// What any text has.
    pub(crate) fn new(watch: Watch) -> Self {
        Self { steps: STEPS_FREE, watch }
    }

    /// Adds what is due for a part of the text that a pattern is about to run over.
    pub(super) fn add(&mut self, bytes: usize) {
        self.steps = self.steps.saturating_add(bytes.saturating_mul(STEPS_PER_BYTE));
    }

    /// Whether to stop.
    pub(crate) fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    /// Some steps to take; those not taken are to be given back. 0 if there are none left.
    pub(super) fn lend(&mut self) -> usize {
        let loan = self.steps.min(LOAN);
        self.steps -= loan;
        loan
    }

    /// The same when a loan has been used up. `None` if there are none left.
    pub(super) fn lend_more(&mut self) -> Result<Option<usize>> {
        self.watch.look()?;
        Ok(Some(self.lend()).filter(|&loan| loan > 0))
    }

    pub(super) fn give_back(&mut self, steps: usize) {
        self.steps += steps;
    }

    /// Takes steps; false if too few are left.
    pub(super) fn take(&mut self, steps: usize) -> Result<bool> {
        self.watch.worked(steps)?;
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        Ok(left.is_some())
    }
}
