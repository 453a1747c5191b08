//! The losses that a search can minimize, each with a lower bound that is known before a node is checked.
//!
//! Scores are compared in a form that is monotone under rounding (the product for the geometric mean) and converted to
//! the published number at the end. Every sum per attribute is an integer until its single division.

use super::grouping::Grouping;
use super::space::Space;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Geometric mean of the share of leaves that a value covers.
    Loss,
    /// Arithmetic mean of the same share.
    Ncp,
    Discernibility,
    /// Sum of squared class sizes, suppression ignored.
    DiscernibilityStar,
    ClassSize,
    Precision,
    Height,
    /// Non-uniform entropy.
    Entropy,
}

impl Kind {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "loss" => Self::Loss,
            "ncp" => Self::Ncp,
            "discernibility" => Self::Discernibility,
            "discernibility-star" => Self::DiscernibilityStar,
            "average_class_size" => Self::ClassSize,
            "precision" => Self::Precision,
            "height" => Self::Height,
            "entropy" => Self::Entropy,
            _ => return None,
        })
    }
}

/// The counts of one node's check.
#[derive(Default, Clone)]
pub struct Tally {
    pub suppressed: u64,
    /// Records that no finer node can publish either.
    pub unpublishable: u64,
    pub classes: u64,
    pub all_classes: u64,
    pub squares: u128,
    pub all_squares: u128,
    /// `marginals[pack][code]`: suppressed records.
    pub marginals: Vec<Vec<u64>>,
}

/// One level of one attribute, summed over the table.
struct Column {
    /// Leaves below each record's value, summed.
    leaves: u64,
    entropy: f64,
    /// (cost of suppressing a record here, records), cheapest first.
    room: Vec<(u64, u64)>,
}

/// Weights of a generalized and of a suppressed value: 1 and 1 unless the policy favors one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Balance {
    general: f64,
    suppressed: f64,
}

impl Balance {
    pub const EVEN: Self = Self {
        general: 1.0,
        suppressed: 1.0,
    };

    /// From one factor: at 0 suppression is free, at 1 generalization is, at 0.5 both cost the same.
    pub fn of(factor: f64) -> Self {
        Self {
            general: (2.0 - 2.0 * factor).min(1.0),
            suppressed: (2.0 * factor).min(1.0),
        }
    }
}

pub struct Scorer<'a> {
    pub kind: Kind,
    space: &'a Space,
    rows: u64,
    weights: Vec<f64>,
    columns: Vec<Vec<Column>>,
    balance: Balance,
}

/// Keeps a lower bound below the bounded score, whatever the rounding.
const SLACK: f64 = 1.0 - 1e-12;

fn floor10(x: f64) -> f64 {
    (x * 1e10).floor() / 1e10
}

impl<'a> Scorer<'a> {
    pub fn new(kind: Kind, space: &'a Space, base: &Grouping, weights: &[f64]) -> Self {
        let rows = base.counts.iter().map(|&c| u64::from(c)).sum();
        let top = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let leaf_counts = leaf_counts(space, base);
        let columns = space
            .attributes
            .iter()
            .zip(&leaf_counts)
            .map(|(attribute, counts)| {
                (0..attribute.levels())
                    .map(|level| column(attribute, counts, level))
                    .collect()
            });
        Self {
            kind,
            space,
            rows,
            weights: weights.iter().map(|w| w / top).collect(),
            columns: columns.collect(),
            balance: Balance::EVEN,
        }
    }

    /// The same scorer with suppression and generalization weighted against each other.
    pub fn with_balance(self, balance: Balance) -> Self {
        Self { balance, ..self }
    }

    /// A lower bound of the score of a node at which at least `suppressed` records are suppressed.
    pub fn bound(&self, levels: &[u8], suppressed: u64) -> f64 {
        let s = suppressed as f64;
        let n = self.rows as f64;
        match self.kind {
            Kind::Loss | Kind::Ncp => {
                let slack = if self.balance == Balance::EVEN {
                    1.0
                } else {
                    SLACK
                };
                self.shares(|j| {
                    let column = &self.columns[j][levels[j] as usize];
                    let room = cheapest(&column.room, suppressed);
                    slack * self.share(j, column.leaves, room, suppressed)
                })
            }
            // If suppression is cheaper, more of it may cost less.
            Kind::Precision => self.mean(|j| {
                self.precision(j, levels, n, s)
                    .min(self.precision(j, levels, n, n))
            }),
            Kind::Height => self.height(levels),
            Kind::Entropy => levels
                .iter()
                .enumerate()
                .map(|(j, &v)| {
                    let bits = self.balance.general * self.columns[j][v as usize].entropy;
                    self.weights[j] * floor10(bits)
                })
                .sum(),
            Kind::Discernibility => s * n,
            Kind::DiscernibilityStar | Kind::ClassSize => 0.0,
        }
    }

