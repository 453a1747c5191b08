//! Local recoding: every record has its own levels.
//!
//! All records start in one class, fully generalized. Nodes are visited from the cheapest up. At each node, the records
//! still in the first class are grouped. A group that satisfies the model moves to a class of its own if the remaining
//! records still satisfy the model (or may be suppressed). So the table satisfies the model at every moment.
//!
//! Under t-closeness, a group that is too far from the whole table may leave in part: as many records as can be close;
//! the others wait for records that balance them. The same holds for a group in which a value is too frequent.

use std::collections::{HashMap, HashSet};

use super::check::Table;
use super::frontier::{Frontier, path};
use super::grouping::{Grouping, Histogram, Scratch};
use super::loss::Scorer;
use super::model::Model;
use super::optimal::Task;
use super::persons;
use super::space::Levels;

/// The node of every record: by combination, except for records that left in part.
pub struct LocalRecoding {
    pub nodes: Vec<Levels>,
    pub node: Vec<u32>,
    /// (combination, sensitive value) -> how many records went to which node.
    pub parts: HashMap<(u32, u32), Vec<(u32, u32)>>,
    /// The node of the records that no class took; they are suppressed if `must_suppress`.
    pub last: u32,
    pub must_suppress: bool,
}

/// Pieces of rows: a row that left in part has several.
#[derive(Default)]
pub struct Pieces {
    /// The row of each piece.
    pub rows: Vec<u32>,
    /// The number of its records.
    pub times: Vec<u32>,
    /// Levels, by quasi-identifier.
    pub levels: Vec<Vec<i64>>,
    pub suppressed: Vec<bool>,
}

impl LocalRecoding {
    /// The pieces of each row with their levels, and which to suppress. A row of one record has one piece.
    pub fn of_rows(
        mut self,
        combinations: &[u32],
        values: Option<&[i32]>,
        times: Option<&[u32]>,
    ) -> Pieces {
        let mut pieces = Pieces::default();
        let mut nodes = Vec::with_capacity(combinations.len());
        for (row, &c) in combinations.iter().enumerate() {
            let value = values.map(|values| values[row] as u32);
            let mut left = times.map_or(1, |times| times[row]);
            while left > 0 {
                let (node, n) = self.take(c, value, left);
                left -= n;
                nodes.push(node);
                pieces.rows.push(row as u32);
                pieces.times.push(n);
            }
        }
        let level = |j: usize| {
            let levels = nodes.iter().map(|&n| self.nodes[n as usize][j]);
            levels.map(i64::from).collect()
        };
        pieces.levels = (0..self.nodes[0].len()).map(level).collect();
        let gone = |&n: &u32| self.must_suppress && n == self.last;
        pieces.suppressed = nodes.iter().map(gone).collect();
        pieces
    }

    /// The node of some records of a combination, and their number: one of its parts if records of that value left in
    /// part.
    fn take(&mut self, c: u32, value: Option<u32>, most: u32) -> (u32, u32) {
        let parts = value.and_then(|value| self.parts.get_mut(&(c, value)));
        let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
            return (self.node[c as usize], most);
        };
        let last = parts.len() - 1;
        let (node, left) = &mut parts[last];
        let taken = (*node, most.min(*left));
        *left -= taken.1;
        if *left == 0 {
            parts.pop();
        }
        taken
    }
}

/// Parts tried, as shares of the largest one: a smaller part can leave a better balanced rest.
const SHARES: [f64; 4] = [1.0, 0.8, 0.6, 0.4];

/// Visits the nodes of `order`, or all by cost; `allow_parts` lets groups leave in part.
pub fn recode(task: &Task<'_>, order: Option<Vec<Levels>>, allow_parts: bool) -> LocalRecoding {
    let order = order.unwrap_or_else(|| nodes_by_cost(task.table, task.scorer));
    let last = order.len() as u32 - 1;
    let mut rest = Rest::new(task, allow_parts, last);
    for (node, levels) in order.iter().enumerate() {
        if rest.left == 0 || node as u32 == last || task.cancellation.is_late() {
            break;
        }
        task.cancellation.report(node as u64, f64::NAN, f64::NAN);
        rest.visit(node as u32, levels);
    }
    let must_suppress = rest.left > 0 && !rest.good(&rest.whole, rest.left);
    LocalRecoding {
        nodes: order,
        node: rest.node,
        parts: rest.parts,
        last,
        must_suppress,
    }
}

