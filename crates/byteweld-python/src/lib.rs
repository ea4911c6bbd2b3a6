//! `byteweld._native`: the list of what Python gets. `src/byteweld/_native.pyi` documents it.

mod convert;
mod corpus;
mod counting;
mod counts;
mod encoder;
mod error;
mod limit;
mod lists;
mod output;
mod table;
mod text;
mod trainer;
mod utf8;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::corpus::Documents;
    #[pymodule_export]
    use super::counting::CountBuilder;
    #[pymodule_export]
    use super::counts::{CountLoader, Counts};
    #[pymodule_export]
    use super::encoder::{Encoder, SpecialChoice, canonical_pattern, recover_merges};
    #[pymodule_export]
    use super::limit::MemoryLimit;
    #[pymodule_export]
    use super::table::{LetterModel, Table};
    #[pymodule_export]
    use super::trainer::train;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
