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
        if size < LINE || size > 1 << 27 || !size.is_power_of_two() {
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
    /// Number of the epoch's first class among the classes of all epochs.
    pub first: usize,
    pub seen: Seen,
    width: usize,
    codes: Vec<i32>,
    weights: Vec<u64>,
    other: Option<u32>,
    /// Per code the (list, running sum of weights) of the slots that hold it: `cells[starts[c]..starts[c + 1]]`.
    starts: Vec<u32>,
    cells: Vec<(u32, u64)>,
}

impl Epoch {
    pub fn new(
        codes: &[i32],
        weights: &[u64],
        width: usize,
        first: usize,
        domain: usize,
        other: Option<u32>,
        seen: Seen,
    ) -> Read<Self> {
        let mut per_code: Vec<Vec<(u32, u64)>> = vec![Vec::new(); domain];
        for (at, &code) in codes.iter().enumerate() {
            let cells = &mut per_code[code as usize];
            let sum = cells.last().map_or(0, |&(_, s)| s);
            let sum = sum
                .checked_add(weights[at / width])
                .ok_or("the weights of the design are too large")?;
            cells.push(((first * width + at) as u32, sum));
        }
        if weights.contains(&0)
            || other.is_some_and(|o| per_code.get(o as usize).is_none_or(Vec::is_empty))
        {
            return Err("the design has an empty class or lacks its value for others");
        }
        let mut starts = vec![0u32];
        for cells in &per_code {
            starts.push(starts[starts.len() - 1] + cells.len() as u32);
        }
        let cells = per_code.concat();
        Ok(Epoch {
            first,
            seen,
            width,
            codes: codes.to_vec(),
            weights: weights.to_vec(),
            other,
            starts,
            cells,
        })
    }

    pub fn classes(&self) -> usize {
        self.weights.len()
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

    /// The published candidates of a class: sorted values with their number of slots.
    pub fn candidates(&self, class: usize) -> impl Iterator<Item = (i32, i32)> + '_ {
        let row = &self.codes[class * self.width..(class + 1) * self.width];
        row.chunk_by(|a, b| a == b)
            .map(|same| (same[0], same.len() as i32))
    }

    pub fn write(&self, out: &mut Writer) {
        out.u64(self.first as u64);
        out.u64(self.starts.len() as u64 - 1);
        out.u64(self.other.map_or(u64::MAX, u64::from));
        out.u64s(&self.weights);
        out.u32s(&self.codes.iter().map(|&c| c as u32).collect::<Vec<_>>());
        self.seen.write(out);
    }

    pub fn read(input: &mut Reader, width: usize, known: usize) -> Read<Self> {
        let (first, domain) = (input.u64()? as usize, input.u64()? as usize);
        let other = Some(input.u64()?)
            .filter(|&o| o != u64::MAX)
            .map(|o| o as u32);
        let weights = input.u64s()?;
        let codes: Vec<i32> = input.u32s()?.into_iter().map(|c| c as i32).collect();
        let seen = Seen::read(input)?;
        if domain > known
            || codes.len() != weights.len() * width
            || codes.iter().any(|&c| c < 0 || c as usize >= domain)
        {
            return Err("the snapshot has a bad design");
        }
        Epoch::new(&codes, &weights, width, first, domain, other, seen)
    }
}
