//! Mondrian (LeFevre, DeWitt, Ramakrishnan, ICDE 2006): cuts the table along one attribute after the other.
//!
//! A part is cut in two where the gain over all attributes is largest, if both pieces satisfy the model: an ordered
//! attribute between two values, a set of values into frequent and rare ones, a tree into one child of the common node
//! and the others. Strict cuts keep equal values together; relaxed cuts divide the records at the median.
//!
//! Records lie row by row and move with every cut, so that a part is always contiguous. The largest part is
//! cut first: a search that is stopped leaves parts of much the same size, where depth first some would be as coarse as
//! the table.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex};

use super::axis::{Axis, Cut, Entry, Extent, Shape};
use super::cancellation::CancellationToken;
use super::collapse::{SensitiveColumn, totals};
use super::grouping::Histogram;
use super::model::{Model, Sensitive};
use super::persons;

/// A record: its codes on every axis, then its row number.
type Record<'a> = &'a [u32];

struct Cutter<'a> {
    axes: &'a [&'a Axis],
    values: Vec<&'a [i32]>,
    model: &'a Model,
    sensitive: Vec<Sensitive>,
    /// How many rows a record represents; one each if none are given.
    times: Option<&'a [u32]>,
    domain: usize,
    rows: u32,
    relaxed: bool,
    /// Fewest persons of a part that does not contain all records of its persons.
    linked_k: u32,
    cancellation: &'a CancellationToken,
    /// Finished parts: their start and number of records.
    parts: Mutex<Vec<(usize, usize)>>,
}

/// Larger tables are cut by several threads.
const PARALLEL: usize = 2048;
/// Parts with at most this many records are cut to the end at once.
const SMALL: usize = 256;
/// Axes whose best cut is evaluated over all axes.
const WEIGHED: usize = 8;

/// A part that waits to be cut, and its start.
struct Waiting<'r> {
    part: &'r mut [u32],
    start: usize,
}

impl Ord for Waiting<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |waiting: &Self| (waiting.part.len(), waiting.start);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Waiting<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting<'_> {}

/// The waiting parts, largest first: if time runs out, no part is much coarser than the others.
#[derive(Default)]
struct Queue<'r> {
    /// The waiting parts, and how many are being cut.
    parts: Mutex<(BinaryHeap<Waiting<'r>>, usize)>,
    changed: Condvar,
}

impl<'r> Queue<'r> {
    fn push(&self, waiting: Waiting<'r>) {
        self.parts.lock().expect(LOCK).0.push(waiting);
        self.changed.notify_one();
    }

    /// Takes the largest part; none once nothing waits and nothing is being cut.
    fn take(&self) -> Option<Waiting<'r>> {
        let mut parts = self.parts.lock().expect(LOCK);
        loop {
            if let Some(waiting) = parts.0.pop() {
                parts.1 += 1;
                return Some(waiting);
            }
            if parts.1 == 0 {
                return None;
            }
            parts = self.changed.wait(parts).expect(LOCK);
        }
    }
}

/// Counts a part as being cut until it is dropped, also if the thread panics, so that no thread waits forever.
struct PartGuard<'q, 'r>(&'q Queue<'r>);

impl Drop for PartGuard<'_, '_> {
    fn drop(&mut self) {
        let mut parts = self.0.parts.lock().expect(LOCK);
        parts.1 -= 1;
        if parts.1 == 0 && parts.0.is_empty() {
            self.0.changed.notify_all();
        }
    }
}

const LOCK: &str = "no thread panics while it holds the lock";

/// A cut of one axis, and its gain.
struct Choice {
    axis: usize,
    gain: f64,
    cut: Cut,
}

/// Which values a piece already has, for axes that count them.
#[derive(Default)]
struct SeenValues {
    seen: Vec<u32>,
    round: u32,
}

impl SeenValues {
    fn begin(&mut self, domain: usize) {
        if self.seen.len() < domain {
            self.seen.resize(domain, 0);
        }
        self.round += 1;
    }

