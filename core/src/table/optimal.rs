//! The exact optimum over the lattice of full-domain generalizations with record suppression.
//!
//! Nodes are visited in order of a lower bound of their loss, so the search ends at the first node whose bound exceeds
//! the best score. Three arguments save checking a node:
//!
//! * **bound**: its loss is at least that of its levels with no record suppressed (all losses), or that of the classes
//!   of a finer node (discernibility, class size);
//! * **probe**: at a coarser node, the records in classes that fail the monotone part of the model (class size, number of
//!   distinct values) also fail here, so at least as many are suppressed; that breaks the limit or raises the bound;
//! * **counterexample**: no record may be suppressed, and some record's class violates the model at this node.
//!
//! Entropy and recursive diversity and t-closeness are not monotone under suppression and never prune there. Ties:
//! lowest score, then fewest levels in total, then the lexicographically first levels.

use std::collections::HashMap;
use std::mem::size_of;
use std::time::Instant;

use rayon::prelude::*;

use super::cancellation::CancellationToken;
use super::check::{Checker, GroupingCache, Table};
use super::counterexample;
use super::frontier::{Frontier, path};
use super::grouping::Scratch;
use super::loss::{Scorer, Tally};
use super::model::Model;
use super::space::{Levels, covers, height};

/// Nodes probed in parallel; a fixed number, so that the checked nodes do not depend on the machine.
const BATCH: usize = 4;
/// Nodes checked in parallel between two checks of the time limit.
const BLOCK: usize = 16;
/// From this many combinations times nodes on, a search with limits looks for a good answer first: it may not finish.
const LONG: usize = 1 << 28;

pub struct Task<'a> {
    pub table: &'a Table,
    pub model: &'a Model,
    pub scorer: &'a Scorer<'a>,
    /// Most records that may be suppressed.
    pub limit: u64,
    pub cancellation: &'a CancellationToken,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Best {
    pub score: f64,
    pub levels: Levels,
    pub suppressed: u64,
    pub classes: u64,
}

impl Best {
    fn beats(&self, other: &Self) -> bool {
        let key = |b: &Self| (height(&b.levels), b.levels.clone());
        self.score < other.score || (self.score == other.score && key(self) < key(other))
    }
}

pub struct Answer {
    pub best: Option<Best>,
    /// No node scores less than this.
    pub bound: f64,
    pub complete: bool,
    pub checked: u64,
}

pub fn search(task: &Task<'_>) -> Answer {
    search_below(task, f64::INFINITY)
}

/// Searches only nodes whose published score is at most `loss_limit`, for callers that already have such a release.
pub fn search_below(task: &Task<'_>, loss_limit: f64) -> Answer {
    // Half of the memory is for the nodes that the search remembers.
    let cache = GroupingCache::with_limit(task.table, task.cancellation.bytes() / 2);
    let checker = Checker {
        table: task.table,
        model: task.model,
        cache: &cache,
    };
    let mut search = Search {
        task,
        checker,
        frontier: Frontier::new(task.scorer, &task.table.space, task.table.space.bottom()),
        loss_limit,
        best: None,
        seen: HashMap::new(),
        refuted: Vec::new(),
        floors: Vec::new(),
    };
    let long = task.table.space.nodes.saturating_mul(task.table.base.len()) > LONG;
    if search.frontier.is_huge() || (long && task.cancellation.has_limits()) {
        search.descend();
    }
    if search.frontier.is_huge() {
        search.pairs();
        search.improve();
    }
    if task.limit == 0 && counterexample::is_affordable(task.table, task.model) {
        search.without_suppression()
    } else {
        search.with_suppression()
    }
}

/// Bytes of an entry of a table of nodes besides its levels: the vector, the number, and spare capacity.
const ENTRY: usize = 2 * (size_of::<Levels>() + size_of::<u64>());

struct Search<'a> {
    task: &'a Task<'a>,
    checker: Checker<'a>,
    frontier: Frontier<'a>,
    loss_limit: f64,
    best: Option<Best>,
    /// Checked nodes by levels, with their unpublishable records.
    seen: HashMap<Levels, u64>,
    /// Coarser nodes and the records that certainly fail at and below them.
    refuted: Vec<(Levels, u64)>,
    /// Finer nodes and a score that no node above them can beat.
    floors: Vec<(Levels, f64)>,
}

