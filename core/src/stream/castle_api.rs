//! CASTLE as Python sees it: columns in, released regions out, snapshots.

use std::collections::VecDeque;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::bytes::{Read, Reader, Writer};
use super::castle::{Castle as Core, Cluster, Held, Out, Settings, Tally};
use super::cluster::{Ladder, Point, Region, Space};
use super::draw::Draw;

/// The state of one stream under `castle`.
#[pyclass(module = "reticent._core.stream")]
pub struct Castle(Core);

/// Sequence numbers, 1 for published and 0 for suppressed, leaves, levels, lower and upper bounds.
type Released<'py> = (
    Bound<'py, PyArray1<u64>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray2<u32>>,
    Bound<'py, PyArray2<u32>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
);

#[pymethods]
impl Castle {
    #[new]
    #[pyo3(signature = (*, key, shard, k, l, delta, beta, mu, reuse, categories, numbers))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        key: [u8; 32],
        shard: u16,
        k: usize,
        l: usize,
        delta: usize,
        beta: usize,
        mu: usize,
        reuse: usize,
        categories: usize,
        numbers: usize,
    ) -> PyResult<Self> {
        if k == 0 || l == 0 || beta == 0 || mu == 0 {
            return Err(PyValueError::new_err("k, l, beta and mu are at least 1"));
        }
        let space = Space {
            ladders: vec![Ladder::default(); categories],
            low: vec![f64::INFINITY; numbers],
            high: vec![f64::NEG_INFINITY; numbers],
        };
        Ok(Castle(Core {
            settings: Settings {
                k,
                l,
                delta,
                beta,
                mu,
                reuse,
            },
            space,
            held: Vec::new(),
            spare: Vec::new(),
            order: VecDeque::new(),
            clusters: Vec::new(),
            published: VecDeque::new(),
            losses: VecDeque::new(),
            arrived: 0,
            published_sums: (0, 0.0, 0.0),
            now: 0,
            waited: 0,
            draw: Draw::new(key, u64::from(shard)),
        }))
    }

    /// The hierarchy of one category: per level the node of every leaf and the loss of every node.
    fn set_ladder(
        &mut self,
        attribute: usize,
        tables: Vec<Vec<u32>>,
        losses: Vec<Vec<f64>>,
    ) -> PyResult<()> {
        let leaves = tables.first().map_or(0, Vec::len);
        let fits = |(t, l): (&Vec<u32>, &Vec<f64>)| {
            t.len() == leaves && t.iter().all(|&n| (n as usize) < l.len())
        };
        let known = self
            .0
            .space
            .ladders
            .get(attribute)
            .ok_or_else(|| PyValueError::new_err("no such attribute"))?;
        let grows = known.tables.first().is_none_or(|t| t.len() <= leaves);
        let deep = known.tables.is_empty() || known.tables.len() == tables.len();
        if tables.len() != losses.len() || !tables.iter().zip(&losses).all(fits) || !grows || !deep
        {
            return Err(PyValueError::new_err("a hierarchy that does not fit"));
        }
        self.0.space.ladders[attribute] = Ladder { tables, losses };
        Ok(())
    }

    /// Takes tuples in; gives back those that left, published or suppressed.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        seqs: PyReadonlyArray1<'py, u64>,
        persons: PyReadonlyArray1<'py, u64>,
        values: PyReadonlyArray1<'py, u32>,
        leaves: PyReadonlyArray2<'py, u32>,
        numbers: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Released<'py>> {
        let (seqs, persons, values) = (seqs.as_slice()?, persons.as_slice()?, values.as_slice()?);
        let (leaves, numbers) = (leaves.as_slice()?, numbers.as_slice()?);
        let (c, n) = (self.0.space.ladders.len(), self.0.space.low.len());
        let rows = seqs.len();
        let sized = persons.len() == rows
            && values.len() == rows
            && leaves.len() == rows * c
            && numbers.len() == rows * n;
        let bounds: Vec<usize> = self
            .0
            .space
            .ladders
            .iter()
            .map(|l| l.tables.first().map_or(0, Vec::len))
            .collect();
        let known = leaves
            .iter()
            .enumerate()
            .all(|(i, &leaf)| (leaf as usize) < bounds[i % c]);
        if !sized || !known || numbers.iter().any(|x| !x.is_finite()) {
            return Err(PyValueError::new_err("a batch that does not fit"));
        }
        let out = py.detach(|| {
            let mut out = Vec::new();
            for i in 0..rows {
                let point = Point {
                    leaves: leaves[i * c..(i + 1) * c].to_vec(),
                    numbers: numbers[i * n..(i + 1) * n].to_vec(),
                };
                self.0
                    .arrive(seqs[i], persons[i], values[i], point, &mut out);
            }
            out
        });
        self.arrays(py, out)
    }

    /// Releases or suppresses all that is still held.
    fn close<'py>(&mut self, py: Python<'py>) -> PyResult<Released<'py>> {
        let mut out = Vec::new();
        py.detach(|| self.0.flush(&mut out));
        self.arrays(py, out)
    }

    /// Tuples taken in, tuples held, live clusters, reusable regions.
    fn totals(&self) -> (u64, usize, usize, usize) {
        let held = self.0.held.len() - self.0.spare.len();
        (
            self.0.arrived,
            held,
            self.0.clusters.iter().flatten().count(),
            self.0.published.len(),
        )
    }

    /// Over the published tuples: their number, the loss of their quasi-identifiers, the spread of their values, their waits.
    fn losses(&self) -> (u64, f64, f64, u64) {
        let (tuples, loss, spread) = self.0.published_sums;
        (tuples, loss, spread, self.0.waited)
    }

    fn snapshot<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut out = Writer(Vec::new());
        write(&self.0, &mut out);
        PyBytes::new(py, &out.0)
    }

    /// Goes on from a snapshot of an engine built with the same settings and hierarchies.
    fn restore(&mut self, state: &[u8]) -> PyResult<()> {
        read(&mut self.0, &mut Reader(state)).map_err(PyValueError::new_err)
    }
}

