//! Counterexamples: one record's class at every node of the lattice at once.
//!
//! Without suppression, a node is infeasible as soon as one record's class violates the model there. The class of a
//! record at a node has the combinations that meet it at or below the node's levels: count them by the least levels at
//! which they meet, then add up along every attribute. No monotonicity is assumed; each node is refuted by a class of
//! its own.

use super::check::Table;
use super::grouping::Histogram;
use super::model::Model;
use super::space::Space;

/// Cells (nodes x histogram width) that a counterexample may use: 64 MiB.
const CELLS: usize = 1 << 24;

pub fn is_affordable(table: &Table, model: &Model) -> bool {
    table.space.nodes.saturating_mul(width(table, model)) <= CELLS
}

/// The first cell of a node is the class size, the others its histogram.
fn width(table: &Table, model: &Model) -> usize {
    if model.counts_only() {
        1
    } else {
        1 + table.domain
    }
}

/// A record (one code per pack) whose class violates the model, by its size alone or by its values.
pub struct Counterexample {
    pub codes: Vec<u32>,
    pub by_size: bool,
}

/// The live nodes at which the class of the counterexample violates the model.
pub fn refuted_nodes(
    table: &Table,
    model: &Model,
    counterexample: &Counterexample,
    alive: &[bool],
) -> Vec<u32> {
    // Sizes alone are much cheaper to add up, and refute nearly as much if the class is too small.
    let width = if counterexample.by_size {
        1
    } else {
        width(table, model)
    };
    let mut cells = vec![0u32; table.space.nodes * width];
    fill(
        table,
        &offsets(&table.space, &counterexample.codes),
        width,
        &mut cells,
    );
    accumulate(&table.space, width, &mut cells);
    let mut histogram = Histogram {
        counts: vec![0; table.domain],
        touched: (0..table.domain as u32).collect(),
    };
    let mut violates = |node: usize| {
        let cell = &cells[node * width..(node + 1) * width];
        if cell[0] < model.smallest() {
            return true;
        }
        if width == 1 {
            return false;
        }
        histogram.counts.copy_from_slice(&cell[1..]);
        !model.plausible(&histogram, cell[0], &table.sensitive)
            || !model.holds(&histogram, cell[0], table.rows, &table.sensitive)
    };
    (0..table.space.nodes)
        .filter(|&node| alive[node] && violates(node))
        .map(|node| node as u32)
        .collect()
}

/// Per pack and code: lattice index of the least levels at which it meets the counterexample.
fn offsets(space: &Space, counterexample: &[u32]) -> Vec<Vec<u32>> {
    let pack_offsets = |(pack, &code): (&super::space::Pack, &u32)| {
        let mut table = vec![0u32; 1];
        for &member in &pack.members {
            let attribute = &space.attributes[member.0];
            let own = space.leaf(member, code as usize);
            let meet = |leaf: usize| {
                attribute
                    .tables
                    .iter()
                    .position(|t| t[leaf] == t[own])
                    .unwrap_or(attribute.levels() - 1)
            };
            let steps: Vec<u32> = (0..attribute.domain())
                .map(|leaf| (meet(leaf) * space.strides[member.0]) as u32)
                .collect();
            table = steps
                .iter()
                .flat_map(|step| table.iter().map(move |t| t + step))
                .collect();
        }
        table
    };
    space
        .packs
        .iter()
        .zip(counterexample)
        .map(pack_offsets)
        .collect()
}

fn fill(table: &Table, offsets: &[Vec<u32>], width: usize, cells: &mut [u32]) {
    let base = &table.base;
    let mut at = vec![0u32; base.len()];
    for (column, offset) in base.columns.iter().zip(offsets) {
        at.iter_mut()
            .zip(column)
            .for_each(|(a, &code)| *a += offset[code as usize]);
    }
    for (group, &node) in at.iter().enumerate() {
        let cell = node as usize * width;
        cells[cell] += base.counts[group];
        if width > 1 {
            for (value, number) in base.entries(group) {
                cells[cell + 1 + value as usize] += number;
            }
        }
    }
}

/// Prefix sums along every attribute.
fn accumulate(space: &Space, width: usize, cells: &mut [u32]) {
    for (attribute, &stride) in space.attributes.iter().zip(&space.strides) {
        let step = stride * width;
        for block in cells.chunks_exact_mut(step * attribute.levels()) {
            for level in 1..attribute.levels() {
                let (low, high) = block.split_at_mut(level * step);
                let below = &low[(level - 1) * step..];
                high[..step]
                    .iter_mut()
                    .zip(below)
                    .for_each(|(h, &b)| *h += b);
            }
        }
    }
}
