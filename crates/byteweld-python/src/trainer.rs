//! Learns merges from counts.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Instant;

use byteweld_core::train::{
    self as core, KnownMerge, Options, PretokenCounts, StepLimits, Stop, TieBreak,
};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::convert::{merges, threads};
use crate::counts::{Counts, Table};
use crate::error::{check_memory, raise};
use crate::names::ByName;

/// What Python needs at most for a learned merge.
const OBJECT_BYTES: usize = 384;

/// (left, right, new, count, removed)
type LearnedMerge = (u32, u32, u32, u64, u64);

/// (left, right, count)
type PairCount = (u32, u32, u64);

/// (first parts, number of parts, count)
type PretokenParts = (Vec<u32>, u64, u64);

/// (parts, whether they start the pre-token, whether they end it, count)
type Example = (Vec<u32>, bool, bool, u64);

/// (pairs, number of pairs, number of ties, example, pre-tokens)
type Step = (Vec<PairCount>, usize, usize, Example, Vec<PretokenParts>);

/// The pre-tokens before the first merge, and the steps.
type Steps = (Vec<PretokenParts>, Vec<Step>);

/// Merges, why training stopped, tokens before the first merge, seconds of the layout, steps.
type Trained = (Vec<LearnedMerge>, &'static str, u64, f64, Steps);

/// Counts that remember when they were last read. The trainer reads them only to lay them out.
struct Timed<'t> {
    table: &'t Table,
    last_read: Cell<Instant>,
}

impl PretokenCounts for Timed<'_> {
    fn for_each(
        &self,
        each: &mut dyn FnMut(&[u8], u64) -> byteweld_core::Result<()>,
    ) -> byteweld_core::Result<()> {
        self.table.for_each(each)?;
        self.last_read.set(Instant::now());
        Ok(())
    }
}

/// Learns merges; returns them, the reason why training stopped, the number of tokens before the
/// first merge, the seconds it took to lay out the counts, and the steps: empty unless `steps` says
/// how many pairs, pre-tokens and parts of each to record. `progress` is called with the merges
/// learned since the last call.
#[pyfunction]
#[pyo3(signature = (counts, *, base_ids, first_id, max_new_ids, reserved, forbidden, known, tie_break, min_frequency, max_token_bytes, num_threads, steps, progress))]
#[expect(clippy::too_many_arguments, reason = "keyword-only in Python")]
pub(crate) fn train(
    py: Python<'_>,
    counts: &Bound<'_, Counts>,
    base_ids: Vec<Option<u32>>,
    first_id: u32,
    max_new_ids: usize,
    reserved: Vec<(Vec<u8>, u32)>,
    forbidden: Vec<Vec<u8>>,
    known: &Bound<'_, PyAny>,
    tie_break: ByName<TieBreak>,
    min_frequency: u64,
    max_token_bytes: Option<usize>,
    num_threads: Option<i128>,
    steps: Option<(usize, usize, usize)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Trained> {
    let base_ids = <[Option<u32>; 256]>::try_from(base_ids)
        .map_err(|_| PyValueError::new_err("base_ids must have 256 entries"))?;
    let options = Options {
        base_ids,
        first_id,
        max_new_ids,
        reserved,
        forbidden,
        known: merges(known)?
            .into_iter()
            .map(|(left, right, new)| KnownMerge { left, right, new })
            .collect(),
        tie_break: tie_break.0,
        min_frequency,
        max_token_bytes,
        threads: threads(num_threads)?.get(),
    };
    let limits = steps.map(|(pairs, pretokens, parts)| StepLimits { pairs, pretokens, parts });
    let table = &counts.get().table;
    let started = Instant::now();
    let mut failure = None;
    let mut reported = 0;
    let trained = py.detach(|| {
        let counts = Timed { table, last_read: Cell::new(started) };
        let mut report = |merges: &[core::LearnedMerge]| {
            let outcome = Python::attach(|py| {
                py.check_signals()?;
                let Some(call) = &progress else { return Ok(()) };
                call.call1(py, (as_tuples(&merges[reported..])?,)).map(drop)
            });
            reported = merges.len();
            match outcome {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let (trained, steps) = match limits {
            Some(limits) => core::train_step_by_step(&counts, &options, limits, &mut report)?,
            None => (core::train(&counts, &options, &mut report)?, core::Steps::default()),
        };
        Ok((trained, steps, counts.last_read.get() - started))
    });
    let (trained, steps, layout) = match (failure, trained) {
        (Some(error), _) => return Err(error),
        (None, Err(error)) => return Err(raise(py, error)),
        (None, Ok(trained)) => trained,
    };
    let stop = match trained.stop {
        Stop::Size => "size",
        Stop::NoPairs => "no pairs",
        Stop::MinFrequency => "min frequency",
    };
    check_memory(py, OBJECT_BYTES * trained.merges.len())?;
    let merges = as_tuples(&trained.merges)?;
    Ok((merges, stop, trained.first_tokens, layout.as_secs_f64(), steps_as_tuples(steps)))
}

fn steps_as_tuples(steps: core::Steps) -> Steps {
    let parts = |rows: Vec<core::PretokenParts>| {
        rows.into_iter().map(|row| (row.first, row.total, row.count)).collect()
    };
    let step = |step: core::Step| {
        let pairs = step.pairs.iter().map(|pair| (pair.left, pair.right, pair.count)).collect();
        let core::Example { parts: around, is_start, is_end, count } = step.example;
        let example = (around, is_start, is_end, count);
        (pairs, step.total_pairs, step.tied, example, parts(step.pretokens))
    };
    (parts(steps.before), steps.steps.into_iter().map(step).collect())
}

fn as_tuples(merges: &[core::LearnedMerge]) -> PyResult<Vec<LearnedMerge>> {
    let mut tuples = Vec::new();
    tuples.try_reserve_exact(merges.len()).map_err(|_| PyMemoryError::new_err(()))?;
    tuples.extend(merges.iter().map(|m| (m.left, m.right, m.new, m.count, m.removed)));
    Ok(tuples)
}
