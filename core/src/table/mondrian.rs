//! Mondrian (LeFevre, DeWitt, Ramakrishnan, ICDE 2006): cut the table along one attribute after the other.
//!
//! An ordered attribute is cut in two next to the median, an attribute with a tree at the children of the lowest common
//! node. A cut is made if every part satisfies the model; the attribute with the widest range is tried first. Strict cuts
//! keep equal values together; relaxed ones share out the records at the median.
//!
//! Records lie row by row and move with every cut, so that a part is always one stretch of memory.

use super::collapse::{SensitiveColumn, totals};
use super::grouping::Histogram;
use super::model::{Model, Sensitive};
use super::persons;

/// One quasi-identifier: codes in the order of its values.
pub struct Axis<'a> {
    pub codes: &'a [i32],
    /// Position of each code on a scale from 0 to 1.
    pub scale: Vec<f64>,
    /// `tree[level][code]`, empty for ordered attributes.
    pub tree: Vec<Vec<u32>>,
}

/// A record: its codes on every axis, then its row number.
type Record<'a> = &'a [u32];

struct Cutter<'a> {
    axes: Vec<Axis<'a>>,
    values: Vec<&'a [i32]>,
    model: &'a Model,
    sensitive: Vec<Sensitive>,
    domain: usize,
    rows: u32,
    relaxed: bool,
}

/// Parts with more records than this are cut side by side.
const PARALLEL: usize = 2048;
/// Cuts tried per attribute, from the median outward.
const CUTS: usize = 8;

/// Sizes of the finished parts, from left to right.
type Sizes = Vec<u32>;

