//! One node: groups the rows, applies the model to every class, and adds up what the losses need.

use std::sync::{Arc, RwLock};

use super::counterexample::Counterexample;
use super::grouping::{Grouping, Scratch};
use super::loss::Tally;
use super::model::{Model, Sensitive};
use super::space::{Levels, Space, covers};

/// The collapsed table: distinct quasi-identifier combinations with their sensitive histograms.
pub struct Table {
    pub space: Space,
    pub sensitive: Vec<Sensitive>,
    /// Sensitive codes over all sensitive attributes.
    pub domain: usize,
    pub rows: u32,
    pub base: Arc<Grouping>,
}

/// Groupings that later nodes roll up from.
pub struct GroupingCache {
    groupings: RwLock<Vec<(Levels, Arc<Grouping>)>>,
    room: usize,
}

/// A grouping is cached if it is this much smaller than its source, so that cached sizes fall geometrically on any
/// path.
const SHRINK: f64 = 0.7;
/// Bytes of cached groupings, as a multiple of the finest one (at least `ROOM_FLOOR`).
const ROOM: usize = 4;
const ROOM_FLOOR: usize = 32 << 20;

impl GroupingCache {
    pub fn new(table: &Table) -> Self {
        Self::with_limit(table, usize::MAX)
    }

    /// A cache of at most this many bytes besides the table's own grouping.
    pub fn with_limit(table: &Table, most: usize) -> Self {
        let groupings = vec![(table.space.bottom(), Arc::clone(&table.base))];
        let own = table.base.bytes();
        Self {
            groupings: RwLock::new(groupings),
            room: (ROOM * own).max(ROOM_FLOOR).min(most.saturating_add(own)),
        }
    }

    /// The smallest cached grouping that is still fine enough.
    pub fn source(&self, levels: &[u8]) -> Arc<Grouping> {
        let groupings = self
            .groupings
            .read()
            .expect("no thread panics while it holds the lock");
        let fine = groupings.iter().filter(|(at, _)| covers(levels, at));
        Arc::clone(
            &fine
                .min_by_key(|(_, g)| g.len())
                .expect("the finest grouping covers every node")
                .1,
        )
    }

    /// Bytes of the cached groupings, the table's own included.
    pub fn bytes(&self) -> usize {
        let groupings = self.groupings.read().expect("as above");
        groupings.iter().map(|(_, g)| g.bytes()).sum()
    }

    fn insert(&self, levels: &[u8], make: impl FnOnce() -> Grouping) {
        if self.bytes() < self.room {
            let made = Arc::new(make());
            self.groupings
                .write()
                .expect("as above")
                .push((levels.to_vec(), made));
        }
    }
}

/// A model applied to a table.
pub struct Checker<'a> {
    pub table: &'a Table,
    pub model: &'a Model,
    pub cache: &'a GroupingCache,
}