/// Larger lattices are represented by their cheapest nodes and a path to the top.
const NODES: usize = 1 << 14;
/// Codes (combinations times packs) that the nodes of such lattices may process.
const WORK: usize = 1 << 28;
/// Fewest nodes of each half.
const FEW: usize = 64;
/// Pairs that in most cases decide whether the rest is valid.
const SAMPLE: usize = 256;

/// Cheapest first; the top, which generalizes everything, comes last.
fn nodes_by_cost(table: &Table, scorer: &Scorer<'_>) -> Vec<Levels> {
    let (space, top) = (&table.space, table.space.top());
    let huge = space.nodes > NODES;
    let codes = table.base.len().max(1) * space.packs.len().max(1);
    // Half for the cheapest, which have no groups yet in a wide table, half for the path to the top.
    let most = if huge {
        NODES.min(WORK / codes / 2).max(FEW)
    } else {
        NODES
    };
    let mut frontier = Frontier::new(scorer, space, space.bottom());
    let cheapest = std::iter::from_fn(|| frontier.pop())
        .map(|(_, levels)| levels)
        .take(most);
    let mut nodes: Vec<Levels> = cheapest.filter(|levels| *levels != top).collect();
    if huge {
        let seen: HashSet<Levels> = nodes.iter().cloned().collect();
        let way = path(scorer, space.bottom(), &top);
        let step = (way.len() * top.len()).div_ceil(most);
        let way: Vec<Levels> = way.into_iter().step_by(step).collect();
        let near = path_neighbors(&way, &top).into_iter();
        nodes.extend(near.filter(|levels| !seen.contains(levels)));
    }
    nodes.push(top);
    nodes
}

/// The nodes of a path, and those one level away from it in one attribute.
fn path_neighbors(path: &[Levels], top: &Levels) -> Vec<Levels> {
    let mut seen = HashSet::new();
    let mut nodes = Vec::new();
    for levels in path {
        let raised = (0..top.len()).filter(|&j| levels[j] < top[j]).map(|j| {
            let mut next = levels.clone();
            next[j] += 1;
            next
        });
        for next in std::iter::once(levels.clone()).chain(raised) {
            if next != *top && seen.insert(next.clone()) {
                nodes.push(next);
            }
        }
    }
    nodes
}

/// The records still in the first class.
struct Rest<'a> {
    table: &'a Table,
    model: &'a Model,
    limit: u64,
    allow_parts: bool,
    /// Whether the rest must satisfy the model; not if the whole table never did.
    check_sensitive: bool,
    members: Vec<u32>,
    groups: Grouping,
    whole: Histogram,
    /// Some pairs of the rest, where persons are counted.
    sample: Vec<u32>,
    left: u32,
    node: Vec<u32>,
    parts: HashMap<(u32, u32), Vec<(u32, u32)>>,
    scratch: Scratch,
}

impl<'a> Rest<'a> {
    fn new(task: &Task<'a>, allow_parts: bool, last: u32) -> Self {
        let Task {
            table,
            model,
            limit,
            ..
        } = *task;
        let members = in_order(&table.base);
        let mut groups = gather(&table.base, &members);
        groups.sort_values();
        let mut whole = Histogram::default();
        whole.reset(table.domain);
        (0..groups.len())
            .flat_map(|g| groups.entries(g))
            .for_each(|(value, n)| whole.add(value, n));
        if model.persons.is_some() {
            whole.touched.sort_unstable();
        }
        let node = vec![last; members.len()];
        let mut rest = Self {
            table,
            model,
            limit,
            allow_parts,
            check_sensitive: true,
            members,
            groups,
            whole,
            sample: Vec::new(),
            left: table.rows,
            node,
            parts: HashMap::new(),
            scratch: Scratch::default(),
        };
        rest.check_sensitive = rest.good(&rest.whole, rest.left);
        rest
    }

