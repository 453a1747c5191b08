//! Phases 1 and 2: buckets by signature, old records into their bucket, new records into the gaps.

use std::collections::HashMap;

use rand_chacha::ChaCha20Rng;

use super::bucket::{Bucket, Slot};
use super::flow::{Balance, balance};
use super::knowledge::Knowledge;
use super::space::Space;
use super::split::Entries;
use crate::random::{below, shuffle};

/// Gaps looked at for one new record: enough to find a near one, few enough to stay linear.
const TRIES: usize = 48;
/// Rows looked at for a counterfeit in a bucket with one record.
const LENDERS: usize = 16;

/// The update falls outside the candidate update set of the value published before.
pub const OUTSIDE: u8 = 1;
/// No entry of the bucket takes the value and leaves the others distinct.
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

/// Earlier groups: their values, one after the other.
pub struct Past<'a> {
    pub offsets: &'a [i64],
    pub values: &'a [i32],
}

impl Past<'_> {
    fn signature(&self, knowledge: &Knowledge, group: i32) -> Vec<u32> {
        let (a, b) = (
            self.offsets[group as usize],
            self.offsets[group as usize + 1],
        );
        let values = &self.values[a as usize..b as usize];
        let mut key: Vec<u32> = values.iter().map(|&v| knowledge.id[v as usize]).collect();
        key.sort_unstable();
        key
    }
}

/// Phase 1: one bucket per signature, keyed by its sorted set ids; old records go to the bucket of their signature.
pub fn buckets(table: &Table, past: &Past, knowledge: &Knowledge, held: &mut [u8]) -> Vec<Bucket> {
    let mut by_group: HashMap<i32, usize> = HashMap::new();
    let mut by_key: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut out: Vec<Bucket> = Vec::new();
    for row in (0..table.values.len()).filter(|&r| table.previous[r] >= 0) {
        let value = table.values[row] as u32;
        if !knowledge.covers(knowledge.id[table.before[row] as usize], value) {
            held[row] = OUTSIDE;
            continue;
        }
        let group = table.previous[row];
        let at = *by_group.entry(group).or_insert_with(|| {
            let key = past.signature(knowledge, group);
            *by_key.entry(key.clone()).or_insert_with(|| {
                out.push(Bucket::new(key));
                out.len() - 1
            })
        });
        if out[at].takes(knowledge, value) {
            out[at].rows.push(row as u32);
        } else {
            held[row] = NO_PLACE;
        }
    }
    out.retain(|b| !b.rows.is_empty());
    out
}

/// The region a bucket covers.
struct Region {
    low: Vec<f32>,
    high: Vec<f32>,
}

impl Region {
    fn new(bucket: &Bucket, space: &Space) -> Self {
        let mut region = Self {
            low: vec![f32::INFINITY; space.axes],
            high: vec![f32::NEG_INFINITY; space.axes],
        };
        bucket
            .rows
            .iter()
            .for_each(|&row| region.add(space.point(row)));
        region
    }

    fn add(&mut self, point: &[f32]) {
        for (axis, &x) in point.iter().enumerate() {
            self.low[axis] = self.low[axis].min(x);
            self.high[axis] = self.high[axis].max(x);
        }
    }

    /// Growth of the region by the point: a sum of widths, since a product is zero for a constant attribute.
    fn growth(&self, point: &[f32]) -> f32 {
        const FLOOR: f32 = 1e-3;
        let (mut before, mut after) = (0.0, 0.0);
        for (axis, &x) in point.iter().enumerate() {
            before += self.high[axis] - self.low[axis] + FLOOR;
            after += self.high[axis].max(x) - self.low[axis].min(x) + FLOOR;
        }
        after / before
    }
}

