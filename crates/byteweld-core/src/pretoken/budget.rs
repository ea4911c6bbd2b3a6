//! Limits the work that patterns may do on one text.
//!
//! A backtracking engine can take exponential time, and an automaton that looks ahead can take quadratic time. So both
//! count steps, over the whole text however it is divided, and the limit is proportional to its length. This makes the
//! time linear, and every machine refuses the same inputs.

use crate::error::Result;
use crate::watch::Watch;

/// Steps allowed per byte of text. Common patterns take ten or twenty.
const STEPS_PER_BYTE: usize = 512;

/// Steps allowed for any text: a millisecond or two.
const STEPS_FREE: usize = 1 << 18;

/// Number of steps between two checks for an interrupt.
const LOAN: usize = 1 << 16;

/// The steps left for a text.
#[derive(Clone, Default)]
pub(crate) struct Budget {
    steps: usize,
    watch: Watch,
}

impl Budget {
    /// The steps allowed for any text.
    pub(crate) fn new(watch: Watch) -> Self {
        Self { steps: STEPS_FREE, watch }
    }

    /// Adds the steps for a part of the text on which a pattern is about to run.
    pub(super) fn add(&mut self, bytes: usize) {
        self.steps = self.steps.saturating_add(bytes.saturating_mul(STEPS_PER_BYTE));
    }

    /// Tells whether to stop.
    pub(crate) fn watch(&mut self) -> &mut Watch {
        &mut self.watch
    }

    /// Lends some steps; the borrower gives back those it does not use. 0 if none are left.
    pub(super) fn lend(&mut self) -> usize {
        let loan = self.steps.min(LOAN);
        self.steps -= loan;
        loan
    }

    /// Lends more steps after a loan is used up. `None` if none are left.
    pub(super) fn lend_more(&mut self) -> Result<Option<usize>> {
        self.watch.look()?;
        Ok(Some(self.lend()).filter(|&loan| loan > 0))
    }

    pub(super) fn give_back(&mut self, steps: usize) {
        self.steps += steps;
    }

    /// Uses up steps; false if too few are left.
    pub(super) fn take(&mut self, steps: usize) -> Result<bool> {
        self.watch.worked(steps)?;
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        Ok(left.is_some())
    }
}
