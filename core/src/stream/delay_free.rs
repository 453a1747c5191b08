//! Delay-free anonymisation with late validation (Kim, Sung and Chung, 2014), on codes.

use numpy::{PyArray1, PyReadonlyArray1, ToPyArray};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::bytes::{Reader, Writer};
use super::draw::{Draw, derive};
use super::placed::{Ids, Placed, PlacedArrays};
use super::pools::{Kind, Pool};
use super::slots::Slots;

/// The state of one stream under `delay-free`.
#[pyclass(module = "reticent._core.stream")]
pub struct DelayFree {
    slots: Slots,
    pool: Pool,
    rank: Vec<u32>,
    seen: Vec<u64>,
    ids: Ids,
    draw: Draw,
    retire_after: u64,
    literal: usize,
    tuples: u64,
    offered: u64,
    retired: u64,
    candidates: Vec<u32>,
}

impl DelayFree {
    fn place(
        &mut self,
        seq: u64,
        qi: u64,
        code: u32,
        out: &mut Placed,
    ) -> Result<(), &'static str> {
        if self.retire_after > 0 {
            self.retired += self.slots.retire(seq.saturating_sub(self.retire_after));
        }
        self.draw.at(seq);
        let group = match self.slots.join(code, qi, &mut self.draw) {
            Some(id) => id,
            None => self.open(seq, qi, code, out)?,
        };
        self.tuples += 1;
        self.seen[code as usize] += 1;
        out.groups.push(group);
        Ok(())
    }

    fn open(
        &mut self,
        seq: u64,
        qi: u64,
        code: u32,
        out: &mut Placed,
    ) -> Result<u64, &'static str> {
        let mut cells = self.generate(code)?;
        // Sorted, or the order of drawing would print the true value first.
        cells.sort_unstable_by_key(|&(c, _)| self.rank[c as usize]);
        let own = cells
            .iter()
            .position(|&(c, _)| c == code)
            .expect("the own value is a candidate");
        let id = self.ids.draw();
        self.slots
            .open(id, seq, &cells, Some((own, qi)), self.retire_after > 0);
        self.offered += cells.iter().map(|&(_, n)| u64::from(n)).sum::<u64>();
        out.announce(id, cells.iter().map(|&(c, n)| (c as i32, n as i32)));
        Ok(id)
    }

    fn generate(&mut self, code: u32) -> Result<Vec<(u32, u32)>, &'static str> {
        if self.literal > 0 {
            let drawn = self.pool.literal(code, self.literal, &mut self.draw);
            return drawn.ok_or("the literal generation reached its draw limit");
        }
        let mut candidates = std::mem::take(&mut self.candidates);
        self.pool
            .candidates(code, self.ids.next, &mut self.draw, &mut candidates);
        let cells = candidates.iter().map(|&c| (c, 1)).collect();
        self.candidates = candidates;
        Ok(cells)
    }
}

