//! Sealed streams: a tuple's class comes from its person and its own value alone; delay-free inside the class.

use std::collections::HashMap;

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::bytes::{Read, Reader, Writer};
use super::draw::{Draw, derive};
use super::epoch::{Epoch, Seen};
use super::placed::{Ids, Placed};
use super::py;
use super::sip::Sip;
use super::slots::Slots;

/// Tuples whose classes are drawn together: their looks into the filter then overlap in time.
const AHEAD: usize = 64;

/// The state of one stream under `sealed`.
#[pyclass(module = "reticent._core.stream")]
pub struct Sealed {
    slots: Slots,
    width: usize,
    epochs: Vec<Epoch>,
    /// The classes of all epochs, `width` codes each in published order, and their numbers. Epochs share equal
    /// classes and thereby their open groups: given the class all slots are equally likely in each of them.
    rows: Vec<i32>,
    numbers: HashMap<Vec<i32>, u32>,
    /// Tuples and groups per class, over all epochs: what `provision` goes by.
    arrived: Vec<u64>,
    made: Vec<u64>,
    seen: Vec<u64>,
    memo: Sip,
    ids: Ids,
    draw: Draw,
    retire_after: u64,
    provision: Option<f64>,
    tuples: u64,
    forced: u64,
    retired: u64,
}

impl Sealed {
    /// The class and slot of a person's value: the same ones whenever the two come back.
    ///
    /// A pair published in an earlier epoch stays in that epoch's classes; two classes for one value would be
    /// intersected. The draw is a keyed function of person and value, so that nothing needs to be remembered but in
    /// which epoch the pair came first.
    fn cell(&mut self, person: u64, code: u32) -> Option<u32> {
        let current = self.epochs.len() - 1;
        let (mut chosen, own) = (current, self.mark(person, code));
        for (number, epoch) in self.epochs[..current].iter().enumerate() {
            let seen = match epoch.resolve(code) {
                Some(known) if known == code => epoch.seen.holds(own),
                Some(known) => epoch.seen.holds(self.mark(person, known)),
                None => false,
            };
            if seen {
                chosen = number;
                break;
            }
        }
        let known = self.epochs[chosen].resolve(code)?;
        if chosen == current {
            let mark = if known == code {
                own
            } else {
                self.mark(person, known)
            };
            self.epochs[current].seen.insert(mark);
        }
        let memo = self.memo;
        Some(self.epochs[chosen].draw(known, |attempt| {
            memo.words([person, u64::from(known), attempt << 32 | chosen as u64])
        }))
    }

    fn mark(&self, person: u64, code: u32) -> u64 {
        self.memo.words([person, u64::from(code), u64::MAX])
    }

    fn place(&mut self, seq: u64, qi: u64, list: u32, out: &mut Placed) {
        if self.retire_after > 0 {
            self.retired += self.slots.retire(seq.saturating_sub(self.retire_after));
        }
        self.draw.at(seq);
        let class = list as usize / self.width;
        self.arrived[class] += 1;
        self.stock(class, seq, out);
        let group = match self.slots.join(list, qi, &mut self.draw) {
            Some(id) => id,
            None => {
                self.forced += 1;
                self.open(class, seq, Some((list as usize % self.width, qi)), out)
            }
        };
        self.tuples += 1;
        out.groups.push(group);
    }

    fn open(
        &mut self,
        class: usize,
        seq: u64,
        member: Option<(usize, u64)>,
        out: &mut Placed,
    ) -> u64 {
        let id = self.ids.draw();
        let first = (class * self.width) as u32;
        let cells: Vec<(u32, u32)> = (0..self.width as u32).map(|s| (first + s, 1)).collect();
        self.slots
            .open(id, seq, &cells, member, self.retire_after > 0);
        self.made[class] += 1;
        let row = &self.rows[class * self.width..(class + 1) * self.width];
        out.announce(
            id,
            row.chunk_by(|a, b| a == b)
                .map(|same| (same[0], same.len() as i32)),
        );
        id
    }

    /// The number of a class; a new one gets the next.
    fn number(&mut self, row: &[i32]) -> u32 {
        if let Some(&number) = self.numbers.get(row) {
            return number;
        }
        let number = self.arrived.len() as u32;
        self.numbers.insert(row.to_vec(), number);
        self.rows.extend_from_slice(row);
        self.arrived.push(0);
        self.made.push(0);
        self.slots.grow(self.arrived.len() * self.width);
        number
    }

    /// Opens groups ahead of need, by the number of arrivals of the class alone.
    fn stock(&mut self, class: usize, seq: u64, out: &mut Placed) {
        let Some(z) = self.provision else { return };
        let share = self.arrived[class] as f64 / self.width as f64;
        let wanted = (share + z * share.sqrt()).ceil() as u64;
        while self.made[class] < wanted {
            self.open(class, seq, None, out);
        }
    }
}

#[pymethods]
impl Sealed {
    #[new]
    #[pyo3(signature = (*, key, shard, width, retire_after, provision))]
    fn new(
        key: [u8; 32],
        shard: u16,
        width: usize,
        retire_after: u64,
        provision: Option<f64>,
    ) -> PyResult<Self> {
        if width == 0 {
            return Err(PyValueError::new_err("a class needs a slot"));
        }
        Ok(Sealed {
            slots: Slots::new(width),
            width,
            epochs: Vec::new(),
            rows: Vec::new(),
            numbers: HashMap::new(),
            arrived: Vec::new(),
            made: Vec::new(),
            seen: Vec::new(),
            memo: Sip::new(&derive(key, 3)),
            ids: Ids::new(key, u64::from(shard)),
            draw: Draw::new(key, u64::from(shard)),
            retire_after,
            provision,
            tuples: 0,
            forced: 0,
            retired: 0,
        })
    }

