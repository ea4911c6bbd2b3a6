//! `byteweld._native`: the list of everything exported to Python. `src/byteweld/_native.pyi`
//! documents it.

mod arrow;
mod convert;
mod corpus;
mod counts;
mod encoder;
mod engine;
mod error;
mod inputs;
mod limit;
mod lists;
mod names;
mod output;
mod remote;
mod specials;
mod stream;
mod table;
mod table_reader;
mod text;
mod tiers;
mod tokenizer_json;
mod trainer;
mod vocabulary;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _native {
    use super::*;

    #[pymodule_export]
    use super::corpus::{
        Documents, count_bytes, decompress, decompress_head, file_digest, is_compressed,
    };
    #[pymodule_export]
    use super::counts::{CountBuilder, CountLoader, Counts};
    #[pymodule_export]
    use super::encoder::{Encoder, canonical_pattern, recover_merges};
    #[pymodule_export]
    use super::limit::MemoryLimit;
    #[pymodule_export]
    use super::table::{Table, crc32c};
    #[pymodule_export]
    use super::tiers::{limit_tier, tiers};
    #[pymodule_export]
    use super::tokenizer_json::{TokenizerJson, added_in_model};
    #[pymodule_export]
    use super::trainer::train;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
