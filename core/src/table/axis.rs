//! A quasi-identifier in Mondrian: how its values are published, what that costs, and where it can be cut.

/// One level of a tree: the node above each code, and the cost of publishing each node.
pub struct Level {
    pub nodes: Vec<u32>,
    pub costs: Vec<f64>,
}

/// How a part of the table is published.
pub enum Shape {
    /// By its interval; codes are in the order of the values, `scale[code]` is a position between 0 and 1.
    Ordered(Vec<f64>),
    /// By the set of its values; each further value costs this much.
    Set(f64),
    /// By the lowest node that all its values share. Level 0 has the values themselves.
    Tree(Vec<Level>),
}

/// One quasi-identifier.
pub struct Axis {
    pub codes: Vec<u32>,
    pub domain: usize,
    pub shape: Shape,
    /// Code 0 is the missing value, which is published next to the interval and costs as much as one more value.
    pub missing: bool,
    pub weight: f64,
}

/// A value and its records in a part.
pub type Entry = (u32, u32);

/// What the values of a part have in common, updated value by value.
#[derive(Clone, Copy)]
pub struct Extent {
    low: u32,
    high: u32,
    values: u32,
    level: u32,
    /// Whether the part has missing values next to its interval.
    gap: bool,
}

/// A cut of a part: records above a code, or with a code on a list, go to the second piece.
#[derive(Clone)]
pub enum Cut {
    Above(u32),
    Among(Vec<u32>),
}

impl Extent {
    pub const EMPTY: Self = Self {
        low: u32::MAX,
        high: 0,
        values: 0,
        level: 0,
        gap: false,
    };
}

impl Axis {
    /// Adds a value; `new` says whether the part did not have it yet (sets count their values).
    #[inline]
    pub fn grow(&self, extent: &mut Extent, code: u32, new: bool) {
        if let Shape::Tree(levels) = &self.shape {
            if extent.low == u32::MAX {
                extent.low = code;
            }
            let differs =
                |level: &Level| level.nodes[code as usize] != level.nodes[extent.low as usize];
            while differs(&levels[extent.level as usize]) {
                extent.level += 1;
            }
            return;
        }
        extent.values += u32::from(new);
        if self.missing && code == 0 {
            extent.gap = true;
            return;
        }
        extent.low = extent.low.min(code);
        extent.high = extent.high.max(code);
    }

    /// The loss of a record that is published with this extent, from 0 to the weight.
    pub fn cost(&self, extent: &Extent) -> f64 {
        if extent.low == u32::MAX {
            return 0.0;
        }
        let cost = match &self.shape {
            Shape::Tree(levels) => {
                let level = &levels[extent.level as usize];
                level.costs[level.nodes[extent.low as usize] as usize]
            }
            Shape::Ordered(scale) => {
                let span = scale[extent.high as usize] - scale[extent.low as usize];
                let missing_cost = 1.0 / (self.domain.max(2) - 1) as f64;
                if extent.gap {
                    (span + missing_cost).min(1.0)
                } else {
                    span
                }
            }
            Shape::Set(step) => f64::from(extent.values - 1) * step,
        };
        self.weight * cost
    }

    pub fn counts_values(&self) -> bool {
        matches!(self.shape, Shape::Set(_))
    }

