//! Nodes in order of their lower bound: sorted where the lattice is small, expanded from the bottom where it is large.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::loss::Scorer;
use super::space::{Levels, Space, covers, height};

/// Lattices up to this many nodes are sorted completely.
const SORTED: usize = 1 << 18;

#[derive(PartialEq)]
struct Entry {
    bound: f64,
    height: u32,
    levels: Levels,
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        let bounds = self.bound.total_cmp(&other.bound);
        bounds
            .then(self.height.cmp(&other.height))
            .then_with(|| self.levels.cmp(&other.levels))
    }
}

enum Order {
    /// Worst first: the next node is popped off the end.
    Sorted(Vec<Entry>),
    Heap(BinaryHeap<Reverse<Entry>>),
}

pub struct Frontier<'a> {
    order: Order,
    scorer: &'a Scorer<'a>,
    bottom: Levels,
    top: Levels,
    returned: Option<(f64, Levels)>,
}

impl<'a> Frontier<'a> {
    /// All nodes at or above `bottom`.
    pub fn new(scorer: &'a Scorer<'a>, space: &Space, bottom: Levels) -> Self {
        let order = if space.nodes > SORTED {
            Order::Heap(BinaryHeap::from([Reverse(entry(scorer, bottom.clone()))]))
        } else {
            let levels = (0..space.nodes)
                .map(|node| space.levels(node))
                .filter(|levels| covers(levels, &bottom));
            let mut nodes: Vec<Entry> = levels.map(|levels| entry(scorer, levels)).collect();
            nodes.sort_unstable_by(|a, b| b.cmp(a));
            Order::Sorted(nodes)
        };
        Self {
            order,
            scorer,
            bottom,
            top: space.top(),
            returned: None,
        }
    }

    pub fn pop(&mut self) -> Option<(f64, Levels)> {
        if self.returned.is_some() {
            return self.returned.take();
        }
        let entry = match &mut self.order {
            Order::Sorted(nodes) => nodes.pop()?,
            Order::Heap(heap) => {
                let entry = heap.pop()?.0;
                // A node descends from the one with its last raised level lowered, so each is reached once.
                let from = (0..self.top.len())
                    .rev()
                    .find(|&j| entry.levels[j] > self.bottom[j])
                    .unwrap_or(0);
                for j in (from..self.top.len()).filter(|&j| entry.levels[j] < self.top[j]) {
                    let mut next = entry.levels.clone();
                    next[j] += 1;
                    heap.push(Reverse(self::entry(self.scorer, next)));
                }
                entry
            }
        };
        Some((entry.bound, entry.levels))
    }

    /// Number of waiting nodes.
    pub fn len(&self) -> usize {
        match &self.order {
            Order::Sorted(nodes) => nodes.len(),
            Order::Heap(heap) => heap.len(),
        }
    }

    pub fn is_huge(&self) -> bool {
        matches!(self.order, Order::Heap(_))
    }

    pub fn give_back(&mut self, bound: f64, levels: Levels) {
        self.returned = Some((bound, levels));
    }
}

fn entry(scorer: &Scorer<'_>, levels: Levels) -> Entry {
    Entry {
        bound: scorer.bound(&levels, 0),
        height: height(&levels),
        levels,
    }
}

/// The path from `levels` to the top that raises, at each step, the attribute whose next level costs least.
pub fn path(scorer: &Scorer<'_>, levels: Levels, top: &Levels) -> Vec<Levels> {
    let mut path = vec![levels.clone()];
    let mut at = levels;
    while at != *top {
        let cost = |j: usize| {
            let mut next = at.clone();
            next[j] += 1;
            scorer.bound(&next, 0)
        };
        let open = (0..at.len())
            .filter(|&j| at[j] < top[j])
            .map(|j| (cost(j), j));
        let step = open
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .expect("below the top")
            .1;
        at[step] += 1;
        path.push(at.clone());
    }
    path
}
