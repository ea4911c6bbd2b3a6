//! The instruction sets that the engine uses: for benchmarks, tests and bug reports.

use byteweld_core::cpu::Tier;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The names of the tiers that this processor has, from slow to fast.
#[pyfunction]
pub(crate) fn tiers() -> Vec<&'static str> {
    Tier::available().into_iter().map(Tier::name).collect()
}

/// Lets the process use no faster tier than the named one.
#[pyfunction]
pub(crate) fn limit_tier(name: &str) -> PyResult<()> {
    match Tier::available().into_iter().find(|tier| tier.name() == name) {
        Some(tier) => {
            tier.limit();
            Ok(())
        }
        None => Err(PyValueError::new_err(format!(
            "tier is {name:?}; this processor has {}",
            tiers().join(", ")
        ))),
    }
}
