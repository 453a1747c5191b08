//! The privacy models, from Python.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::{Codes, Sensitive, tables};
use crate::py::refuse;
use crate::table::model::{self, Distance, Diversity, Ratio};
use crate::table::persons::Persons;

/// Person and records of each pair, then the values of the pairs by sensitive attribute.
type People<'py> = (Codes<'py>, PyReadonlyArray1<'py, u32>, Vec<Sensitive<'py>>);

/// k, then `(kind, numerators and denominators...)` for l and t.
#[pyclass(frozen, module = "reticent._core.table")]
pub struct Model(pub(super) model::Model);

#[pymethods]
impl Model {
    #[new]
    #[pyo3(signature = (*, k=1, l=None, t=None, persons=None))]
    fn new(
        k: u32,
        l: Option<(String, Vec<u64>)>,
        t: Option<(String, u64, u64)>,
        persons: Option<People<'_>>,
    ) -> PyResult<Self> {
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
            persons: persons.map(|given| people(&given)).transpose()?,
        }))
    }
}

fn people((owner, times, columns): &People<'_>) -> PyResult<Persons> {
    let (owner, times) = (owner.as_slice()?, times.as_slice()?);
    if owner.len() != times.len() || !owner.is_sorted() || owner.first().is_some_and(|&p| p < 0) {
        return Err(refuse("pairs must be numbered person by person"));
    }
    let column = |(values, width, tree): &Sensitive<'_>| {
        let values = values.as_slice()?;
        super::in_domain(values, *width, owner.len())?;
        Ok((
            values.iter().map(|&v| v as u32).collect(),
            *width,
            tables(tree, *width)?,
        ))
    };
    let columns = columns.iter().map(column).collect::<PyResult<_>>()?;
    Ok(Persons::new(
        owner.iter().map(|&p| p as u32).collect(),
        columns,
        times,
    ))
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