    fn good(&self, class: &Histogram, n: u32) -> bool {
        let table = self.table;
        self.model.plausible(class, n, &table.sensitive)
            && self.model.holds(class, n, table.rows, &table.sensitive)
    }

    /// Moves every group of this node that satisfies the model to a class of its own.
    fn visit(&mut self, node: u32, levels: &[u8]) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let groups = scratch.assign(
            &self.table.space,
            &self.groups.columns,
            self.groups.len(),
            levels,
        );
        scratch.count(&self.groups.counts, groups);
        if scratch.counts.iter().any(|&n| n >= self.model.smallest()) {
            scratch.sort(groups);
            let mut left = false;
            for group in 0..groups {
                let n = scratch.counts[group];
                if n >= self.model.smallest() {
                    scratch.load(&self.groups, group, self.table.domain);
                    left |= self.leave(node, group, n, &scratch);
                }
            }
            if left {
                self.compact();
            }
        }
        self.scratch = scratch;
    }

    fn leave(&mut self, node: u32, group: usize, n: u32, scratch: &Scratch) -> bool {
        let members =
            &scratch.order[scratch.offsets[group] as usize..scratch.offsets[group + 1] as usize];
        let class = &scratch.histogram;
        if self.good(class, n) && self.release(class, n) {
            for &member in members {
                self.node[self.members[member as usize] as usize] = node;
                self.groups.counts[member as usize] = 0;
            }
            return true;
        }
        if !self.allow_parts {
            return false;
        }
        for share in SHARES {
            let Some((part, m)) = self.part(class, n, share) else {
                return false;
            };
            if self.good(&part, m) && self.release(&part, m) {
                self.split(node, members, part);
                return true;
            }
        }
        false
    }

    /// A part of a group that can satisfy the model by itself.
    fn part(&self, class: &Histogram, n: u32, share: f64) -> Option<(Histogram, u32)> {
        let (rows, sensitive) = (self.table.rows, &self.table.sensitive);
        let rest = (&self.whole, self.left);
        let close = self.model.closest((class, n), rest, rows, sensitive, share);
        close.or_else(|| {
            // Smaller caps leave a more skewed rest, so only the largest is tried.
            let first = share >= SHARES[0];
            first.then(|| self.model.cap_values(class, rows, sensitive))?
        })
    }

    /// Whether the remaining records satisfy the model; where persons are counted, a sample of their pairs decides in
    /// most cases.
    fn rest_good(&mut self, n: u32) -> bool {
        let Some(persons) = self
            .model
            .persons
            .as_ref()
            .filter(|_| !persons::weighs(self.model))
        else {
            return self.good(&self.whole, n);
        };
        for again in [false, true] {
            if again {
                let present = |&&pair: &&u32| self.whole.counts[pair as usize] > 0;
                let pairs: Vec<u32> = self.whole.touched.iter().filter(present).copied().collect();
                let step = pairs.len() / SAMPLE + 1;
                self.sample = pairs.into_iter().step_by(step).collect();
            }
            let entry = |&pair: &u32| (pair, self.whole.counts[pair as usize]);
            let entries: Vec<persons::Entry> =
                self.sample.iter().map(entry).filter(|e| e.1 > 0).collect();
            if persons.plausible(self.model, &entries) {
                return true;
            }
        }
        self.good(&self.whole, n)
    }

    /// Removes a class from the rest if the rest still satisfies the model, or is small enough to be suppressed.
    fn release(&mut self, class: &Histogram, n: u32) -> bool {
        for &value in &class.touched {
            self.whole.counts[value as usize] -= class.counts[value as usize];
        }
        let rest = self.left - n;
        if rest == 0
            || !self.check_sensitive
            || u64::from(rest) <= self.limit
            || self.rest_good(rest)
        {
            self.left = rest;
            return true;
        }
        for &value in &class.touched {
            self.whole.counts[value as usize] += class.counts[value as usize];
        }
        false
    }

    /// Moves the counted values of a group, from any of its combinations.
    fn split(&mut self, node: u32, members: &[u32], mut part: Histogram) {
        for &member in members {
            let range = self.groups.starts[member as usize] as usize
                ..self.groups.starts[member as usize + 1] as usize;
            for at in range {
                let value = self.groups.values[at];
                let taken = self.groups.numbers[at].min(part.counts[value as usize]);
                if taken > 0 {
                    part.counts[value as usize] -= taken;
                    self.groups.numbers[at] -= taken;
                    self.groups.counts[member as usize] -= taken;
                    self.parts
                        .entry((self.members[member as usize], value))
                        .or_default()
                        .push((node, taken));
                }
            }
        }
    }

    fn compact(&mut self) {
        let stay: Vec<u32> = (0..self.members.len() as u32)
            .filter(|&m| self.groups.counts[m as usize] > 0)
            .collect();
        let counts = &self.whole.counts;
        self.whole
            .touched
            .retain(|&value| counts[value as usize] > 0);
        self.groups = gather(&self.groups, &stay);
        self.members = stay.iter().map(|&m| self.members[m as usize]).collect();
    }
}

