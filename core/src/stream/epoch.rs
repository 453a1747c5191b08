//! An epoch of a sealed stream: its classes, how values draw them, and which pairs it has seen.

use super::bytes::{Read, Reader, Writer};
use super::draw::scaled;

/// Sets of (person, value) marks as a blocked Bloom filter: one cache line per look, memory fixed in advance.
///
/// A false "seen" keeps a pair in an older design, which is as safe as its own; a false "new" cannot happen.
pub struct Seen {
    words: Vec<u64>,
}

const LINE: usize = 8;

impl Seen {
    /// Room for about `marks` pairs at sixteen bits each.
    pub fn new(marks: usize) -> Self {
        let lines = (marks / 32).next_power_of_two().max(1);
        Seen {
            words: vec![0; lines * LINE],
        }
    }

    fn spots(&self, mark: u64) -> ([usize; 4], [u64; 4]) {
        let line = (mark >> 40) as usize & (self.words.len() / LINE - 1);
        let (mut at, mut bit) = ([0; 4], [0; 4]);
        for i in 0..4 {
            let spot = mark >> (i * 9) & 511;
            at[i] = line * LINE + (spot >> 6) as usize;
            bit[i] = 1 << (spot & 63);
        }
        (at, bit)
    }

    pub fn insert(&mut self, mark: u64) {
        let (at, bit) = self.spots(mark);
        for i in 0..4 {
            self.words[at[i]] |= bit[i];
        }
    }

    pub fn holds(&self, mark: u64) -> bool {
        let (at, bit) = self.spots(mark);
        (0..4).all(|i| self.words[at[i]] & bit[i] != 0)
    }

    /// Written word by word when full, as (place, word) when mostly empty.
    fn write(&self, out: &mut Writer) {
        let filled: Vec<u32> = (0..self.words.len() as u32)
            .filter(|&i| self.words[i as usize] != 0)
            .collect();
        out.u64(self.words.len() as u64);
        out.u32s(&filled);
        for &i in &filled {
            out.u64(self.words[i as usize]);
        }
    }

    fn read(input: &mut Reader) -> Read<Self> {
        let size = input.u64()? as usize;
        if !(LINE..=1 << 27).contains(&size) || !size.is_power_of_two() {
            return Err("the snapshot has a bad filter");
        }
        let mut words = vec![0; size];
        for i in input.u32s()? {
            *words
                .get_mut(i as usize)
                .ok_or("the snapshot has a bad filter")? = input.u64()?;
        }
        Ok(Seen { words })
    }
}

pub struct Epoch {
    /// The epoch's classes, by their numbers among the classes of all epochs.
    classes: Vec<u32>,
    pub seen: Seen,
    weights: Vec<u64>,
    other: Option<u32>,
    /// Per code the (list, running sum of weights) of the slots that hold it: `cells[starts[c]..starts[c + 1]]`.
    starts: Vec<u32>,
    cells: Vec<(u32, u64)>,
}

impl Epoch {
    /// An epoch of some of the classes in `rows`, `width` codes each, with their weights.
    pub fn new(
        rows: &[i32],
        width: usize,
        classes: Vec<u32>,
        weights: Vec<u64>,
        domain: usize,
        other: Option<u32>,
        seen: Seen,
    ) -> Read<Self> {
        let mut per_code: Vec<Vec<(u32, u64)>> = vec![Vec::new(); domain];
        for (&class, &weight) in classes.iter().zip(&weights) {
            for slot in 0..width {
                let list = class as usize * width + slot;
                let code = *rows
                    .get(list)
                    .ok_or("the design names a class that is not there")?;
                let cells = per_code
                    .get_mut(code as usize)
                    .ok_or("a class lies outside the domain")?;
                let sum = cells.last().map_or(0, |&(_, s)| s);
                let sum = sum
                    .checked_add(weight)
                    .ok_or("the weights of the design are too large")?;
                cells.push((list as u32, sum));
            }
        }
        let known = |o: u32| {
            per_code
                .get(o as usize)
                .is_some_and(|cells| !cells.is_empty())
        };
        if weights.contains(&0) || !other.is_none_or(known) || classes.len() != weights.len() {
            return Err("the design has an empty class or lacks its value for others");
        }
        let mut starts = vec![0u32];
        for cells in &per_code {
            starts.push(starts[starts.len() - 1] + cells.len() as u32);
        }
        let cells = per_code.concat();
        Ok(Epoch {
            classes,
            seen,
            weights,
            other,
            starts,
            cells,
        })
    }

    fn of(&self, code: u32) -> &[(u32, u64)] {
        match self.starts.get(code as usize..code as usize + 2) {
            Some(&[from, to]) => &self.cells[from as usize..to as usize],
            _ => &[],
        }
    }

    /// The code under which this epoch knows a value.
    pub fn resolve(&self, code: u32) -> Option<u32> {
        if self.of(code).is_empty() {
            self.other
        } else {
            Some(code)
        }
    }

    /// A slot of the value, with probability proportional to its class's weight; `random` is asked until unbiased.
    pub fn draw(&self, code: u32, random: impl Fn(u64) -> u64) -> u32 {
        let cells = self.of(code);
        let total = cells[cells.len() - 1].1;
        let point = (0..)
            .find_map(|attempt| scaled(random(attempt), total))
            .expect("an endless supply");
        cells[cells.partition_point(|&(_, sum)| sum <= point)].0
    }

    pub fn write(&self, out: &mut Writer) {
        out.u64(self.starts.len() as u64 - 1);
        out.u64(self.other.map_or(u64::MAX, u64::from));
        out.u32s(&self.classes);
        out.u64s(&self.weights);
        self.seen.write(out);
    }

    pub fn read(input: &mut Reader, rows: &[i32], width: usize, known: usize) -> Read<Self> {
        let domain = input.u64()? as usize;
        let other = Some(input.u64()?)
            .filter(|&o| o != u64::MAX)
            .map(|o| o as u32);
        let (classes, weights) = (input.u32s()?, input.u64s()?);
        let seen = Seen::read(input)?;
        if domain > known {
            return Err("the snapshot has a bad design");
        }
        Epoch::new(rows, width, classes, weights, domain, other, seen)
    }
}
