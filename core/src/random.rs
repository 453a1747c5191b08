//! Unbiased choices from ChaCha20, shared by all kernels.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// Draws an index below `n` without bias (Lemire 2019: a multiplication, and a rejection only near the border).
#[inline]
pub fn below(rng: &mut impl Rng, n: usize) -> usize {
    let n = n as u64;
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(n);
        let low = wide as u64;
        if low >= n || low >= n.wrapping_neg() % n {
            return (wide >> 64) as usize;
        }
    }
}

/// Fisher-Yates.
pub fn shuffle<T>(items: &mut [T], rng: &mut impl Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, below(rng, i + 1));
    }
}

/// A random order of `n` things, drawn from ChaCha20 under `key`.
#[pyfunction]
#[pyo3(signature = (n, *, key))]
fn permutation<'py>(py: Python<'py>, n: usize, key: [u8; 32]) -> Bound<'py, PyArray1<i64>> {
    let order = py.detach(|| {
        let mut rng = ChaCha20Rng::from_seed(key);
        let mut order: Vec<i64> = (0..n as i64).collect();
        shuffle(&mut order, &mut rng);
        order
    });
    order.into_pyarray(py)
}

pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let m = PyModule::new(parent.py(), "random")?;
    m.add_function(wrap_pyfunction!(permutation, &m)?)?;
    parent.add_submodule(&m)
}