    /// Lower bound for every coarser node, from the classes of this one.
    pub fn bound_above(&self, tally: &Tally) -> f64 {
        match self.kind {
            Kind::Discernibility | Kind::DiscernibilityStar => tally.all_squares as f64,
            Kind::ClassSize => self.rows as f64 / self.class_count(tally.all_classes, true),
            _ => 0.0,
        }
    }

    pub fn score(&self, levels: &[u8], tally: &Tally) -> f64 {
        let (n, s) = (self.rows as f64, tally.suppressed as f64);
        match self.kind {
            Kind::Loss | Kind::Ncp => {
                let losses = self.suppressed_room(levels, tally);
                self.shares(|j| {
                    let leaves = self.columns[j][levels[j] as usize].leaves;
                    self.share(j, leaves, losses[j], tally.suppressed)
                })
            }
            Kind::Precision => self.mean(|j| self.precision(j, levels, n, s)),
            Kind::Height => self.height(levels),
            Kind::Discernibility => {
                (tally.squares + u128::from(tally.suppressed) * u128::from(self.rows)) as f64
            }
            Kind::DiscernibilityStar => tally.all_squares as f64,
            Kind::ClassSize => n / self.class_count(tally.classes, tally.suppressed > 0),
            Kind::Entropy => self.entropy(levels, tally),
        }
    }

    /// The published number of a score.
    pub fn publish(&self, score: f64) -> f64 {
        match self.kind {
            Kind::Loss => score.powf(1.0 / self.columns.len() as f64) - 1.0,
            _ => score,
        }
    }

    /// The share of the hierarchy that an attribute loses: `leaves` below the values of all records, and the `room`
    /// that suppressed records lose beyond their generalized value.
    fn share(&self, j: usize, leaves: u64, room: u64, suppressed: u64) -> f64 {
        let (n, size) = (self.rows as f64, self.space.attributes[j].size);
        let Balance {
            general: g,
            suppressed: s,
        } = self.balance;
        if size <= 1 {
            0.0
        } else if self.balance == Balance::EVEN {
            (leaves + room - self.rows) as f64 / (n * (size as f64 - 1.0))
        } else {
            let gone = (suppressed * size - room) as f64;
            let spent = g * (leaves as f64 - n) + (1.0 - g) * gone + s * room as f64;
            (spent / (n * (size as f64 - g))).max(0.0)
        }
    }

    /// Weighted number of classes; all suppressed records are one more. Fewer classes are worse, so the weights change
    /// roles.
    fn class_count(&self, classes: u64, suppressed: bool) -> f64 {
        let more = if suppressed {
            self.balance.general
        } else {
            0.0
        };
        let count = self.balance.suppressed * classes as f64 + more;
        if count > 0.0 { count } else { 1.0 } // where classes weigh nothing, the table is as good as one
    }

    fn shares(&self, share: impl Fn(usize) -> f64) -> f64 {
        let values = (0..self.columns.len()).map(|j| match self.kind {
            Kind::Ncp => self.weights[j] * share(j),
            _ => self.weights[j] * floor10(share(j)),
        });
        match self.kind {
            Kind::Loss => values.fold(1.0, |product, v| product * (v + 1.0)),
            _ => values.sum::<f64>() / self.columns.len() as f64,
        }
    }

    fn mean(&self, value: impl Fn(usize) -> f64) -> f64 {
        (0..self.columns.len()).map(value).sum::<f64>() / self.columns.len() as f64
    }

