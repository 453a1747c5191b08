//! The privacy models as Python hands them over.

use pyo3::prelude::*;

use crate::py::refuse;
use crate::table::model::{self, Distance, Diversity, Ratio};

/// k, then `(kind, numerators and denominators...)` for l and t.
#[pyclass(frozen, module = "reticent._core.table")]
pub struct Model(pub(super) model::Model);

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (*, k=1, l=None, t=None))]
    fn new(k: u32, l: Option<(String, Vec<u64>)>, t: Option<(String, u64, u64)>) -> PyResult<Self> {
        let diversity = l
            .map(|(kind, numbers)| diversity(&kind, &numbers))
            .transpose()?;
        let closeness = t
            .map(|(kind, num, den)| Ok::<_, PyErr>((distance(&kind)?, ratio(num, den)?)))
            .transpose()?;
        Ok(Self(model::Model {
            k,
            diversity,
            closeness,
        }))
    }
}

fn ratio(num: u64, den: u64) -> PyResult<Ratio> {
    if den == 0 {
        return Err(refuse("a ratio needs a denominator"));
    }
    Ok(Ratio { num, den })
}

fn diversity(kind: &str, numbers: &[u64]) -> PyResult<Diversity> {
    match (kind, numbers) {
        ("distinct", &[l]) => Ok(Diversity::Distinct(l as u32)),
        ("entropy", &[num, den]) => Ok(Diversity::Entropy(ratio(num, den)?)),
        ("frequency", &[num, den]) => Ok(Diversity::Frequency(ratio(num, den)?)),
        ("recursive", &[num, den, l]) => Ok(Diversity::Recursive {
            c: ratio(num, den)?,
            l: l as u32,
        }),
        _ => Err(refuse("unknown kind of l-diversity")),
    }
}

fn distance(kind: &str) -> PyResult<Distance> {
    match kind {
        "equal" => Ok(Distance::Equal),
        "ordered" => Ok(Distance::Ordered),
        "hierarchical" => Ok(Distance::Hierarchical),
        _ => Err(refuse("unknown distance of t-closeness")),
    }
}