    fn extent<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>) -> Extent {
        let mut extent = Extent::EMPTY;
        for &(code, _) in entries {
            self.grow(&mut extent, code, true);
        }
        extent
    }

    /// The best few cuts of a part that leave `least` records on both sides, with their gains on this axis, best first.
    pub fn cuts(&self, entries: &[Entry], least: u32) -> Vec<(f64, Cut)> {
        if entries.len() < 2 {
            return Vec::new();
        }
        let mut cuts = match &self.shape {
            Shape::Ordered(_) => self.neighbor_cuts(entries, least),
            Shape::Set(_) => self.frequent_cuts(entries, least),
            Shape::Tree(levels) => self.children(levels, entries, least),
        };
        // Sorting is stable: of equal gains the first wins.
        cuts.sort_by(|a, b| b.0.total_cmp(&a.0));
        cuts.truncate(CUTS);
        cuts
    }

    /// Cuts between two neighboring values.
    fn neighbor_cuts(&self, entries: &[Entry], least: u32) -> Vec<(f64, Cut)> {
        let n: u32 = entries.iter().map(|e| e.1).sum();
        let cost = |part: &[Entry]| {
            let gap = self.missing && part[0].0 == 0;
            let known = &part[usize::from(gap)..];
            self.cost(&Extent {
                low: known.first().map_or(u32::MAX, |e| e.0),
                high: known.last().map_or(0, |e| e.0),
                gap,
                ..Extent::EMPTY
            })
        };
        let whole = f64::from(n) * cost(entries);
        let (mut cuts, mut below) = (Vec::new(), 0);
        for at in 1..entries.len() {
            below += entries[at - 1].1;
            if below.min(n - below) >= least {
                let (left, right) = entries.split_at(at);
                let pieces = f64::from(below) * cost(left) + f64::from(n - below) * cost(right);
                cuts.push((whole - pieces, Cut::Above(left[at - 1].0)));
            }
        }
        cuts
    }

    /// Cuts the most frequent values from the others: of all sets of this size they gain most.
    fn frequent_cuts(&self, entries: &[Entry], least: u32) -> Vec<(f64, Cut)> {
        let n: u32 = entries.iter().map(|e| e.1).sum();
        let mut order = entries.to_vec();
        order.sort_by_key(|&(code, count)| (std::cmp::Reverse(count), code));
        let cost = |from: usize, to: usize| {
            self.cost(&Extent {
                low: 0,
                values: (to - from) as u32,
                ..Extent::EMPTY
            })
        };
        let whole = f64::from(n) * cost(0, order.len());
        let (mut cuts, mut taken) = (Vec::new(), 0);
        for at in 1..order.len() {
            taken += order[at - 1].1;
            if taken.min(n - taken) >= least {
                let pieces =
                    f64::from(taken) * cost(0, at) + f64::from(n - taken) * cost(at, order.len());
                cuts.push((whole - pieces, at));
            }
        }
        cuts.sort_by(|a, b| b.0.total_cmp(&a.0));
        let codes = |at: usize| order[..at].iter().map(|e| e.0).collect();
        let cuts = cuts.into_iter().take(CUTS);
        cuts.map(|(gain, at)| (gain, Cut::Among(codes(at))))
            .collect()
    }

    /// Cuts one child of the common node from the others, which stay at the node until they are cut themselves.
    fn children(&self, levels: &[Level], entries: &[Entry], least: u32) -> Vec<(f64, Cut)> {
        let n: u32 = entries.iter().map(|e| e.1).sum();
        let common = self.extent(entries);
        let below = &levels[common.level as usize - 1].nodes;
        let mut order = entries.to_vec();
        order.sort_by_key(|&(code, _)| (below[code as usize], code));
        let child = |a: &Entry, b: &Entry| below[a.0 as usize] == below[b.0 as usize];
        let two = order.chunk_by(child).nth(2).is_none();
        let mut cuts = Vec::new();
        for own in order.chunk_by(child) {
            let taken: u32 = own.iter().map(|e| e.1).sum();
            if taken.min(n - taken) < least {
                continue;
            }
            let others = if two {
                self.extent(order.iter().filter(|e| !child(e, &own[0])))
            } else {
                common
            };
            let pieces = f64::from(taken) * self.cost(&self.extent(own))
                + f64::from(n - taken) * self.cost(&others);
            let codes = own.iter().map(|e| e.0).collect();
            cuts.push((
                f64::from(n) * self.cost(&common) - pieces,
                Cut::Among(codes),
            ));
        }
        cuts
    }
}

/// Cuts tried per axis.
const CUTS: usize = 8;