/// The combinations in the order of their codes: the row order must not decide which group leaves first.
fn in_order(base: &Grouping) -> Vec<u32> {
    let mut members: Vec<u32> = (0..base.len() as u32).collect();
    let codes = |member: u32| base.columns.iter().map(move |c| c[member as usize]);
    members.sort_unstable_by(|&a, &b| codes(a).cmp(codes(b)));
    members
}

fn gather(from: &Grouping, chosen: &[u32]) -> Grouping {
    let mut made = Grouping {
        starts: vec![0],
        ..Grouping::default()
    };
    for column in &from.columns {
        made.columns
            .push(chosen.iter().map(|&g| column[g as usize]).collect());
    }
    for &g in chosen {
        made.counts.push(from.counts[g as usize]);
        for (value, n) in from.entries(g as usize).filter(|&(_, n)| n > 0) {
            made.values.push(value);
            made.numbers.push(n);
        }
        made.starts.push(made.values.len() as u32);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::super::cancellation::CancellationToken;
    use super::super::collapse::{SensitiveColumn, collapse};
    use super::super::loss::Kind;
    use super::super::model::Diversity;
    use super::super::space::{Attribute, Space};
    use super::*;

    /// Levels of the rows of one column with four leaves and their root, for k = 2 and l values.
    fn levels_of(codes: &[i32], values: &[i32], l: u32) -> Vec<i64> {
        let tables = vec![vec![0, 1, 2, 3], vec![0; 4]];
        let hierarchy = Attribute::new(tables, vec![vec![1; 4], vec![4]], 4).unwrap();
        let ills = SensitiveColumn {
            codes: values,
            domain: 2,
            tree: vec![],
        };
        let collapsed = collapse(Space::new(vec![hierarchy]), &[codes], vec![ills], None);
        let table = &collapsed.table;
        let model = Model {
            k: 2,
            diversity: Some(Diversity::Distinct(l)),
            closeness: None,
            persons: None,
        };
        let scorer = Scorer::new(Kind::Loss, &table.space, &table.base, &[1.0]);
        let task = Task {
            table,
            model: &model,
            scorer: &scorer,
            limit: 0,
            cancellation: &CancellationToken::default(),
        };
        let recoded = recode(&task, None, false);
        let pieces = recoded.of_rows(&collapsed.combinations, None, None);
        assert!(!pieces.suppressed.contains(&true));
        pieces.levels[0].clone()
    }

    #[test]
    fn groups_of_k_keep_their_values_and_other_records_are_generalized() {
        let levels = levels_of(&[0, 0, 1, 1, 2, 3], &[0; 6], 1);
        assert_eq!(levels, [0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn a_group_with_one_value_is_not_enough() {
        let levels = levels_of(&[0, 0, 1, 1, 2, 2], &[0, 0, 0, 1, 1, 1], 2);
        assert_eq!(levels, [1, 1, 0, 0, 1, 1]);
    }
}