    /// Starts an epoch: one row of value codes per class in published order, the classes' weights, room for marks.
    ///
    /// `other` is the code that stands for every value the epoch does not know.
    #[pyo3(signature = (classes, weights, *, domain, other, marks))]
    fn begin(
        &mut self,
        classes: PyReadonlyArray2<'_, i32>,
        weights: PyReadonlyArray1<'_, u64>,
        domain: usize,
        other: Option<u32>,
        marks: usize,
    ) -> PyResult<()> {
        let (codes, weights) = (classes.as_slice()?, weights.as_slice()?);
        let shaped = codes.len() == weights.len() * self.width && !weights.is_empty();
        if !shaped
            || codes.iter().any(|&c| c < 0 || c as usize >= domain)
            || domain < self.seen.len()
        {
            return Err(PyValueError::new_err("the design does not fit its domain"));
        }
        let numbers = codes
            .chunks(self.width)
            .map(|row| self.number(row))
            .collect();
        let seen = Seen::new(marks);
        let epoch = Epoch::new(
            &self.rows,
            self.width,
            numbers,
            weights.to_vec(),
            domain,
            other,
            seen,
        );
        self.epochs.push(epoch.map_err(PyValueError::new_err)?);
        self.seen.resize(domain, 0);
        Ok(())
    }

    /// Makes room for values outside the design; they are placed as `other`.
    fn grow(&mut self, domain: usize) {
        self.seen.resize(domain.max(self.seen.len()), 0);
    }

    /// Releases every tuple at once: its group, and the groups opened on the way.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        seqs: PyReadonlyArray1<'py, u64>,
        qis: PyReadonlyArray1<'py, u64>,
        persons: PyReadonlyArray1<'py, u64>,
        codes: PyReadonlyArray1<'py, i32>,
    ) -> PyResult<py::Placed> {
        let (seqs, qis) = (seqs.as_slice()?, qis.as_slice()?);
        let (persons, codes) = (persons.as_slice()?, codes.as_slice()?);
        let rows = seqs.len();
        if qis.len() != rows || persons.len() != rows || codes.len() != rows {
            return Err(PyValueError::new_err("columns of different length"));
        }
        let known = self.seen.len();
        let epoch = self
            .epochs
            .last()
            .ok_or_else(|| PyValueError::new_err("no epoch has begun"))?;
        if codes
            .iter()
            .any(|&c| c < 0 || c as usize >= known || epoch.resolve(c as u32).is_none())
        {
            return Err(PyValueError::new_err("a code lies outside the design"));
        }
        let placed = py.detach(|| {
            let mut out = Placed::with_capacity(rows);
            let mut lists = [0; AHEAD];
            for start in (0..rows).step_by(AHEAD) {
                let chunk = start..rows.min(start + AHEAD);
                for i in chunk.clone() {
                    let list = self.cell(persons[i], codes[i] as u32);
                    lists[i - start] = list.ok_or("a value lies outside the design")?;
                    self.seen[codes[i] as usize] += 1;
                }
                for i in chunk {
                    self.place(seqs[i], qis[i], lists[i - start], &mut out);
                }
            }
            Ok(out)
        });
        placed
            .map_err(|e: &str| PyValueError::new_err(e))
            .map(|p| py::Placed::new(py, p))
    }

    /// Tuples, groups opened, open groups, retired groups, groups opened because no free slot fitted, and the tuples of
    /// the most frequent value.
    fn totals(&self) -> (u64, u64, u64, u64, u64, u64) {
        (
            self.tuples,
            self.ids.next,
            self.slots.open_groups(),
            self.retired,
            self.forced,
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
            for x in [self.tuples, self.forced, self.retired, self.ids.next] {
                out.u64(x);
            }
            for column in [&self.arrived, &self.made, &self.seen] {
                out.u64s(column);
            }
            out.u32s(&self.rows.iter().map(|&c| c as u32).collect::<Vec<_>>());
            out.u64(self.epochs.len() as u64);
            for epoch in &self.epochs {
                epoch.write(&mut out);
            }
            self.slots.write(&mut out);
            out.0
        });
        PyBytes::new(py, &bytes)
    }

    /// Goes on from a snapshot of an engine built with the same settings.
    fn restore(&mut self, state: &[u8]) -> PyResult<()> {
        self.load(state).map_err(PyValueError::new_err)
    }
}

impl Sealed {
    fn load(&mut self, state: &[u8]) -> Read<()> {
        let mut input = Reader(state);
        (self.tuples, self.forced, self.retired, self.ids.next) =
            (input.u64()?, input.u64()?, input.u64()?, input.u64()?);
        (self.arrived, self.made, self.seen) = (input.u64s()?, input.u64s()?, input.u64s()?);
        let (width, known) = (self.width, self.seen.len());
        self.rows = input.u32s()?.into_iter().map(|c| c as i32).collect();
        let classes = self.rows.len() / width;
        self.numbers = self
            .rows
            .chunks(width)
            .zip(0..)
            .map(|(row, i)| (row.to_vec(), i))
            .collect();
        let rows = &self.rows;
        self.epochs = (0..input.len(8)?)
            .map(|_| Epoch::read(&mut input, rows, width, known))
            .collect::<Read<_>>()?;
        self.slots = Slots::read(&mut input)?;
        input.end()?;
        let fits = self.arrived.len() == classes
            && self.made.len() == classes
            && self.rows.len() == classes * width
            && self.rows.iter().all(|&c| c >= 0)
            && self.slots.lists() == classes * width;
        if fits {
            Ok(())
        } else {
            Err("the snapshot is of another design")
        }
    }
}