/// Phase 2: balances every bucket, then lets new records take the places of counterfeits. Returns who is left.
pub fn assign(
    table: &Table,
    buckets: &mut [Bucket],
    knowledge: &Knowledge,
    rng: &mut ChaCha20Rng,
) -> (Vec<Balance>, Vec<u32>) {
    let mut balances: Vec<Balance> = buckets
        .iter_mut()
        .map(|b| balance(b, knowledge, table.values, rng))
        .collect();
    let mut gaps: Vec<Vec<(u32, u16)>> = vec![Vec::new(); knowledge.sets.len()];
    for (b, (bucket, state)) in buckets.iter().zip(&balances).enumerate() {
        for (e, &id) in bucket.entries.iter().enumerate() {
            for _ in 0..state.open(e) {
                gaps[id as usize].push((b as u32, e as u16));
            }
        }
    }
    let mut regions: Vec<Region> = buckets
        .iter()
        .map(|b| Region::new(b, &table.space))
        .collect();
    let mut left = Vec::new();
    for row in new_rows(table, buckets, rng) {
        let value = table.values[row as usize] as u32;
        let point = table.space.point(row);
        let mut best: Option<(f32, usize, usize)> = None;
        let lists = &knowledge.covering[value as usize];
        let total: usize = lists.iter().map(|&id| gaps[id as usize].len()).sum();
        for step in 0..TRIES.min(total) {
            let (id, at) = pick(
                lists,
                &gaps,
                if total <= TRIES {
                    step
                } else {
                    below(rng, total)
                },
            );
            let (b, e) = (gaps[id][at].0 as usize, gaps[id][at].1 as usize);
            let chance = knowledge.chance(id as u32, value).max(1e-6) as f32;
            let growth = regions[b].growth(point) / chance;
            if best.is_some_and(|(g, _, _)| g <= growth) || !buckets[b].allows(knowledge, e, value)
            {
                continue;
            }
            if !room(&balances[b], e, value) {
                continue;
            }
            best = Some((growth, id, at));
        }
        let Some((_, id, at)) = best else {
            left.push(row);
            continue;
        };
        let (b, e) = gaps[id].swap_remove(at);
        let taken = balances[b as usize].occupy(e as usize, value);
        debug_assert!(taken);
        buckets[b as usize].rows.push(row);
        regions[b as usize].add(point);
    }
    (balances, left)
}

fn pick(lists: &[u32], gaps: &[Vec<(u32, u16)>], mut at: usize) -> (usize, usize) {
    for &id in lists {
        let n = gaps[id as usize].len();
        if at < n {
            return (id as usize, at);
        }
        at -= n;
    }
    unreachable!("the position lies below the sum of the lengths")
}

fn room(state: &Balance, entry: usize, value: u32) -> bool {
    state
        .values
        .binary_search(&value)
        .is_ok_and(|v| state.used[v] < state.delta || state.gaps[v * state.entries + entry] > 0)
}

/// New records in random order, those of values too frequent for groups of their own first.
fn new_rows(table: &Table, buckets: &[Bucket], rng: &mut ChaCha20Rng) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..table.values.len() as u32)
        .filter(|&r| table.previous[r as usize] < 0)
        .collect();
    shuffle(&mut rows, rng);
    let mut count: HashMap<i32, usize> = HashMap::new();
    for &row in &rows {
        *count.entry(table.values[row as usize]).or_insert(0) += 1;
    }
    let m = buckets.iter().map(|b| b.entries.len()).max().unwrap_or(1);
    rows.sort_by_key(|&row| count[&table.values[row as usize]] * m * 2 <= rows_len(&count));
    rows
}

fn rows_len(count: &HashMap<i32, usize>) -> usize {
    count.values().sum()
}

/// Turns a balanced bucket into entries of equal length, counterfeits included.
pub fn entries(table: &Table, bucket: &Bucket, state: &Balance, rng: &mut ChaCha20Rng) -> Entries {
    let m = state.entries;
    let mut by_value: Vec<Vec<u32>> = vec![Vec::new(); state.values.len()];
    for &row in &bucket.rows {
        let value = table.values[row as usize] as u32;
        by_value[state
            .values
            .binary_search(&value)
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
                let donor = lender(table, bucket, rng);
                entry.push(Slot {
                    row: -1,
                    value: state.values[v],
                    donor,
                });
            }
        }
    }
    out
}

/// A record whose place in space a counterfeit borrows: of the bucket, or near it when the bucket has one record.
fn lender(table: &Table, bucket: &Bucket, rng: &mut ChaCha20Rng) -> u32 {
    if bucket.rows.len() > 1 {
        return bucket.rows[below(rng, bucket.rows.len())];
    }
    let home = table.space.point(bucket.rows[0]);
    let far = |row: &u32| {
        let point = table.space.point(*row);
        home.iter()
            .zip(point)
            .map(|(a, b)| (a - b).abs())
            .sum::<f32>()
    };
    (0..LENDERS)
        .map(|_| below(rng, table.values.len()) as u32)
        .min_by(|a, b| far(a).total_cmp(&far(b)))
        .expect("at least one try")
}
