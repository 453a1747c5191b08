//! The privacy models as predicates on one class, in integers.

use super::entropy;
use super::grouping::Histogram;
use super::persons::{self, Persons};

/// A rational number from the policy.
#[derive(Clone, Copy)]
pub struct Ratio {
    pub num: u64,
    pub den: u64,
}

#[derive(Clone, Copy)]
pub enum Diversity {
    Distinct(u32),
    Entropy(Ratio),
    Recursive {
        c: Ratio,
        l: u32,
    },
    /// No value more often than one record in l.
    Frequency(Ratio),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    Equal,
    Ordered,
    Hierarchical,
}

/// One sensitive attribute: its range of codes and its distribution over the whole table.
pub struct Sensitive {
    pub start: usize,
    pub totals: Vec<u32>,
    /// `tree[level][leaf]`, for the hierarchical distance.
    pub tree: Vec<Vec<u32>>,
}

pub struct Model {
    pub k: u32,
    pub diversity: Option<Diversity>,
    pub closeness: Option<(Distance, Ratio)>,
    /// Set if persons have several records: the codes are then pairs of a person and the values.
    pub persons: Option<Persons>,
}

impl Model {
    /// Whether only class sizes matter.
    pub fn counts_only(&self) -> bool {
        self.persons.is_none() && self.diversity.is_none() && self.closeness.is_none()
    }

    /// Fewest records of a class that can satisfy the model.
    pub fn smallest(&self) -> u32 {
        self.k.max(self.fewest_values()).max(1)
    }

    /// Fewest distinct sensitive values: the monotone part of every l-diversity.
    pub fn fewest_values(&self) -> u32 {
        match self.diversity {
            None => 0,
            Some(Diversity::Distinct(l) | Diversity::Recursive { l, .. }) => l,
            Some(Diversity::Entropy(l) | Diversity::Frequency(l)) => l.num.div_ceil(l.den) as u32,
        }
    }

    /// The monotone part: sizes and numbers of distinct values.
    pub fn plausible(&self, class: &Histogram, n: u32, sensitive: &[Sensitive]) -> bool {
        if let Some(persons) = &self.persons {
            // If a part of a class satisfies this, the whole class does: a few pairs decide most cases.
            return n >= self.smallest()
                && (persons.plausible(self, &persons::some_entries(class))
                    || persons.plausible(self, &persons::entries(class)));
        }
        let fewest = self.fewest_values();
        n >= self.smallest()
            && (fewest <= 1 || sensitive.iter().all(|s| distinct(class, s) >= fewest))
    }

    /// The rest of the model, for classes that are `plausible`.
    pub fn holds(&self, class: &Histogram, n: u32, rows: u32, sensitive: &[Sensitive]) -> bool {
        if let Some(persons) = &self.persons {
            return !persons::weighs(self) || persons.holds(self, &persons::entries(class));
        }
        sensitive
            .iter()
            .all(|s| self.diverse(class, n, s) && self.close(class, n, rows, s))
    }

    /// Records of a violating class that no finer node can publish either.
    ///
    /// All of them if the monotone part fails. Under t-closeness with equal distance, the classes published at a finer
    /// node are each within t of the whole table, and so is their union (the distance is convex). So at most
    /// `largest_close` records of this class can ever be published. The hierarchical distance is at least the equal one
    /// divided by the height of the tree.
    pub fn unpublishable(
        &self,
        class: &Histogram,
        n: u32,
        rows: u32,
        sensitive: &[Sensitive],
    ) -> u32 {
        if !self.plausible(class, n, sensitive) {
            return n;
        }
        // Convexity holds for records: a person's weight moves between classes.
        let Some((distance, t)) = self.closeness.filter(|_| self.persons.is_none()) else {
            return 0;
        };
        let scale = |s: &Sensitive| match distance {
            Distance::Equal => 1,
            Distance::Hierarchical => s.tree.len().saturating_sub(1) as u64,
            Distance::Ordered => s.totals.len().saturating_sub(1) as u64,
        };
        let most = |s: &Sensitive| {
            largest_close(
                class,
                n,
                rows,
                s,
                Ratio {
                    num: t.num * scale(s),
                    den: t.den,
                },
                self.smallest(),
            )
        };
        let publishable = sensitive.iter().map(most).min().unwrap_or(n);
        if publishable < self.smallest() {
            n
        } else {
            n - publishable
        }
    }