impl Castle {
    fn arrays<'py>(&self, py: Python<'py>, out: Vec<Out>) -> PyResult<Released<'py>> {
        let (c, n, rows) = (
            self.0.space.ladders.len(),
            self.0.space.low.len(),
            out.len(),
        );
        let (mut leaves, mut levels) = (Vec::with_capacity(rows * c), Vec::with_capacity(rows * c));
        let (mut low, mut high) = (Vec::with_capacity(rows * n), Vec::with_capacity(rows * n));
        for released in &out {
            match &released.region {
                Some(region) => {
                    leaves.extend_from_slice(&region.leaves);
                    levels.extend_from_slice(&region.levels);
                    low.extend_from_slice(&region.low);
                    high.extend_from_slice(&region.high);
                }
                None => {
                    leaves.resize(leaves.len() + c, 0);
                    levels.resize(levels.len() + c, 0);
                    low.resize(low.len() + n, 0.0);
                    high.resize(high.len() + n, 0.0);
                }
            }
        }
        let seqs: Vec<u64> = out.iter().map(|o| o.seq).collect();
        let kept: Vec<u8> = out.iter().map(|o| u8::from(o.region.is_some())).collect();
        let table = |flat: Vec<u32>| ndarray(flat, rows, c).map(|a| a.into_pyarray(py));
        let bounds = |flat: Vec<f64>| ndarray(flat, rows, n).map(|a| a.into_pyarray(py));
        Ok((
            seqs.into_pyarray(py),
            kept.into_pyarray(py),
            table(leaves)?,
            table(levels)?,
            bounds(low)?,
            bounds(high)?,
        ))
    }
}

fn ndarray<T>(flat: Vec<T>, rows: usize, columns: usize) -> PyResult<numpy::ndarray::Array2<T>> {
    numpy::ndarray::Array2::from_shape_vec((rows, columns), flat)
        .map_err(|e| PyValueError::new_err(e.to_string()))
}