impl Checker<'_> {
    /// Groups at `levels` and evaluates every class. `should_continue` gets the number of records in classes that are
    /// too small, and may end the check early.
    pub fn check(
        &self,
        levels: &[u8],
        scratch: &mut Scratch,
        should_continue: impl Fn(u64) -> bool,
    ) -> Tally {
        self.evaluate(levels, scratch, should_continue).0
    }

    /// The same, with up to `most` records (one code per pack) whose classes violate the model.
    pub fn check_with_counterexamples(
        &self,
        levels: &[u8],
        scratch: &mut Scratch,
        most: usize,
    ) -> (Tally, Vec<Counterexample>) {
        let (tally, bad, source) = self.evaluate(levels, scratch, |_| true);
        let mut found: Vec<usize> = (0..bad.len()).filter(|&g| bad[g]).collect();
        // Small classes violate the model at many finer nodes, large ones at many coarser nodes.
        found.sort_by_key(|&g| (scratch.counts[g], g));
        let last = found.len().saturating_sub(1);
        let chosen = (0..most.min(found.len()))
            .map(|i| found[if i % 2 == 0 { i / 2 } else { last - i / 2 }]);
        let counterexample = |group: usize| {
            let at = scratch
                .ids
                .iter()
                .position(|&id| id as usize == group)
                .expect("no group is empty");
            let by_size = scratch.counts[group] < self.model.smallest();
            Counterexample {
                codes: source.columns.iter().map(|column| column[at]).collect(),
                by_size,
            }
        };
        let counterexamples = chosen.map(counterexample).collect();
        (tally, counterexamples)
    }

    /// Class of every combination at a node, -1 where it violates the model.
    pub fn classes(&self, levels: &[u8]) -> Vec<i32> {
        let fresh = GroupingCache::new(self.table);
        let checker = Checker {
            cache: &fresh,
            ..*self
        };
        let mut scratch = Scratch::default();
        let (_, bad, _) = checker.evaluate(levels, &mut scratch, |_| true);
        scratch
            .ids
            .iter()
            .map(|&id| if bad[id as usize] { -1 } else { id as i32 })
            .collect()
    }

    fn evaluate(
        &self,
        levels: &[u8],
        scratch: &mut Scratch,
        should_continue: impl Fn(u64) -> bool,
    ) -> (Tally, Vec<bool>, Arc<Grouping>) {
        let source = self.cache.source(levels);
        let space = &self.table.space;
        let groups = scratch.assign(space, &source.columns, source.len(), levels);
        scratch.count(&source.counts, groups);
        let mut tally = self.sizes(scratch, groups);
        let mut bad = vec![false; groups];
        if !should_continue(tally.unpublishable) {
            return (tally, bad, source);
        }
        if self.model.counts_only() {
            bad.iter_mut()
                .zip(&scratch.counts)
                .for_each(|(b, &n)| *b = n < self.model.smallest());
        } else {
            scratch.sort(groups);
            self.evaluate_classes(&source, scratch, &mut bad, &mut tally);
        }
        self.tally(&source, scratch, &bad, &mut tally);
        if (groups as f64) < SHRINK * source.len() as f64 {
            if self.model.counts_only() {
                scratch.sort(groups);
            }
            self.cache.insert(levels, || {
                scratch.collect(&source, groups, self.table.domain)
            });
        }
        (tally, bad, source)
    }

    fn sizes(&self, scratch: &Scratch, groups: usize) -> Tally {
        let smallest = self.model.smallest();
        let mut tally = Tally {
            all_classes: groups as u64,
            ..Tally::default()
        };
        for &n in &scratch.counts {
            tally.all_squares += u128::from(n) * u128::from(n);
            tally.unpublishable += u64::from(if n < smallest { n } else { 0 });
        }
        tally
    }

    fn evaluate_classes(
        &self,
        source: &Grouping,
        scratch: &mut Scratch,
        bad: &mut [bool],
        tally: &mut Tally,
    ) {
        let table = self.table;
        for (group, bad) in bad.iter_mut().enumerate() {
            let n = scratch.counts[group];
            *bad = n < self.model.smallest();
            if !*bad {
                scratch.load(source, group, table.domain);
                let class = &scratch.histogram;
                *bad = !self.model.plausible(class, n, &table.sensitive)
                    || !self.model.holds(class, n, table.rows, &table.sensitive);
                if *bad {
                    tally.unpublishable +=
                        u64::from(
                            self.model
                                .unpublishable(class, n, table.rows, &table.sensitive),
                        );
                }
            }
        }
    }

    fn tally(&self, source: &Grouping, scratch: &Scratch, bad: &[bool], tally: &mut Tally) {
        for (&n, &bad) in scratch.counts.iter().zip(bad) {
            if bad {
                tally.suppressed += u64::from(n);
            } else {
                tally.classes += 1;
                tally.squares += u128::from(n) * u128::from(n);
            }
        }
        tally.marginals = self
            .table
            .space
            .packs
            .iter()
            .map(|p| vec![0; p.domain])
            .collect();
        if tally.suppressed == 0 {
            return;
        }
        for (marginal, column) in tally.marginals.iter_mut().zip(&source.columns) {
            for ((&code, &n), &id) in column.iter().zip(&source.counts).zip(&scratch.ids) {
                if bad[id as usize] {
                    marginal[code as usize] += u64::from(n);
                }
            }
        }
    }
}
