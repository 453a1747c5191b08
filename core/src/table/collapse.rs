//! Collapses rows to distinct quasi-identifier combinations with sensitive histograms: later steps do not depend on the
//! number of rows.

use std::sync::Arc;

use rayon::prelude::*;

use super::check::Table;
use super::grouping::{Grouping, Scratch};
use super::model::Sensitive;
use super::space::Space;

/// A collapsed table, and the combination of each row.
pub struct CollapsedTable {
    pub table: Table,
    /// Combination of each row.
    pub combinations: Vec<u32>,
}

/// A sensitive column: codes, number of values, and the tables of its hierarchy (empty if it has none).
pub struct SensitiveColumn<'a> {
    pub codes: &'a [i32],
    pub domain: usize,
    pub tree: Vec<Vec<u32>>,
}

/// Collapses rows. A row represents `times` records, or one record without `times`.
pub fn collapse(
    space: Space,
    quasi: &[&[i32]],
    sensitive: Vec<SensitiveColumn<'_>>,
    times: Option<&[u32]>,
) -> CollapsedTable {
    match times {
        None => gather(space, quasi, sensitive, &|_| 1),
        Some(times) => gather(space, quasi, sensitive, &|row| times[row]),
    }
}

fn gather(
    space: Space,
    quasi: &[&[i32]],
    sensitive: Vec<SensitiveColumn<'_>>,
    records: &impl Fn(usize) -> u32,
) -> CollapsedTable {
    let rows = quasi.first().map_or_else(
        || sensitive.first().map_or(0, |s| s.codes.len()),
        |c| c.len(),
    );
    let columns = pack_columns(&space, quasi, rows);
    let mut scratch = Scratch::default();
    let groups = scratch.assign(&space, &columns, rows, &space.bottom());
    let domain = sensitive.iter().map(|s| s.domain).sum();
    let base = if groups.saturating_mul(domain) <= DENSE_FLOOR + DENSE_PER_ROW * rows {
        count_dense(
            &columns,
            &sensitive,
            &scratch.ids,
            (groups, domain),
            records,
        )
    } else {
        scratch.sort(groups);
        distinct(
            &columns,
            &sensitive,
            &mut scratch,
            (groups, domain),
            records,
        )
    };
    let table = Table {
        sensitive: totals(sensitive, records),
        domain,
        rows: base.counts.iter().sum(),
        base: Arc::new(base),
        space,
    };
    CollapsedTable {
        table,
        combinations: std::mem::take(&mut scratch.ids),
    }
}

/// A dense table of up to this many cells is cheaper than sorting the rows by combination.
const DENSE_FLOOR: usize = 1 << 20;
const DENSE_PER_ROW: usize = 2;

/// Builds the histograms in one pass over the rows.
fn count_dense(
    columns: &[Vec<u32>],
    sensitive: &[SensitiveColumn<'_>],
    ids: &[u32],
    (groups, domain): (usize, usize),
    records: &impl Fn(usize) -> u32,
) -> Grouping {
    let mut first = vec![0u32; groups];
    let mut counts = vec![0u32; groups];
    for (row, &id) in ids.iter().enumerate() {
        first[id as usize] = row as u32;
        counts[id as usize] += records(row);
    }
    let mut cells = vec![0u32; groups * domain];
    let mut start = 0;
    for s in sensitive {
        for (row, (&id, &code)) in ids.iter().zip(s.codes).enumerate() {
            cells[id as usize * domain + start + code as usize] += records(row);
        }
        start += s.domain;
    }
    let mut made = Grouping {
        counts,
        starts: vec![0],
        ..Grouping::default()
    };
    made.columns = columns
        .iter()
        .map(|c| first.iter().map(|&row| c[row as usize]).collect())
        .collect();
    for cell in cells.chunks_exact(domain.max(1)) {
        for (value, &n) in cell.iter().enumerate().filter(|&(_, &n)| n > 0) {
            made.values.push(value as u32);
            made.numbers.push(n);
        }
        made.starts.push(made.values.len() as u32);
    }
    made.starts.resize(groups + 1, made.values.len() as u32);
    made
}

fn pack_columns(space: &Space, quasi: &[&[i32]], rows: usize) -> Vec<Vec<u32>> {
    let pack = |pack: &super::space::Pack| {
        let mut column = vec![0u32; rows];
        for &(j, stride) in &pack.members {
            column
                .iter_mut()
                .zip(quasi[j])
                .for_each(|(c, &code)| *c += code as u32 * stride as u32);
        }
        column
    };
    space.packs.par_iter().map(pack).collect()
}

fn distinct(
    columns: &[Vec<u32>],
    sensitive: &[SensitiveColumn<'_>],
    scratch: &mut Scratch,
    (groups, domain): (usize, usize),
    records: &impl Fn(usize) -> u32,
) -> Grouping {
    let mut made = Grouping {
        starts: vec![0],
        ..Grouping::default()
    };
    for column in columns {
        made.columns.push(
            (0..groups)
                .map(|g| column[scratch.order[scratch.offsets[g] as usize] as usize])
                .collect(),
        );
    }
    for g in 0..groups {
        let range = scratch.offsets[g] as usize..scratch.offsets[g + 1] as usize;
        let rows = &scratch.order[range.clone()];
        made.counts
            .push(rows.iter().map(|&row| records(row as usize)).sum());
        scratch.histogram.reset(domain);
        let mut start = 0;
        for s in sensitive {
            for &row in &scratch.order[range.clone()] {
                scratch
                    .histogram
                    .add(start + s.codes[row as usize] as u32, records(row as usize));
            }
            start += s.domain as u32;
        }
        for &value in &scratch.histogram.touched {
            made.values.push(value);
            made.numbers.push(scratch.histogram.counts[value as usize]);
        }
        made.starts.push(made.values.len() as u32);
    }
    made
}

/// The distribution of every sensitive column over the whole table.
pub fn totals(
    sensitive: Vec<SensitiveColumn<'_>>,
    records: &impl Fn(usize) -> u32,
) -> Vec<Sensitive> {
    let mut start = 0;
    sensitive
        .into_iter()
        .map(|s| {
            let mut totals = vec![0u32; s.domain];
            for (row, &code) in s.codes.iter().enumerate() {
                totals[code as usize] += records(row);
            }
            let made = Sensitive {
                start,
                totals,
                tree: s.tree,
            };
            start += s.domain;
            made
        })
        .collect()
}