fn write_region(out: &mut Writer, region: &Region) {
    out.u32s(&region.leaves);
    out.u32s(&region.levels);
    out.u64s(&region.low.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    out.u64s(&region.high.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
}

fn read_region(input: &mut Reader) -> Read<Region> {
    let bits = |xs: Vec<u64>| xs.into_iter().map(f64::from_bits).collect();
    Ok(Region {
        leaves: input.u32s()?,
        levels: input.u32s()?,
        low: bits(input.u64s()?),
        high: bits(input.u64s()?),
    })
}

fn write(core: &Core, out: &mut Writer) {
    out.u64(core.arrived);
    let (tuples, loss, spread) = core.published_sums;
    out.u64(tuples);
    out.f64(loss);
    out.f64(spread);
    out.u64(core.now);
    out.u64(core.waited);
    for &x in core.space.low.iter().chain(&core.space.high) {
        out.f64(x);
    }
    out.u64(core.held.len() as u64);
    for held in &core.held {
        let Some(t) = held else {
            out.u32(0);
            continue;
        };
        out.u32(1);
        out.u64(t.seq);
        out.u64(t.person);
        out.u32(t.value);
        out.u32(t.cluster);
        out.u32s(&t.point.leaves);
        out.u64s(
            &t.point
                .numbers
                .iter()
                .map(|x| x.to_bits())
                .collect::<Vec<_>>(),
        );
    }
    out.u32s(&core.spare);
    out.u64(core.order.len() as u64);
    for &(position, number) in &core.order {
        out.u64(position);
        out.u32(number);
    }
    out.u64(core.clusters.len() as u64);
    for cluster in &core.clusters {
        let members = cluster.as_ref().map_or(&[][..], |c| &c.members);
        out.u32s(members);
        if let Some(c) = cluster {
            write_region(out, &c.region);
        }
    }
    out.u64(core.published.len() as u64);
    for region in &core.published {
        write_region(out, region);
    }
    out.u64(core.losses.len() as u64);
    for &loss in &core.losses {
        out.f64(loss);
    }
}

fn read(core: &mut Core, input: &mut Reader) -> Read<()> {
    core.arrived = input.u64()?;
    core.published_sums = (input.u64()?, input.f64()?, input.f64()?);
    (core.now, core.waited) = (input.u64()?, input.u64()?);
    for x in core.space.low.iter_mut().chain(&mut core.space.high) {
        *x = input.f64()?;
    }
    core.held.clear();
    for _ in 0..input.len(4)? {
        let held = if input.u32()? == 0 {
            None
        } else {
            Some(read_held(input)?)
        };
        core.held.push(held);
    }
    core.spare = input.u32s()?;
    core.order = (0..input.len(12)?)
        .map(|_| Ok((input.u64()?, input.u32()?)))
        .collect::<Read<_>>()?;
    core.clusters.clear();
    for _ in 0..input.len(8)? {
        let members = input.u32s()?;
        let cluster = if members.is_empty() {
            None
        } else {
            Some(rebuild(core, members, read_region(input)?)?)
        };
        core.clusters.push(cluster);
    }
    core.published = (0..input.len(32)?)
        .map(|_| read_region(input))
        .collect::<Read<_>>()?;
    core.losses = (0..input.len(8)?)
        .map(|_| input.f64())
        .collect::<Read<_>>()?;
    input.end()
}

fn read_held(input: &mut Reader) -> Read<Held> {
    let (seq, person, value, cluster) = (input.u64()?, input.u64()?, input.u32()?, input.u32()?);
    let (leaves, numbers) = (
        input.u32s()?,
        input.u64s()?.into_iter().map(f64::from_bits).collect(),
    );
    Ok(Held {
        seq,
        person,
        value,
        cluster,
        point: Point { leaves, numbers },
    })
}

fn rebuild(core: &Core, members: Vec<u32>, region: Region) -> Read<Cluster> {
    let (mut persons, mut values) = (Tally::default(), Tally::default());
    for &member in &members {
        let held = core.held.get(member as usize).and_then(Option::as_ref);
        let held = held.ok_or("the snapshot contradicts itself")?;
        *persons.0.entry(held.person).or_default() += 1;
        *values.0.entry(u64::from(held.value)).or_default() += 1;
    }
    Ok(Cluster {
        region,
        members,
        persons,
        values,
    })
}