impl Cutter<'_> {
    fn stride(&self) -> usize {
        self.axes.len() + 1
    }

    fn records<'r>(&self, part: &'r [u32]) -> impl Iterator<Item = Record<'r>> + use<'r> {
        part.chunks_exact(self.stride())
    }

    /// Cuts until nothing can be cut; orders the records by part and gives the sizes.
    fn cut(&self, part: &mut [u32]) -> Sizes {
        let n = part.len() / self.stride();
        let Some(sizes) = self.split(part) else {
            return vec![n as u32];
        };
        let mut pieces = Vec::with_capacity(sizes.len());
        let mut rest = part;
        for size in sizes {
            let (piece, after) = rest.split_at_mut(size * self.stride());
            pieces.push(piece);
            rest = after;
        }
        if n <= PARALLEL {
            return pieces
                .into_iter()
                .flat_map(|piece| self.cut(piece))
                .collect();
        }
        let last = pieces.pop().expect("a cut has two parts");
        let (mut done, more) = rayon::join(
            || {
                pieces
                    .into_iter()
                    .flat_map(|piece| self.cut(piece))
                    .collect::<Sizes>()
            },
            || self.cut(last),
        );
        done.extend(more);
        done
    }

    /// Makes the first cut that is allowed, widest attribute first; gives the sizes of its parts.
    fn split(&self, part: &mut [u32]) -> Option<Vec<usize>> {
        if part.len() / self.stride() < 2 * self.model.smallest() as usize {
            return None;
        }
        let ranges = self.ranges(part);
        let mut order: Vec<(f64, usize)> = ranges
            .iter()
            .enumerate()
            .map(|(j, &range)| (self.width(j, range, part), j))
            .collect();
        order.retain(|&(width, _)| width > 0.0);
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        order.into_iter().find_map(
            |(_, j)| match (self.axes[j].tree.is_empty(), self.relaxed) {
                (false, _) => self.split_tree(j, part),
                (true, true) => self.split_relaxed(j, part),
                (true, false) => self.split_strict(j, ranges[j], part),
            },
        )
    }

    fn ranges(&self, part: &[u32]) -> Vec<(u32, u32)> {
        let mut ranges = vec![(u32::MAX, 0); self.axes.len()];
        for record in self.records(part) {
            for (range, &code) in ranges.iter_mut().zip(record) {
                range.0 = range.0.min(code);
                range.1 = range.1.max(code);
            }
        }
        ranges
    }

    /// Share of its attribute that a part covers.
    fn width(&self, j: usize, (low, high): (u32, u32), part: &[u32]) -> f64 {
        let axis = &self.axes[j];
        if axis.tree.is_empty() {
            axis.scale[high as usize] - axis.scale[low as usize]
        } else if low == high {
            0.0
        } else {
            // The height of the common node; a leaf has none.
            self.common(j, part) as f64 / (axis.tree.len() - 1) as f64
        }
    }

    /// Lowest level at which all values of a part share a node.
    fn common(&self, j: usize, part: &[u32]) -> usize {
        let tree = &self.axes[j].tree;
        let first = part[j] as usize;
        let together = |table: &Vec<u32>| {
            self.records(part)
                .all(|r| table[r[j] as usize] == table[first])
        };
        tree.iter().position(together).unwrap_or(tree.len() - 1)
    }

    fn split_strict(
        &self,
        j: usize,
        (low, high): (u32, u32),
        part: &mut [u32],
    ) -> Option<Vec<usize>> {
        let mut counts = vec![0usize; (high - low + 1) as usize];
        self.records(part)
            .for_each(|r| counts[(r[j] - low) as usize] += 1);
        let n = part.len() / self.stride();
        let (mut cuts, mut below) = (Vec::new(), 0);
        for (at, &count) in counts.iter().enumerate() {
            below += count;
            if count > 0 && below.min(n - below) >= self.model.smallest() as usize {
                cuts.push((below.abs_diff(n - below), at as u32));
            }
        }
        cuts.sort_unstable();
        cuts.into_iter()
            .take(CUTS)
            .find_map(|(_, at)| self.arrange(part, 2, |r| usize::from(r[j] > low + at)))
    }

    /// Halves the records in the order of their values, then of their rows.
    fn split_relaxed(&self, j: usize, part: &mut [u32]) -> Option<Vec<usize>> {
        let row = self.axes.len();
        let mut keys: Vec<(u32, u32)> = self.records(part).map(|r| (r[j], r[row])).collect();
        let half = keys.len() / 2;
        let middle = *keys.select_nth_unstable(half).1;
        self.arrange(part, 2, |r| usize::from((r[j], r[row]) >= middle))
    }

    fn split_tree(&self, j: usize, part: &mut [u32]) -> Option<Vec<usize>> {
        let children = &self.axes[j].tree[self.common(j, part) - 1];
        let width = children.iter().max().map_or(0, |&m| m as usize + 1);
        self.arrange(part, width, |r| children[r[j] as usize] as usize)
    }

    /// Orders the records by piece if every piece satisfies the model; gives the sizes of those that are not empty.
    fn arrange(
        &self,
        part: &mut [u32],
        pieces: usize,
        piece: impl Fn(Record<'_>) -> usize,
    ) -> Option<Vec<usize>> {
        let mut sizes = vec![0usize; pieces];
        self.records(part).for_each(|r| sizes[piece(r)] += 1);
        let smallest = self.model.smallest() as usize;
        if sizes.iter().any(|&n| n > 0 && n < smallest) || !self.diverse(part, &sizes, &piece) {
            return None;
        }
        let mut next: Vec<usize> = sizes
            .iter()
            .scan(0, |end, &n| Some(std::mem::replace(end, *end + n)))
            .collect();
        let (stride, old) = (self.stride(), part.to_vec());
        for record in old.chunks_exact(stride) {
            let at = &mut next[piece(record)];
            part[*at * stride..(*at + 1) * stride].copy_from_slice(record);
            *at += 1;
        }
        sizes.retain(|&n| n > 0);
        Some(sizes)
    }

    /// Whether the sensitive values of every piece satisfy the model.
    fn diverse(&self, part: &[u32], sizes: &[usize], piece: &impl Fn(Record<'_>) -> usize) -> bool {
        if self.model.counts_only() {
            return true;
        }
        if self.model.persons.is_some() {
            return self.peopled(part, sizes, piece);
        }
        let mut classes: Vec<Histogram> = sizes.iter().map(|_| Histogram::default()).collect();
        classes
            .iter_mut()
            .for_each(|class| class.reset(self.domain));
        for record in self.records(part) {
            let class = &mut classes[piece(record)];
            for (values, s) in self.values.iter().zip(&self.sensitive) {
                class.add(
                    s.start as u32 + values[record[self.axes.len()] as usize] as u32,
                    1,
                );
            }
        }
        let filled = classes.iter().zip(sizes).filter(|&(_, &n)| n > 0);
        filled.into_iter().all(|(class, &n)| {
            self.model.plausible(class, n as u32, &self.sensitive)
                && self
                    .model
                    .holds(class, n as u32, self.rows, &self.sensitive)
        })
    }
}

impl Cutter<'_> {
    /// The same by persons: pieces are lists of pairs, since a histogram over all pairs would be nearly empty.
    fn peopled(&self, part: &[u32], sizes: &[usize], piece: &impl Fn(Record<'_>) -> usize) -> bool {
        let Some(persons) = &self.model.persons else {
            return false;
        };
        let mut pieces: Vec<Vec<u32>> = vec![Vec::new(); sizes.len()];
        for record in self.records(part) {
            let row = record[self.axes.len()] as usize;
            pieces[piece(record)].push(self.values[0][row] as u32);
        }
        let filled = pieces.into_iter().filter(|pairs| !pairs.is_empty());
        filled.into_iter().all(|pairs| {
            let class = persons::counted(pairs);
            persons.plausible(self.model, &class) && persons.holds(self.model, &class)
        })
    }
}

/// Class of each row, counted from 0, and whether the whole table satisfies the model (if not, nothing is cut).
pub fn mondrian(
    axes: Vec<Axis<'_>>,
    sensitive: Vec<SensitiveColumn<'_>>,
    model: &Model,
    relaxed: bool,
) -> (Vec<i64>, bool) {
    let rows = axes.first().map_or(0, |axis| axis.codes.len());
    let cutter = Cutter {
        axes,
        values: sensitive.iter().map(|s| s.codes).collect(),
        model,
        domain: sensitive.iter().map(|s| s.domain).sum(),
        sensitive: totals(sensitive, &|_| 1),
        rows: rows as u32,
        relaxed,
    };
    classes(&cutter, rows)
}

fn classes(cutter: &Cutter<'_>, rows: usize) -> (Vec<i64>, bool) {
    let mut records = Vec::with_capacity(rows * cutter.stride());
    for row in 0..rows {
        records.extend(cutter.axes.iter().map(|axis| axis.codes[row] as u32));
        records.push(row as u32);
    }
    let mut classes = vec![0i64; rows];
    if rows < cutter.model.smallest() as usize || !cutter.diverse(&records, &[rows], &|_| 0) {
        return (classes, false);
    }
    let sizes = cutter.cut(&mut records);
    let mut rest = cutter.records(&records);
    for (class, &n) in sizes.iter().enumerate() {
        rest.by_ref()
            .take(n as usize)
            .for_each(|r| classes[r[cutter.axes.len()] as usize] = class as i64);
    }
    (classes, true)
}

#[cfg(test)]
mod tests {
    use super::super::model::Diversity;
    use super::*;

    fn classes_of(codes: &[i32], ills: &[i32], k: u32, l: u32, relaxed: bool) -> (Vec<i64>, bool) {
        let domain = codes.iter().max().map_or(0, |&c| c as usize + 1);
        let axis = Axis {
            codes,
            scale: (0..domain).map(|c| c as f64).collect(),
            tree: vec![],
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
        mondrian(vec![axis], vec![ills], &model, relaxed)
    }

    #[test]
    fn an_ordered_column_is_cut_into_neighbours() {
        let ills = [0; 8];
        let (classes, holds) = classes_of(&[7, 6, 5, 4, 3, 2, 1, 0], &ills, 2, 1, false);
        assert!(holds);
        assert_eq!(classes, [3, 3, 2, 2, 1, 1, 0, 0]);
    }

    #[test]
    fn no_cut_leaves_a_part_below_l() {
        // At the median the left part would have one value only.
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
    fn only_relaxed_cuts_share_out_equal_values() {
        let (strict, _) = classes_of(&[0; 8], &[0; 8], 2, 1, false);
        assert!(strict.iter().all(|&c| c == 0));
        let (relaxed, _) = classes_of(&[1, 1, 1, 1, 1, 1, 1, 0], &[0; 8], 2, 1, true);
        assert!(relaxed.iter().any(|&c| c > 0));
    }
}