    fn precision(&self, j: usize, levels: &[u8], n: f64, s: f64) -> f64 {
        let steps = (self.columns[j].len() - 1) as f64;
        let share = if steps > 0.0 {
            f64::from(levels[j]) / steps
        } else {
            0.0
        };
        let Balance {
            general,
            suppressed,
        } = self.balance;
        self.weights[j] * ((n - s) * share * general + s * suppressed) / n
    }

    fn height(&self, levels: &[u8]) -> f64 {
        levels
            .iter()
            .zip(&self.weights)
            .map(|(&v, w)| f64::from(v) * w)
            .sum()
    }

    /// Per attribute: what its suppressed records lose beyond their generalized value.
    fn suppressed_room(&self, levels: &[u8], tally: &Tally) -> Vec<u64> {
        let mut losses = vec![0u64; levels.len()];
        for (pack, marginal) in self.space.packs.iter().zip(&tally.marginals) {
            for (code, &n) in marginal.iter().enumerate().filter(|&(_, &n)| n > 0) {
                for &member in &pack.members {
                    let (a, level) = (&self.space.attributes[member.0], levels[member.0] as usize);
                    let leaves =
                        a.leaves[level][a.tables[level][self.space.leaf(member, code)] as usize];
                    losses[member.0] += n * (a.size - leaves);
                }
            }
        }
        losses
    }

    fn entropy(&self, levels: &[u8], tally: &Tally) -> f64 {
        let mut values: Vec<f64> = levels
            .iter()
            .enumerate()
            .map(|(j, &v)| self.balance.general * self.columns[j][v as usize].entropy)
            .collect();
        let s = tally.suppressed as f64;
        for (pack, marginal) in self.space.packs.iter().zip(&tally.marginals) {
            for &member in &pack.members {
                let (a, level) = (&self.space.attributes[member.0], levels[member.0] as usize);
                let mut nodes = vec![0u64; a.widths[level]];
                for (code, &n) in marginal.iter().enumerate() {
                    nodes[a.tables[level][self.space.leaf(member, code)] as usize] += n;
                }
                let parts = nodes
                    .iter()
                    .filter(|&&c| c > 0)
                    .map(|&c| c as f64 * (c as f64 / s).log2());
                values[member.0] -= self.balance.suppressed * parts.sum::<f64>();
            }
        }
        values
            .iter()
            .zip(&self.weights)
            .map(|(&v, w)| w * floor10(v))
            .sum()
    }
}

fn column(a: &super::space::Attribute, counts: &[u64], level: usize) -> Column {
    let mut nodes = vec![0u64; a.widths[level]];
    for (leaf, &n) in counts.iter().enumerate() {
        nodes[a.tables[level][leaf] as usize] += n;
    }
    let leaves = nodes
        .iter()
        .zip(&a.leaves[level])
        .map(|(&n, &l)| n * l)
        .sum();
    let parts = counts.iter().enumerate().filter(|&(_, &n)| n > 0);
    let bits = parts.map(|(leaf, &n)| {
        n as f64 * (n as f64 / nodes[a.tables[level][leaf] as usize] as f64).log2()
    });
    let entropy = -bits.sum::<f64>();
    let mut room: Vec<(u64, u64)> = nodes
        .iter()
        .zip(&a.leaves[level])
        .map(|(&n, &l)| (a.size - l, n))
        .collect();
    room.sort_unstable();
    Column {
        leaves,
        entropy: entropy.max(0.0),
        room,
    }
}

/// Cost of suppressing the cheapest `records`.
fn cheapest(room: &[(u64, u64)], mut records: u64) -> u64 {
    let mut cost = 0;
    for &(each, n) in room {
        let taken = n.min(records);
        cost += taken * each;
        records -= taken;
        if records == 0 {
            break;
        }
    }
    cost
}

fn leaf_counts(space: &Space, base: &Grouping) -> Vec<Vec<u64>> {
    let mut counts: Vec<Vec<u64>> = space
        .attributes
        .iter()
        .map(|a| vec![0; a.domain()])
        .collect();
    for (pack, column) in space.packs.iter().zip(&base.columns) {
        let mut codes = vec![0u64; pack.domain];
        for (&code, &n) in column.iter().zip(&base.counts) {
            codes[code as usize] += u64::from(n);
        }
        for (code, &n) in codes.iter().enumerate() {
            for &member in &pack.members {
                counts[member.0][space.leaf(member, code)] += n;
            }
        }
    }
    counts
}
