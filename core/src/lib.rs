//! The hot loops of Reticent: integer codes in, integer codes out.
//!
//! Nothing here knows a string, a policy or a file. Each kernel lives in its own module and is
//! registered as a Python submodule (`reticent._core.table`, `reticent._core.stream`, ...); each has an
//! obvious Python twin in `tests/` that it must equal.

use pyo3::prelude::*;

mod evolving;
mod random;
mod series;
mod stream;
mod table;
mod veil;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    evolving::register(m)?;
    random::register(m)?;
    stream::register(m)?;
    series::register(m)?;
    table::register(m)?;
    veil::register(m)?;
    Ok(())
}