impl Search<'_> {
    /// Takes the live node of the lowest bound: it is the optimum, or its violating classes refute it and many others.
    fn without_suppression(mut self) -> Answer {
        let space = &self.task.table.space;
        let mut alive = vec![true; space.nodes];
        while let Some((bound, levels)) = self.frontier.pop() {
            if !alive[space.index(&levels)] {
                continue;
            }
            if self.done(bound) || self.is_late() {
                return self.answer(bound);
            }
            self.report(bound);
            let mut scratch = Scratch::default();
            let (tally, bad) =
                self.checker
                    .check_with_counterexamples(&levels, &mut scratch, BATCH);
            self.record(&levels, &tally);
            if tally.suppressed == 0 {
                // Coarser nodes lose at least as much when nothing is suppressed.
                let above = |(node, alive): (usize, &mut bool)| {
                    *alive &= !covers(&space.levels(node), &levels)
                };
                alive.par_iter_mut().enumerate().for_each(above);
                continue;
            }
            let task = self.task;
            let dead: Vec<Vec<u32>> = bad
                .par_iter()
                .map(|codes| counterexample::refuted_nodes(task.table, task.model, codes, &alive))
                .collect();
            dead.iter()
                .flatten()
                .for_each(|&node| alive[node as usize] = false);
        }
        self.answer(f64::INFINITY)
    }

    fn with_suppression(mut self) -> Answer {
        loop {
            let mut batch = Vec::with_capacity(BATCH);
            while batch.len() < BATCH {
                let Some((bound, levels)) = self.frontier.pop() else {
                    break;
                };
                if self.done(bound) || self.is_late() {
                    if batch.is_empty() {
                        return self.answer(bound);
                    }
                    self.frontier.give_back(bound, levels);
                    break;
                }
                if batch.is_empty() {
                    self.report(bound);
                }
                if !self.is_pruned(&levels) {
                    batch.push(levels);
                }
            }
            if batch.is_empty() {
                return self.answer(f64::INFINITY);
            }
            let found: Vec<Vec<(Levels, Tally, bool)>> =
                batch.par_iter().map(|levels| self.probe(levels)).collect();
            for (levels, tally, scored) in found.into_iter().flatten() {
                if scored {
                    self.record(&levels, &tally);
                }
                self.learn(levels, &tally);
            }
        }
    }

    fn done(&self, bound: f64) -> bool {
        self.best.as_ref().is_some_and(|best| bound > best.score) || self.is_beyond(bound)
    }

    /// Whether all nodes from here on exceed the loss limit.
    fn is_beyond(&self, bound: f64) -> bool {
        self.loss_limit < f64::INFINITY && self.task.scorer.publish(bound) > self.loss_limit
    }

    fn is_late(&self) -> bool {
        self.task.cancellation.is_late_with(|| self.bytes())
    }

    /// The bytes that the search uses besides the table.
    fn bytes(&self) -> usize {
        let nodes = self.seen.len() + self.refuted.len() + self.floors.len() + self.frontier.len();
        let table = self.task.table;
        nodes * (ENTRY + table.space.attributes.len()) + self.checker.cache.bytes()
            - table.base.bytes()
    }

    /// Whether `suppressed` certain losses rule a node out.
    fn is_ruled_out(&self, levels: &[u8], suppressed: u64) -> bool {
        suppressed > self.task.limit || self.done(self.task.scorer.bound(levels, suppressed))
    }

    fn is_pruned(&self, levels: &Levels) -> bool {
        if self.seen.contains_key(levels) {
            return true;
        }
        let floor = self
            .floors
            .iter()
            .filter(|(fine, _)| covers(levels, fine))
            .map(|f| f.1)
            .fold(0.0, f64::max);
        if self.done(floor) {
            return true;
        }
        self.refuted.iter().rev().any(|(coarse, unpublishable)| {
            covers(coarse, levels) && self.is_ruled_out(levels, *unpublishable)
        })
    }

    /// Binary search on a path to the top for the coarsest node that still rules `levels` out.
    fn probe(&self, levels: &Levels) -> Vec<(Levels, Tally, bool)> {
        let path = path(
            self.task.scorer,
            levels.clone(),
            &self.task.table.space.top(),
        );
        let mut scratch = Scratch::default();
        let mut found = Vec::new();
        let (mut low, mut high) = (0, path.len());
        while low < high {
            let middle = (low + high) / 2;
            let at = &path[middle];
            let unpublishable = match self.seen.get(at) {
                Some(&unpublishable) => unpublishable,
                None => {
                    let tally = self.checker.check(at, &mut scratch, |unpublishable| {
                        !self.is_ruled_out(at, unpublishable)
                    });
                    let unpublishable = tally.unpublishable;
                    let scored = !self.is_ruled_out(at, unpublishable);
                    found.push((at.clone(), tally, scored));
                    unpublishable
                }
            };
            if self.is_ruled_out(levels, unpublishable) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        found
    }

    fn report(&self, bound: f64) {
        let best = self.best.as_ref().map_or(f64::NAN, |best| best.score);
        let scorer = self.task.scorer;
        self.task.cancellation.report(
            self.seen.len() as u64,
            scorer.publish(best),
            scorer.publish(bound),
        );
    }

    fn record(&mut self, levels: &Levels, tally: &Tally) {
        self.seen.insert(levels.clone(), tally.unpublishable);
        if tally.suppressed > self.task.limit {
            return;
        }
        let score = self.task.scorer.score(levels, tally);
        let found = Best {
            score,
            levels: levels.clone(),
            suppressed: tally.suppressed,
            classes: tally.classes,
        };
        if self.best.as_ref().is_none_or(|best| found.beats(best)) {
            self.best = Some(found);
        }
    }

    fn learn(&mut self, levels: Levels, tally: &Tally) {
        let unpublishable = tally.unpublishable;
        self.seen.insert(levels.clone(), unpublishable);
        let floor = self.task.scorer.bound_above(tally);
        if floor > 0.0 {
            self.floors
                .retain(|(fine, below)| !(covers(fine, &levels) && floor >= *below));
            self.floors.push((levels.clone(), floor));
        }
        if unpublishable > 0
            && !self
                .refuted
                .iter()
                .any(|(coarse, more)| covers(coarse, &levels) && *more >= unpublishable)
        {
            self.refuted
                .retain(|(coarse, less)| !(covers(&levels, coarse) && unpublishable >= *less));
            self.refuted.push((levels, unpublishable));
        }
    }

    /// Finds a good answer first, for searches that may not finish: from the top, always to the best finer neighbor.
    fn descend(&mut self) {
        let top = self.task.table.space.top();
        let tally = self.checker.check(&top, &mut Scratch::default(), |_| true);
        self.record(&top, &tally);
        self.descend_from(top);
    }

    fn descend_from(&mut self, mut at: Levels) {
        while !self.is_late() {
            let finer = (0..at.len()).filter(|&j| at[j] > 0).map(|j| {
                let mut next = at.clone();
                next[j] -= 1;
                next
            });
            self.check_all(finer.collect());
            match &self.best {
                Some(best) if best.levels != at => at.clone_from(&best.levels),
                _ => return,
            }
        }
    }

    /// Checks all levels of every attribute and pair of attributes with the others at the top. These nodes refute most
    /// of a large lattice, and are cheap because they have few classes.
    fn pairs(&mut self) {
        let top = self.task.table.space.top();
        let mut nodes = Vec::new();
        for i in 0..top.len() {
            for j in 0..=i {
                for (a, b) in (0..top[i]).flat_map(|a| (0..top[j]).map(move |b| (a, b))) {
                    let mut levels = top.clone();
                    (levels[i], levels[j]) = (a, if i == j { a } else { b });
                    nodes.push(levels);
                }
            }
        }
        self.check_all(nodes);
        self.raise_bottom();
    }

    /// Starts above the levels that no feasible node can have, because the attribute alone refutes them.
    fn raise_bottom(&mut self) {
        let (space, scorer) = (&self.task.table.space, self.task.scorer);
        let top = space.top();
        let mut bottom = space.bottom();
        for j in 0..top.len() {
            let refuted = |level: u8| {
                let mut levels = top.clone();
                levels[j] = level;
                self.seen
                    .get(&levels)
                    .is_some_and(|&unpublishable| unpublishable > self.task.limit)
            };
            while bottom[j] < top[j] && refuted(bottom[j]) {
                bottom[j] += 1;
            }
        }
        self.frontier = Frontier::new(scorer, space, bottom);
    }

    /// Trades one level of an attribute for one of another as long as that helps and half of the time is left.
    fn improve(&mut self) {
        let start = Instant::now();
        let half = self.task.cancellation.time_left().map(|left| left / 2);
        while let Some(at) = self.best.as_ref().map(|best| best.levels.clone()) {
            let mut near = Vec::new();
            for i in (0..at.len()).filter(|&i| at[i] > 0) {
                for j in (0..at.len()).filter(|&j| j != i && at[j] < self.task.table.space.top()[j])
                {
                    let mut next = at.clone();
                    (next[i], next[j]) = (at[i] - 1, at[j] + 1);
                    near.push(next.clone());
                    next[i] = at[i].saturating_sub(2);
                    near.push(next);
                }
            }
            near.retain(|next| !self.done(self.task.scorer.bound(next, 0)));
            self.check_all(near);
            self.descend_from(
                self.best
                    .as_ref()
                    .map_or(at.clone(), |best| best.levels.clone()),
            );
            let stuck = self.best.as_ref().is_some_and(|best| best.levels == at);
            if stuck || half.is_some_and(|half| start.elapsed() >= half) {
                return;
            }
        }
    }

    /// Checks nodes in parallel, in blocks short enough to notice the time limit.
    fn check_all(&mut self, mut nodes: Vec<Levels>) {
        nodes.retain(|levels| !self.seen.contains_key(levels));
        for block in nodes.chunks(BLOCK) {
            if self.is_late() {
                return;
            }
            let checked: Vec<(Levels, Tally)> = block
                .par_iter()
                .map_init(Scratch::default, |scratch, levels| {
                    (
                        levels.clone(),
                        self.checker.check(levels, scratch, |_| true),
                    )
                })
                .collect();
            for (levels, tally) in checked {
                self.record(&levels, &tally);
                self.learn(levels, &tally);
            }
        }
    }

    fn answer(mut self, bound: f64) -> Answer {
        let is_beyond = self.is_beyond(bound);
        if self.best.is_none() && bound < f64::INFINITY && !is_beyond {
            // Out of time before anything was found: the coarsest node is the likeliest to satisfy the model.
            let top = self.task.table.space.top();
            let tally = self.checker.check(&top, &mut Scratch::default(), |_| true);
            self.record(&top, &tally);
        }
        let complete = self
            .best
            .as_ref()
            .map_or(bound == f64::INFINITY, |best| bound > best.score)
            || is_beyond;
        let bound = match &self.best {
            Some(best) => best.score.min(bound),
            None => bound,
        };
        Answer {
            bound,
            complete,
            checked: self.seen.len() as u64,
            best: self.best,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::collapse::{SensitiveColumn, collapse};
    use super::super::loss::{Balance, Kind};
    use super::super::model::Diversity;
    use super::super::space::{Attribute, Space};
    use super::*;

    const AGES: [i32; 12] = [0, 0, 1, 1, 2, 2, 3, 3, 3, 0, 1, 2];
    const WARDS: [i32; 12] = [0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 2, 3];
    const ILLS: [i32; 12] = [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2];

    /// Four leaves, pairs of them, all of them.
    fn hierarchy() -> Attribute {
        let tables = vec![vec![0, 1, 2, 3], vec![0, 0, 1, 1], vec![0; 4]];
        let leaves = vec![vec![1; 4], vec![2; 2], vec![4]];
        Attribute::new(tables, leaves, 4).unwrap()
    }

    fn table() -> Table {
        let ills = SensitiveColumn {
            codes: &ILLS,
            domain: 3,
            tree: vec![],
        };
        let space = Space::new(vec![hierarchy(), hierarchy()]);
        collapse(space, &[&AGES, &WARDS], vec![ills], None).table
    }

    /// The best node by exhaustive search.
    fn brute(task: &Task<'_>) -> Option<Best> {
        let mut best: Option<Best> = None;
        for node in 0..task.table.space.nodes {
            let levels = task.table.space.levels(node);
            let cache = GroupingCache::new(task.table);
            let checker = Checker {
                table: task.table,
                model: task.model,
                cache: &cache,
            };
            let tally = checker.check(&levels, &mut Scratch::default(), |_| true);
            let candidate = Best {
                score: task.scorer.score(&levels, &tally),
                levels,
                suppressed: tally.suppressed,
                classes: tally.classes,
            };
            let better = best.as_ref().is_none_or(|b| candidate.beats(b));
            if tally.suppressed <= task.limit && better {
                best = Some(candidate);
            }
        }
        best
    }

    #[test]
    fn the_search_equals_exhaustive_search() {
        let table = table();
        for (k, l) in [(1, 1), (2, 1), (3, 1), (2, 2), (2, 3), (13, 1)] {
            let model = Model {
                k,
                diversity: Some(Diversity::Distinct(l)),
                closeness: None,
                persons: None,
            };
            let kinds = [
                Kind::Loss,
                Kind::Ncp,
                Kind::Discernibility,
                Kind::Height,
                Kind::Precision,
                Kind::Entropy,
                Kind::ClassSize,
            ];
            let factors = [0.5, 0.0, 0.2, 0.9, 1.0];
            for (kind, factor) in kinds.iter().flat_map(|&k| factors.map(|f| (k, f))) {
                let scorer = Scorer::new(kind, &table.space, &table.base, &[1.0, 0.5])
                    .with_balance(Balance::of(factor));
                for limit in [0, 1, 3, 12] {
                    let task = Task {
                        table: &table,
                        model: &model,
                        scorer: &scorer,
                        limit,
                        cancellation: &CancellationToken::default(),
                    };
                    let answer = search(&task);
                    assert!(answer.complete);
                    assert_eq!(
                        answer.best,
                        brute(&task),
                        "{kind:?} {factor} {k} {l} {limit}"
                    );
                    let Some(best) = answer.best else { continue };
                    let least = scorer.publish(best.score);
                    let same = search_below(&task, least);
                    assert!(same.complete && same.checked <= answer.checked);
                    assert_eq!(same.best, Some(best));
                    let none = search_below(&task, least - 1e-6);
                    let more = |best: Best| scorer.publish(best.score) >= least;
                    assert!(none.complete && none.best.is_none_or(more));
                }
            }
        }
    }
}
