//! One release of a series: the three phases of m-Distinct (Li and Zhou 2008), on codes.
//!
//! With candidate update sets of one value each this is m-Invariance (Xiao and Tao 2007).

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use rayon::prelude::*;

use super::assign::{Table, assign, entries};
use super::bucket::Slot;
use super::buckets::{Past, buckets};
use super::flow::balance;
use super::fresh::{Plan, first_groups};
use super::knowledge::Knowledge;
use super::split::split;
use crate::random::shuffle;

/// Groups of the next release, and for each row why it is withheld (0: it is not).
pub struct Outcome {
    pub groups: Vec<Vec<Slot>>,
    pub withheld: Vec<u8>,
}

/// The requirements of first groups.
pub struct First<'a> {
    pub m: usize,
    pub colors: &'a [i32],
    pub relax: bool,
}

/// Publishes the table after the past; None if first groups need more colors than the domain has.
pub fn publish(
    table: &Table,
    past: &Past,
    mut knowledge: Knowledge,
    first: &First,
    key: [u8; 32],
) -> Option<Outcome> {
    let mut rng = ChaCha20Rng::from_seed(key);
    let mut withheld = vec![0u8; table.values.len()];
    let mut places = buckets(table.previous, past, &mut knowledge);
    let left = assign(table, &mut places, &knowledge, &mut withheld, &mut rng);
    let balanced: Vec<_> = places
        .all
        .iter()
        .filter(|bucket| !bucket.rows.is_empty())
        .map(|bucket| {
            let state = balance(bucket, &knowledge, table.values, &mut rng);
            entries(table, bucket, &state, &mut rng)
        })
        .collect();
    let mut out: Vec<Vec<Slot>> = balanced
        .into_par_iter()
        .flat_map_iter(|bucket| {
            let mut groups = Vec::new();
            split(&table.space, bucket, &mut groups);
            groups
        })
        .collect();
    let fresh: Vec<Slot> = left
        .iter()
        .map(|&row| Slot {
            row: row as i32,
            value: table.values[row as usize] as u32,
            donor: row,
        })
        .collect();
    let plan = Plan {
        m: first.m,
        colors: first.colors,
        knowledge: &knowledge,
    };
    if !first_groups(&plan, first.relax, &table.space, fresh, &mut rng, &mut out) {
        return None;
    }
    out.retain(|group| group.iter().any(|slot| slot.row >= 0));
    shuffle(&mut out, &mut rng);
    for group in &mut out {
        group.sort_unstable_by_key(|slot| slot.value);
    }
    Some(Outcome {
        groups: out,
        withheld,
    })
}

/// Whether the table, its past and the update knowledge agree in their sizes and codes.
pub fn check(
    table: &Table,
    past: &Past,
    domain: usize,
    indptr: &[i64],
    m: usize,
) -> Result<(), &'static str> {
    let n = table.values.len();
    let inside = |codes: &[i32]| codes.iter().all(|&v| v >= 0 && (v as usize) < domain);
    let known = past.offsets.len() as i64 - 1;
    if m < 2 || indptr.len() != domain + 1 || table.previous.len() != n || table.before.len() != n {
        return Err("sizes do not agree, or m is below 2");
    }
    if table.space.points.len() != n * table.space.axes
        || !inside(table.values)
        || !inside(past.values)
    {
        return Err("a code lies outside the domain, or a point is missing");
    }
    let linked = (0..n).all(|r| {
        let group = i64::from(table.previous[r]);
        group < 0 || (group < known && inside(&table.before[r..=r]))
    });
    if linked {
        Ok(())
    } else {
        Err("a previous group is unknown")
    }
}
