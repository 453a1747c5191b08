//! Kernels as Python builds them; a veil binds them to its strata.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::super::SLOT_LENGTH;
use super::super::kernel;
use super::super::matrix::Matrix;
use super::super::shares::Shares;
use super::demand;

#[derive(Clone)]
enum Numbers {
    Shares(Vec<u64>, u64, Vec<u32>),
    Matrix(Vec<usize>, Vec<u16>, Vec<u64>),
}

/// How values follow one another: stay probabilities, or a matrix.
#[pyclass(frozen, module = "reticent._core.veil")]
pub struct Kernel(Numbers);

fn check_matrix(starts: &[usize], targets: &[u16], weights: &[u64]) -> bool {
    let spans = starts.first() == Some(&0)
        && starts.is_sorted()
        && starts.last() == Some(&targets.len())
        && weights.len() == targets.len();
    spans
        && starts.windows(2).all(|span| {
            let (targets, weights) = (&targets[span[0]..span[1]], &weights[span[0]..span[1]]);
            let sum = weights
                .iter()
                .try_fold(0u64, |sum, &weight| sum.checked_add(weight));
            targets.is_sorted_by(|a, b| a < b) && !weights.contains(&0) && sum.is_some()
        })
}

#[pymethods]
impl Kernel {
    /// `stay` and `within` as shares of SLOT_LENGTH; `parents` is the parent node of every value.
    #[staticmethod]
    #[pyo3(signature = (stay, *, within, parents))]
    fn from_stays(
        stay: PyReadonlyArray1<'_, u64>,
        within: u64,
        parents: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<Self> {
        let (stay, parents) = (stay.as_slice()?.to_vec(), parents.as_slice()?.to_vec());
        let bounded = within <= SLOT_LENGTH && stay.iter().all(|&length| length <= SLOT_LENGTH);
        demand(
            bounded,
            "stay and within must lie between 0 and SLOT_LENGTH",
        )?;
        demand(
            stay.len() == parents.len(),
            "stay and parents differ in length",
        )?;
        Ok(Kernel(Numbers::Shares(stay, within, parents)))
    }

    /// Targets of value v are `starts[v] : starts[v + 1]`, ascending, with positive weights.
    #[staticmethod]
    fn from_matrix(
        starts: PyReadonlyArray1<'_, u64>,
        targets: PyReadonlyArray1<'_, u16>,
        weights: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<Self> {
        let starts: Vec<usize> = starts.as_slice()?.iter().map(|&at| at as usize).collect();
        let (targets, weights) = (targets.as_slice()?.to_vec(), weights.as_slice()?.to_vec());
        demand(
            check_matrix(&starts, &targets, &weights),
            "the matrix does not fit: targets must ascend and weights be positive",
        )?;
        Ok(Kernel(Numbers::Matrix(starts, targets, weights)))
    }
}

impl Kernel {
    pub fn bind(&self, strata: &[Vec<u64>], size: usize) -> PyResult<kernel::Kernel> {
        match self.0.clone() {
            Numbers::Shares(stay, within, parents) => {
                demand(stay.len() == size, "the kernel does not fit the domain")?;
                Ok(kernel::Kernel::Shares(Shares::new(
                    stay, within, parents, strata,
                )))
            }
            Numbers::Matrix(starts, targets, weights) => {
                let inside = targets.iter().all(|&target| usize::from(target) < size);
                demand(
                    starts.len() == size + 1 && inside,
                    "the kernel does not fit the domain",
                )?;
                Ok(kernel::Kernel::Matrix(Matrix::new(
                    starts, targets, &weights,
                )))
            }
        }
    }
}
