//! Phase 2 of m-Distinct (Algorithm 3): every record goes to the bucket with the highest score, those with the fewest
//! choices first.
//!
//! The score (equation 3) prefers a place that needs no further counterfeit, and among such places the bucket whose
//! region grows least. Ties go to the bucket with the most entries for the value, which will need the fewest
//! counterfeits. A record without a past goes only to a bucket that already has records.

use std::collections::HashMap;

use rand_chacha::ChaCha20Rng;

use super::bucket::{Bucket, Slot};
use super::buckets::Buckets;
use super::flow::Balance;
use super::knowledge::Knowledge;
use super::space::Space;
use super::split::Entries;
use crate::random::{below, shuffle};

/// The update is outside the candidate update set of the value published before.
pub const OUTSIDE: u8 = 1;
/// No entry of a bucket can take the value and leave the others distinct.
pub const NO_PLACE: u8 = 2;

/// The table to publish, as codes.
pub struct Table<'a> {
    pub values: &'a [i32],
    /// Group of the previous version, -1 for a record without one.
    pub previous: &'a [i32],
    /// Value of the previous version.
    pub before: &'a [i32],
    pub space: Space<'a>,
}

impl Table<'_> {
    fn value(&self, row: u32) -> u32 {
        self.values[row as usize] as u32
    }
}

/// The load of a bucket so far.
struct Load {
    uses: HashMap<u32, u32>,
    entries: Vec<u32>,
    delta: u32,
    low: Vec<f32>,
    high: Vec<f32>,
}

impl Load {
    fn new(entries: usize, axes: usize) -> Self {
        Self {
            uses: HashMap::new(),
            entries: vec![0; entries],
            delta: 0,
            low: vec![f32::INFINITY; axes],
            high: vec![f32::NEG_INFINITY; axes],
        }
    }

    /// Growth of the region by the point, 1 for an empty bucket. It sums widths, since a product is zero for a constant
    /// attribute.
    fn growth(&self, point: &[f32]) -> f32 {
        const FLOOR: f32 = 1e-3;
        if self.delta == 0 {
            return 1.0;
        }
        let (mut before, mut after) = (FLOOR, FLOOR);
        for (axis, &x) in point.iter().enumerate() {
            before += self.high[axis] - self.low[axis];
            after += self.high[axis].max(x) - self.low[axis].min(x);
        }
        after / before
    }

    /// Equation (3) for the entry with the fewest records, and that entry.
    fn score(&self, value: u32, places: &[usize], point: &[f32]) -> Option<(f32, usize)> {
        let entry = *places.iter().min_by_key(|&&e| self.entries[e])?;
        let used = self.uses.get(&value).copied().unwrap_or(0);
        let free = used < self.delta && self.entries[entry] < self.delta;
        let growth = self.growth(point);
        Some((if free { 1.0 / growth } else { -growth }, entry))
    }

    fn add(&mut self, value: u32, entry: usize, point: &[f32]) {
        let used = self.uses.entry(value).or_insert(0);
        *used += 1;
        self.entries[entry] += 1;
        self.delta = self.delta.max(*used).max(self.entries[entry]);
        for (axis, &x) in point.iter().enumerate() {
            self.low[axis] = self.low[axis].min(x);
            self.high[axis] = self.high[axis].max(x);
        }
    }
}

/// Assigns every record to a bucket; returns the new records that belong to none. A record that no bucket takes is
/// withheld.
pub fn assign(
    table: &Table,
    buckets: &mut Buckets,
    knowledge: &Knowledge,
    withheld: &mut [u8],
    rng: &mut ChaCha20Rng,
) -> Vec<u32> {
    let mut choices = Choices::new(buckets);
    let mut rows: Vec<u32> = (0..table.values.len() as u32).collect();
    shuffle(&mut rows, rng);
    rows.retain(|&row| {
        withheld[row as usize] = reason(table, buckets, &mut choices, knowledge, row);
        withheld[row as usize] == 0
    });
    rows.sort_by_cached_key(|&row| {
        let signature = buckets.signature[row as usize];
        let count = choices.of(buckets, signature, table.value(row)).len();
        (signature.is_none(), count)
    });
    let mut loads: Vec<Load> = buckets
        .all
        .iter()
        .map(|b| Load::new(b.entries.len(), table.space.axes))
        .collect();
    let mut left = Vec::new();
    for row in rows {
        let signature = buckets.signature[row as usize];
        let (value, point) = (table.value(row), table.space.point(row));
        let mut best: Option<((f32, usize), usize, usize)> = None;
        for &at in choices.of(buckets, signature, value) {
            if signature.is_none() && loads[at].delta == 0 {
                continue;
            }
            let places = buckets.all[at].places(value);
            if let Some((score, entry)) = loads[at].score(value, places, point)
                && best.is_none_or(|(top, _, _)| (score, places.len()) > top)
            {
                best = Some(((score, places.len()), at, entry));
            }
        }
        match best {
            Some((_, at, entry)) => {
                loads[at].add(value, entry, point);
                buckets.all[at].rows.push(row);
            }
            None => left.push(row),
        }
    }
    left
}

fn reason(
    table: &Table,
    buckets: &Buckets,
    choices: &mut Choices,
    knowledge: &Knowledge,
    row: u32,
) -> u8 {
    let signature = buckets.signature[row as usize];
    let (value, before) = (table.value(row), table.before[row as usize]);
    if signature.is_none() {
        0
    } else if !knowledge.covers(knowledge.id[before as usize], value) {
        OUTSIDE
    } else if choices.of(buckets, signature, value).is_empty() {
        NO_PLACE
    } else {
        0
    }
}

/// The buckets that take a value: all of them for a record without a past, otherwise those that its signature implies.
struct Choices {
    known: HashMap<(Option<usize>, u32), Vec<usize>>,
    every: Vec<usize>,
}

impl Choices {
    fn new(buckets: &Buckets) -> Self {
        Self {
            known: HashMap::new(),
            every: (0..buckets.all.len()).collect(),
        }
    }

    fn of(&mut self, buckets: &Buckets, signature: Option<usize>, value: u32) -> &[usize] {
        let among = signature.map_or(&self.every, |at| &buckets.hosts[at]);
        self.known.entry((signature, value)).or_insert_with(|| {
            let takes = |at: &usize| !buckets.all[*at].places(value).is_empty();
            among.iter().copied().filter(takes).collect()
        })
    }
}

/// Converts a balanced bucket into entries of equal length, counterfeits included.
pub fn entries(table: &Table, bucket: &Bucket, state: &Balance, rng: &mut ChaCha20Rng) -> Entries {
    let m = state.entries;
    let mut by_value: Vec<Vec<u32>> = vec![Vec::new(); state.values.len()];
    for &row in &bucket.rows {
        by_value[state
            .values
            .binary_search(&table.value(row))
            .expect("records fit their bucket")]
        .push(row);
    }
    let mut out: Entries = vec![Vec::with_capacity(state.delta as usize); m];
    for (v, rows) in by_value.iter_mut().enumerate() {
        shuffle(rows, rng);
        for (e, entry) in out.iter_mut().enumerate() {
            for _ in 0..state.real[v * m + e] {
                let row = rows.pop().expect("as many records as places");
                entry.push(Slot {
                    row: row as i32,
                    value: state.values[v],
                    donor: row,
                });
            }
            for _ in 0..state.gaps[v * m + e] {
                entry.push(Slot {
                    row: -1,
                    value: state.values[v],
                    donor: bucket.rows[below(rng, bucket.rows.len())],
                });
            }
        }
    }
    out
}