    fn first(&mut self, code: u32) -> bool {
        std::mem::replace(&mut self.seen[code as usize], self.round) != self.round
    }
}

impl<'a> Cutter<'a> {
    fn stride(&self) -> usize {
        self.axes.len() + 1
    }

    fn records<'r>(&self, part: &'r [u32]) -> impl Iterator<Item = Record<'r>> + use<'r> {
        part.chunks_exact(self.stride())
    }

    /// How many rows a record represents.
    fn times(&self, record: Record<'_>) -> u32 {
        self.times
            .map_or(1, |times| times[record[self.axes.len()] as usize])
    }

    /// How many rows a part represents.
    fn weight(&self, part: &[u32]) -> usize {
        match self.times {
            None => part.len() / self.stride(),
            Some(_) => self.records(part).map(|r| self.times(r) as usize).sum(),
        }
    }

    /// Cuts waiting parts until none are left, and records the finished ones.
    fn work(&self, queue: &Queue<'_>) {
        let mut seen_values = SeenValues::default();
        while let Some(waiting) = queue.take() {
            let _guard = PartGuard(queue);
            self.cut(waiting, queue, &mut seen_values);
        }
    }

    /// Cuts one part in two. The pieces go to the queue; small ones are cut to the end.
    fn cut<'r>(&self, waiting: Waiting<'r>, queue: &Queue<'r>, seen_values: &mut SeenValues) {
        let small = waiting.part.len() <= SMALL * self.stride();
        let mut stack = vec![waiting];
        while let Some(Waiting { part, start }) = stack.pop() {
            let Some(size) = self.split(part, seen_values) else {
                let size = part.len() / self.stride();
                let mut parts = self.parts.lock().expect(LOCK);
                parts.push((start, size));
                continue;
            };
            let (part, more) = part.split_at_mut(size * self.stride());
            let pieces = [(part, start), (more, start + size)];
            let pieces = pieces.map(|(part, start)| Waiting { part, start });
            if small {
                stack.extend(pieces);
            } else {
                pieces.into_iter().for_each(|piece| queue.push(piece));
            }
        }
    }

    /// Makes the best allowed cut; returns the size of its first piece.
    fn split(&self, part: &mut [u32], seen_values: &mut SeenValues) -> Option<usize> {
        let n = self.weight(part);
        if n < 2 * self.model.smallest() as usize
            || self.cancellation.is_late()
            || self.is_exhausted(part)
        {
            return None;
        }
        if self.relaxed {
            return self.split_at_median(part, seen_values);
        }
        let mut choices = self.choices(part);
        self.weigh(part, &mut choices, seen_values);
        let mask = &mut Vec::new();
        choices
            .iter()
            .find_map(|choice| self.arrange(part, &self.side(choice, mask)))
    }

    /// Whether a part has too few persons for two pieces while some of its persons have records elsewhere: then trying
    /// every cut is futile.
    fn is_exhausted(&self, part: &[u32]) -> bool {
        let Some(persons) = self
            .model
            .persons
            .as_ref()
            .filter(|_| self.linked_k > self.model.k)
        else {
            return false;
        };
        let row = |record: Record<'_>| self.values[0][record[self.axes.len()] as usize] as u32;
        let class = persons::count_pairs(self.records(part).map(row).collect());
        !persons.at_least(&class, self.linked_k.saturating_mul(2)) && !persons.is_closed(&class)
    }

    /// The cuts of all axes by their gain on their own axis, the best of each axis first.
    fn choices(&self, part: &[u32]) -> Vec<Choice> {
        let least = self.model.smallest();
        let mut choices = Vec::new();
        let mut others = Vec::new();
        for (axis, knowledge) in self.axes.iter().enumerate() {
            let cuts = knowledge.cuts(&self.entries(axis, part), least);
            let cuts = cuts
                .into_iter()
                .map(|(gain, cut)| Choice { axis, gain, cut });
            let mut cuts = cuts.filter(|choice| choice.gain > 0.0);
            choices.extend(cuts.next());
            others.extend(cuts);
        }
        let best_first = |a: &Choice, b: &Choice| b.gain.total_cmp(&a.gain);
        choices.sort_by(best_first);
        others.sort_by(best_first);
        choices.extend(others);
        choices
    }

    /// The values of an axis in a part with their records, ascending.
    fn entries(&self, axis: usize, part: &[u32]) -> Vec<Entry> {
        let entries = self.records(part).map(|r| (r[axis], self.times(r)));
        let domain = self.axes[axis].domain;
        if domain <= 4 * part.len() / self.stride() {
            let mut counts = vec![0u32; domain];
            entries.for_each(|(code, times)| counts[code as usize] += times);
            return (0..).zip(counts).filter(|entry| entry.1 > 0).collect();
        }
        let mut entries: Vec<Entry> = entries.collect();
        entries.sort_unstable();
        let same = entries.chunk_by(|a, b| a.0 == b.0);
        same.map(|e| (e[0].0, e.iter().map(|e| e.1).sum()))
            .collect()
    }

    /// Sorts the first choices by their gain over all axes.
    fn weigh(&self, part: &[u32], choices: &mut [Choice], seen_values: &mut SeenValues) {
        let first = choices
            .iter()
            .enumerate()
            .position(|(at, choice)| {
                at == WEIGHED || choices[..at].iter().any(|c| c.axis == choice.axis)
            })
            .unwrap_or(choices.len());
        if first < 2 {
            return;
        }
        let mask = &mut Vec::new();
        for choice in &mut choices[..first] {
            let side = self.side(choice, mask);
            let sides: Vec<bool> = self.records(part).map(&side).collect();
            choice.gain = -self.costs(part, &sides, seen_values);
        }
        choices[..first].sort_by(|a, b| b.gain.total_cmp(&a.gain));
    }

    /// The loss of all records of a part after a cut.
    fn costs(&self, part: &[u32], sides: &[bool], seen_values: &mut SeenValues) -> f64 {
        let mut rows = [0u64; 2];
        for (record, &side) in self.records(part).zip(sides) {
            rows[usize::from(side)] += u64::from(self.times(record));
        }
        let sizes = rows.map(|n| n as f64);
        let mut total = 0.0;
        for (at, axis) in self.axes.iter().enumerate() {
            let mut extents = [Extent::EMPTY; 2];
            let counts = axis.counts_values();
            if counts {
                seen_values.begin(2 * axis.domain);
            }
            for (record, &side) in self.records(part).zip(sides) {
                let code = record[at];
                let new = counts && seen_values.first(2 * code + u32::from(side));
                axis.grow(&mut extents[usize::from(side)], code, new);
            }
            total += sizes[0] * axis.cost(&extents[0]) + sizes[1] * axis.cost(&extents[1]);
        }
        total
    }

    /// Whether a record goes to the second piece; `mask` has one flag per listed code.
    fn side<'m>(
        &self,
        choice: &Choice,
        mask: &'m mut Vec<bool>,
    ) -> impl Fn(Record<'_>) -> bool + use<'m> {
        let (axis, mut above) = (choice.axis, u32::MAX);
        mask.clear();
        match &choice.cut {
            Cut::Above(code) => above = *code,
            Cut::Among(codes) => {
                mask.resize(self.axes[axis].domain, false);
                codes.iter().for_each(|&code| mask[code as usize] = true);
            }
        }
        let mask = &*mask;
        move |record| match mask.get(record[axis] as usize) {
            Some(&listed) => listed,
            None => record[axis] > above,
        }
    }

    /// Halves the records by value, then by row, along the axis that costs most.
    fn split_at_median(&self, part: &mut [u32], seen_values: &mut SeenValues) -> Option<usize> {
        let row = self.axes.len();
        let mut order: Vec<(f64, usize)> = (0..row)
            .map(|axis| (self.cost(axis, part, seen_values), axis))
            .filter(|choice| choice.0 > 0.0)
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        order.into_iter().find_map(|(_, axis)| {
            let key = |record: Record<'_>| (self.place(axis, record[axis]), record[row]);
            let mut keys: Vec<((u32, u32), u32)> = self.records(part).map(key).collect();
            let half = keys.len() / 2;
            let middle = *keys.select_nth_unstable(half).1;
            self.arrange(part, &|record: Record<'_>| key(record) >= middle)
        })
    }

    fn cost(&self, axis: usize, part: &[u32], seen_values: &mut SeenValues) -> f64 {
        let mut extent = Extent::EMPTY;
        seen_values.begin(self.axes[axis].domain);
        for record in self.records(part) {
            let new = seen_values.first(record[axis]);
            self.axes[axis].grow(&mut extent, record[axis], new);
        }
        self.axes[axis].cost(&extent)
    }

    /// Sort key of a value: the children of a node stay together.
    fn place(&self, axis: usize, code: u32) -> (u32, u32) {
        match &self.axes[axis].shape {
            Shape::Tree(levels) => (
                levels[levels.len().saturating_sub(2)].nodes[code as usize],
                code,
            ),
            _ => (0, code),
        }
    }

    /// Sorts the records by piece if both pieces satisfy the model; returns the size of the first.
    fn arrange(&self, part: &mut [u32], side: &impl Fn(Record<'_>) -> bool) -> Option<usize> {
        let (mut first, mut sizes) = (0, [0usize; 2]);
        for record in self.records(part) {
            let above = side(record);
            first += usize::from(!above);
            sizes[usize::from(above)] += self.times(record) as usize;
        }
        if sizes.iter().any(|&n| n < self.model.smallest() as usize)
            || !self.diverse(part, sizes, side)
        {
            return None;
        }
        let mut next = [0, first];
        let (stride, old) = (self.stride(), part.to_vec());
        for record in old.chunks_exact(stride) {
            let at = &mut next[usize::from(side(record))];
            part[*at * stride..(*at + 1) * stride].copy_from_slice(record);
            *at += 1;
        }
        Some(first)
    }

    /// Whether the sensitive values of both pieces satisfy the model; an empty piece does.
    fn diverse(&self, part: &[u32], sizes: [usize; 2], side: &impl Fn(Record<'_>) -> bool) -> bool {
        if self.model.counts_only() {
            return true;
        }
        if self.model.persons.is_some() {
            return self.persons_satisfy(part, side);
        }
        let mut classes = [Histogram::default(), Histogram::default()];
        classes
            .iter_mut()
            .for_each(|class| class.reset(self.domain));
        for record in self.records(part) {
            let class = &mut classes[usize::from(side(record))];
            let (row, times) = (record[self.axes.len()] as usize, self.times(record));
            for (values, s) in self.values.iter().zip(&self.sensitive) {
                class.add(s.start as u32 + values[row] as u32, times);
            }
        }
        let filled = classes.iter().zip(sizes).filter(|&(_, n)| n > 0);
        filled.into_iter().all(|(class, n)| {
            self.model.plausible(class, n as u32, &self.sensitive)
                && self
                    .model
                    .holds(class, n as u32, self.rows, &self.sensitive)
        })
    }

    /// The same by persons: pieces are lists of pairs, because a histogram over all pairs would be nearly empty.
    fn persons_satisfy(&self, part: &[u32], side: &impl Fn(Record<'_>) -> bool) -> bool {
        let Some(persons) = &self.model.persons else {
            return false;
        };
        let mut pieces = [Vec::new(), Vec::new()];
        for record in self.records(part) {
            let row = record[self.axes.len()] as usize;
            pieces[usize::from(side(record))].push(self.values[0][row] as u32);
        }
        let filled = pieces.into_iter().filter(|pairs| !pairs.is_empty());
        filled.into_iter().all(|pairs| {
            let class = persons::count_pairs(pairs);
            persons.plausible(self.model, &class)
                && persons.holds(self.model, &class)
                && (self.linked_k <= self.model.k
                    || persons.at_least(&class, self.linked_k)
                    || persons.is_closed(&class))
        })
    }
}

/// The class of each row, counted from 0, and whether the whole table satisfies the model (if not, nothing is cut).
///
/// With `times`, a row represents that many equal rows, fewer than 2^32 in all. Strict cuts keep them together, so the
/// classes are those of the rows themselves; relaxed cuts and persons need single rows. With `start`, these classes
/// (counted from 0) are cut further; the caller ensures that they satisfy the model. A part some of whose persons also
/// have records elsewhere has at least `linked_k` persons: an attacker who links records compares its values with
/// others.
#[allow(clippy::too_many_arguments)]
pub fn mondrian(
    axes: &[&Axis],
    sensitive: Vec<SensitiveColumn<'_>>,
    model: &Model,
    times: Option<&[u32]>,
    start: Option<&[i64]>,
    relaxed: bool,
    linked_k: u32,
    cancellation: &CancellationToken,
) -> (Vec<i64>, bool) {
    let records = axes.first().map_or(0, |axis| axis.codes.len());
    let rows = times.map_or(records as u32, |times| times.iter().sum());
    let cutter = Cutter {
        axes,
        values: sensitive.iter().map(|s| s.codes).collect(),
        model,
        domain: sensitive.iter().map(|s| s.domain).sum(),
        sensitive: totals(sensitive, &|row| times.map_or(1, |times| times[row])),
        times,
        rows,
        relaxed,
        linked_k,
        cancellation,
        parts: Mutex::default(),
    };
    classes(&cutter, start, records)
}

fn classes(cutter: &Cutter<'_>, start: Option<&[i64]>, rows: usize) -> (Vec<i64>, bool) {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    let class = |row: u32| start.map_or(0, |classes| classes[row as usize]);
    order.sort_by_key(|&row| class(row));
    let mut records = Vec::with_capacity(rows * cutter.stride());
    for &row in &order {
        records.extend(cutter.axes.iter().map(|axis| axis.codes[row as usize]));
        records.push(row);
    }
    let mut classes = vec![0i64; rows];
    let all = |_: Record<'_>| false;
    let whole = cutter.weight(&records);
    let few = whole < cutter.model.smallest() as usize;
    if start.is_none() && (few || !cutter.diverse(&records, [whole, 0], &all)) {
        return (classes, false);
    }
    let (stride, mut rest, mut start) = (cutter.stride(), &mut records[..], 0);
    let queue = Queue::default();
    for same in order.chunk_by(|&a, &b| class(a) == class(b)) {
        let (part, more) = std::mem::take(&mut rest).split_at_mut(same.len() * stride);
        queue.push(Waiting { part, start });
        start += same.len();
        rest = more;
    }
    // Separate threads: a thread of the pool that waits for parts would block others from the work it waits for.
    let helpers = if rows > PARALLEL {
        rayon::current_num_threads() - 1
    } else {
        0
    };
    std::thread::scope(|scope| {
        (0..helpers).for_each(|_| drop(scope.spawn(|| cutter.work(&queue))));
        cutter.work(&queue);
    });
    drop(queue);
    let mut parts = cutter.parts.lock().expect("all threads are done").clone();
    parts.sort_unstable();
    let mut rest = cutter.records(&records);
    for (class, &(_, n)) in parts.iter().enumerate() {
        rest.by_ref()
            .take(n)
            .for_each(|r| classes[r[cutter.axes.len()] as usize] = class as i64);
    }
    (classes, true)
}

#[cfg(test)]
mod tests {
    use super::super::model::Diversity;
    use super::*;

    fn classes_of(codes: &[i32], ills: &[i32], k: u32, l: u32, relaxed: bool) -> (Vec<i64>, bool) {
        weighted_classes(codes, ills, None, k, l, relaxed)
    }

    fn weighted_classes(
        codes: &[i32],
        ills: &[i32],
        times: Option<&[u32]>,
        k: u32,
        l: u32,
        relaxed: bool,
    ) -> (Vec<i64>, bool) {
        let domain = codes.iter().max().map_or(0, |&c| c as usize + 1);
        let axis = Axis {
            codes: codes.iter().map(|&c| c as u32).collect(),
            domain,
            shape: Shape::Ordered((0..domain).map(|c| c as f64).collect()),
            missing: false,
            weight: 1.0,
        };
        let ills = SensitiveColumn {
            codes: ills,
            domain: 4,
            tree: vec![],
        };
        let model = Model {
            k,
            diversity: Some(Diversity::Distinct(l)),
            closeness: None,
            persons: None,
        };
        mondrian(
            &[&axis],
            vec![ills],
            &model,
            times,
            None,
            relaxed,
            0,
            &CancellationToken::default(),
        )
    }

    #[test]
    fn an_ordered_column_is_cut_between_neighbors() {
        let ills = [0; 8];
        let (classes, holds) = classes_of(&[7, 6, 5, 4, 3, 2, 1, 0], &ills, 2, 1, false);
        assert!(holds);
        assert_eq!(classes, [3, 3, 2, 2, 1, 1, 0, 0]);
    }

    #[test]
    fn no_cut_leaves_a_part_below_l() {
        // At the median the left part would have only one value.
        let ills = [0, 0, 1, 2];
        let (classes, holds) = classes_of(&[0, 1, 2, 3], &ills, 1, 2, false);
        assert!(holds);
        for row in 0..4 {
            let mates = (0..4).filter(|&other| classes[other] == classes[row]);
            assert!(mates.into_iter().any(|other| ills[other] != ills[row]));
        }
        let (_, holds) = classes_of(&[0, 1, 2, 3], &[0, 0, 0, 0], 1, 2, false);
        assert!(!holds);
    }

    #[test]
    fn rows_with_counts_are_cut_like_repeated_rows() {
        let (codes, ills) = ([0, 1, 1, 2, 3, 3, 5, 6], [0, 0, 1, 1, 2, 0, 3, 0]);
        let times = [3, 1, 2, 4, 1, 1, 5, 2];
        let repeated = |cells: &[i32]| -> Vec<i32> {
            let pairs = cells.iter().zip(times);
            pairs
                .flat_map(|(&cell, n)| vec![cell; n as usize])
                .collect()
        };
        let (few, holds) = weighted_classes(&codes, &ills, Some(&times), 3, 2, false);
        assert!(holds);
        let (many, _) = classes_of(&repeated(&codes), &repeated(&ills), 3, 2, false);
        let few: Vec<i32> = few.iter().map(|&class| class as i32).collect();
        let many: Vec<i32> = many.iter().map(|&class| class as i32).collect();
        assert!(few.iter().any(|&class| class > 0));
        assert_eq!(repeated(&few), many);
    }

    #[test]
    fn only_relaxed_cuts_divide_equal_values() {
        let (strict, _) = classes_of(&[0; 8], &[0; 8], 2, 1, false);
        assert!(strict.iter().all(|&c| c == 0));
        let (relaxed, _) = classes_of(&[1, 1, 1, 1, 1, 1, 1, 0], &[0; 8], 2, 1, true);
        assert!(relaxed.iter().any(|&c| c > 0));
    }

    #[test]
    fn the_largest_part_is_cut_first() {
        let mut records = [0u32; 17];
        let (small, rest) = records.split_at_mut(3);
        let (large, middle) = rest.split_at_mut(9);
        let queue = Queue::default();
        for (part, start) in [(small, 0), (large, 3), (middle, 12)] {
            queue.push(Waiting { part, start });
        }
        let starts: Vec<usize> = std::iter::from_fn(|| {
            let taken = queue.take().map(|w| (w.start, PartGuard(&queue)));
            taken.as_ref().map(|taken| taken.0)
        })
        .collect();
        assert_eq!(starts, [3, 12, 0]);
    }
}