    /// A part of a class within t of the whole table: `share` of the largest part by the equal distance, which bounds
    /// the other distances (one attribute).
    ///
    /// Each value first gets its share of the table; then the values that `rest` has too many of fill the part.
    pub fn closest(
        &self,
        class: (&Histogram, u32),
        rest: (&Histogram, u32),
        rows: u32,
        sensitive: &[Sensitive],
        share: f64,
    ) -> Option<(Histogram, u32)> {
        let ((class, n), (rest, left)) = (class, rest);
        let (Some((_, t)), [s]) = (self.closeness, sensitive) else {
            return None;
        };
        if self.persons.is_some() {
            return None;
        }
        let m = largest_close(class, n, rows, s, t, self.smallest());
        let m = (f64::from(m) * share) as u32;
        if m < self.smallest() {
            return None;
        }
        let mut part = Histogram {
            counts: vec![0; class.counts.len()],
            touched: class.touched.clone(),
        };
        let mut open = m;
        for &v in &class.touched {
            let share = u64::from(s.totals[v as usize]) * u64::from(m) / u64::from(rows);
            let taken = class.counts[v as usize].min(share as u32);
            part.counts[v as usize] = taken;
            open -= taken;
        }
        let surplus = |v: u32| {
            i64::from(rest.counts[v as usize]) * i64::from(rows)
                - i64::from(s.totals[v as usize]) * i64::from(left)
        };
        let mut fill = class.touched.clone();
        fill.sort_by_key(|&v| (std::cmp::Reverse(surplus(v)), v));
        for v in fill {
            let taken = (class.counts[v as usize] - part.counts[v as usize]).min(open);
            part.counts[v as usize] += taken;
            open -= taken;
        }
        Some((part, m))
    }

    /// The largest diverse part of a class among those with at most a fixed number of records per value.
    pub fn cap_values(
        &self,
        class: &Histogram,
        rows: u32,
        sensitive: &[Sensitive],
    ) -> Option<(Histogram, u32)> {
        let skewed = !matches!(self.diversity, None | Some(Diversity::Distinct(_)));
        if !skewed || sensitive.len() != 1 || self.closeness.is_some() || self.persons.is_some() {
            return None;
        }
        let part = |cap: u32| {
            let mut part = Histogram {
                counts: vec![0; class.counts.len()],
                touched: class.touched.clone(),
            };
            let mut n = 0;
            for &v in &class.touched {
                part.counts[v as usize] = class.counts[v as usize].min(cap);
                n += part.counts[v as usize];
            }
            (part, n)
        };
        let fits = |cap: u32| {
            let (part, n) = part(cap);
            self.plausible(&part, n, sensitive) && self.holds(&part, n, rows, sensitive)
        };
        let most = |v: &u32| class.counts[*v as usize];
        let cap = largest(0, class.touched.iter().map(most).max()?, fits);
        (cap > 0).then(|| part(cap))
    }

    fn diverse(&self, class: &Histogram, n: u32, s: &Sensitive) -> bool {
        let range = s.start..s.start + s.totals.len();
        let counts = class.counts[range].iter().copied().filter(|&c| c > 0);
        match self.diversity {
            None | Some(Diversity::Distinct(_)) => true,
            Some(Diversity::Entropy(l)) => entropy::diverse(counts, n, l.num, l.den),
            Some(Diversity::Frequency(l)) => {
                u128::from(counts.max().unwrap_or(0)) * u128::from(l.num)
                    <= u128::from(n) * u128::from(l.den)
            }
            Some(Diversity::Recursive { c, l }) => recursive(counts.collect(), c, l),
        }
    }

    fn close(&self, class: &Histogram, n: u32, rows: u32, s: &Sensitive) -> bool {
        let Some((distance, t)) = self.closeness else {
            return true;
        };
        // Every distance is (moved * scale of the ground distance) / (n * rows * longest path).
        let whole = i128::from(n) * i128::from(rows);
        let surplus = |v: usize| {
            i128::from(class.counts[s.start + v]) * i128::from(rows)
                - i128::from(s.totals[v]) * i128::from(n)
        };
        let (moved, longest) = match distance {
            Distance::Equal => (equal(class, n, rows, s), 2),
            Distance::Ordered => (
                ordered_distance(s.totals.len(), surplus),
                s.totals.len().saturating_sub(1) as i128,
            ),
            Distance::Hierarchical => (
                hierarchical_distance(&s.tree, s.totals.len(), surplus),
                s.tree.len().saturating_sub(1) as i128,
            ),
        };
        moved * i128::from(t.den) <= i128::from(t.num) * longest * whole
    }
}