#[pymethods]
impl DelayFree {
    #[new]
    #[pyo3(signature = (*, key, shard, l, pool, weights, rank, retire_after, literal))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        key: [u8; 32],
        shard: u16,
        l: usize,
        pool: &str,
        weights: PyReadonlyArray1<'_, u64>,
        rank: PyReadonlyArray1<'_, u32>,
        retire_after: u64,
        literal: usize,
    ) -> PyResult<Self> {
        let kind = match pool {
            "uniform" => Kind::Uniform,
            "empirical" => Kind::Empirical,
            "matched" => Kind::Matched,
            _ => return Err(PyValueError::new_err("no such pool")),
        };
        let weights = weights.as_slice()?.to_vec();
        let domain = weights.len();
        if l == 0 || domain < l || rank.as_slice()?.len() != domain {
            return Err(PyValueError::new_err(
                "the domain holds fewer than l values",
            ));
        }
        let shard = u64::from(shard);
        let orders = Draw::new(derive(key, 2), shard);
        let pool = Pool::new(kind, l, weights, orders).map_err(PyValueError::new_err)?;
        let mut slots = Slots::new(l);
        slots.grow(domain);
        Ok(DelayFree {
            slots,
            pool,
            rank: rank.as_slice()?.to_vec(),
            seen: vec![0; domain],
            ids: Ids::new(key, shard),
            draw: Draw::new(key, shard),
            retire_after,
            literal,
            tuples: 0,
            offered: 0,
            retired: 0,
            candidates: Vec::new(),
        })
    }

    /// Makes room for values outside the domain; `rank` is the published order of all values.
    fn grow(&mut self, rank: PyReadonlyArray1<'_, u32>) -> PyResult<()> {
        let rank = rank.as_slice()?;
        if rank.len() < self.pool.domain() {
            return Err(PyValueError::new_err("a domain never shrinks"));
        }
        self.rank = rank.to_vec();
        self.pool.grow(rank.len());
        self.seen.resize(rank.len(), 0);
        self.slots.grow(rank.len());
        Ok(())
    }

    /// Draws candidates by other weights from now on.
    fn reweigh(&mut self, weights: PyReadonlyArray1<'_, u64>) -> PyResult<()> {
        let weights = weights.as_slice()?.to_vec();
        if weights.len() != self.pool.domain() {
            return Err(PyValueError::new_err("one weight per value"));
        }
        self.pool.reweigh(weights).map_err(PyValueError::new_err)
    }

    /// Releases every tuple at once: its group, and the groups opened on the way.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        seqs: PyReadonlyArray1<'py, u64>,
        qis: PyReadonlyArray1<'py, u64>,
        codes: PyReadonlyArray1<'py, i32>,
    ) -> PyResult<PlacedArrays<'py>> {
        let (seqs, qis, codes) = (seqs.as_slice()?, qis.as_slice()?, codes.as_slice()?);
        let domain = self.pool.domain();
        if seqs.len() != qis.len() || seqs.len() != codes.len() {
            return Err(PyValueError::new_err("columns of different length"));
        }
        if codes.iter().any(|&c| c < 0 || c as usize >= domain) {
            return Err(PyValueError::new_err("a code lies outside the domain"));
        }
        let placed = py.detach(|| {
            let mut out = Placed::with_capacity(seqs.len());
            for ((&seq, &qi), &code) in seqs.iter().zip(qis).zip(codes) {
                self.place(seq, qi, code as u32, &mut out)?;
            }
            Ok(out)
        });
        placed
            .map_err(|e: &str| PyRuntimeError::new_err(e))
            .map(|p| p.into_arrays(py))
    }

    /// Tuples, slots offered, groups opened, open groups, retired groups, and the tuples of the most frequent value.
    fn totals(&self) -> (u64, u64, u64, u64, u64, u64) {
        (
            self.tuples,
            self.offered,
            self.ids.next,
            self.slots.open_groups(),
            self.retired,
            self.seen.iter().copied().max().unwrap_or(0),
        )
    }

    /// Tuples seen per code.
    fn seen<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        self.seen.to_pyarray(py)
    }

    fn snapshot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| {
            let mut out = Writer(Vec::new());
            for x in [self.tuples, self.offered, self.retired, self.ids.next] {
                out.u64(x);
            }
            out.u64s(&self.seen);
            self.slots.write(&mut out);
            out.0
        });
        PyBytes::new(py, &bytes)
    }

    /// Goes on from a snapshot of an engine built with the same settings.
    fn restore(&mut self, state: &[u8]) -> PyResult<()> {
        let mut input = Reader(state);
        let mut read = || {
            let numbers = (input.u64()?, input.u64()?, input.u64()?, input.u64()?);
            let seen = input.u64s()?;
            let slots = Slots::read(&mut input)?;
            input.end()?;
            Ok((numbers, seen, slots))
        };
        let (numbers, seen, slots) = read().map_err(|e: &str| PyValueError::new_err(e))?;
        if seen.len() != self.pool.domain() || slots.lists() != seen.len() {
            return Err(PyValueError::new_err("the snapshot is of another domain"));
        }
        (self.tuples, self.offered, self.retired, self.ids.next) = numbers;
        self.seen = seen;
        self.slots = slots;
        Ok(())
    }
}