fn distinct(class: &Histogram, s: &Sensitive) -> u32 {
    let end = s.start + s.totals.len();
    class
        .touched
        .iter()
        .filter(|&&v| (v as usize) >= s.start && (v as usize) < end && class.counts[v as usize] > 0)
        .count() as u32
}

fn recursive(mut counts: Vec<u32>, c: Ratio, l: u32) -> bool {
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let tail: u64 = counts
        .iter()
        .skip(l.max(1) as usize - 1)
        .map(|&f| u64::from(f))
        .sum();
    let first = counts.first().copied().unwrap_or(0);
    u128::from(first) * u128::from(c.den) < u128::from(c.num) * u128::from(tail)
}

/// Tables have fewer rows than this, so that twice a product of two counts fits 64 bits.
pub const MAX_ROWS: usize = 1 << 30;

/// Twice the mass to move, from the values of the class alone: all others are missing.
fn equal(class: &Histogram, n: u32, rows: u32, s: &Sensitive) -> i128 {
    let (n, rows) = (i64::from(n), i64::from(rows));
    let end = s.start + s.totals.len();
    let inside = class
        .touched
        .iter()
        .map(|&v| v as usize)
        .filter(|&v| v >= s.start && v < end);
    let shift = inside.map(|v| {
        let reference = i64::from(s.totals[v - s.start]) * n;
        (i64::from(class.counts[v]) * rows - reference).abs() - reference
    });
    i128::from(n * rows + shift.sum::<i64>())
}

pub fn ordered_distance(values: usize, surplus: impl Fn(usize) -> i128) -> i128 {
    let mut carried = 0i128;
    let mut moved = 0i128;
    for v in 0..values {
        carried += surplus(v);
        moved += carried.abs();
    }
    moved
}

/// Mass that meets at an inner node travels that node's level; the longest path is the height of the tree.
pub fn hierarchical_distance(
    tree: &[Vec<u32>],
    leaves: usize,
    surplus: impl Fn(usize) -> i128,
) -> i128 {
    let mut below: Vec<i128> = (0..leaves).map(surplus).collect();
    let mut parent_of: Vec<u32> = (0..leaves as u32).collect();
    let mut moved = 0i128;
    for (level, table) in tree.iter().enumerate().skip(1) {
        let width = table.iter().max().map_or(0, |&m| m as usize + 1);
        let mut nodes = vec![(0i128, 0i128); width];
        let mut counted = vec![false; below.len()];
        for leaf in 0..leaves {
            let child = parent_of[leaf] as usize;
            if !std::mem::replace(&mut counted[child], true) {
                let node = &mut nodes[table[leaf] as usize];
                node.0 += below[child].max(0);
                node.1 += (-below[child]).max(0);
            }
        }
        moved += level as i128
            * nodes
                .iter()
                .map(|&(more, less)| more.min(less))
                .sum::<i128>();
        below = nodes.iter().map(|&(more, less)| more - less).collect();
        parent_of.clone_from(table);
    }
    moved
}

/// The most records of a class that can lie within `t` (equal distance) of the whole table; 0 if fewer than `least`.
///
/// Of m records, a deficit against the table's share of a value cannot be made up: sum of max(0, q_v m - f_v) <= t m.
fn largest_close(class: &Histogram, n: u32, rows: u32, s: &Sensitive, t: Ratio, least: u32) -> u32 {
    let counts = &class.counts[s.start..s.start + s.totals.len()];
    let fits = |m: u32| {
        let (m, rows) = (i64::from(m), i64::from(rows));
        let gap = |(&total, &f): (&u32, &u32)| (i64::from(total) * m - i64::from(f) * rows).max(0);
        let missing: i64 = s.totals.iter().zip(counts).map(gap).sum();
        i128::from(missing) * i128::from(t.den) <= i128::from(t.num) * i128::from(m * rows)
    };
    if !fits(least) {
        return 0;
    }
    largest(least, n, fits)
}

/// The largest number up to `high` that fits; `low` fits, and fitting is monotone.
fn largest(mut low: u32, mut high: u32, fits: impl Fn(u32) -> bool) -> u32 {
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}
