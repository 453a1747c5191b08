//! Range count queries on a release, thousands at once.
//!
//! A group contributes its record count (counterfeits excluded) times the probability that a record, uniform over the
//! group's ranges and values, falls into the query.

use rayon::prelude::*;

/// Integers of the range [low, high] that lie inside [from, to].
#[inline]
fn overlap(low: i32, high: i32, from: i32, to: i32) -> f64 {
    f64::from((high.min(to) - low.max(from) + 1).max(0))
}

/// The groups of a release: a box of `axes` ranges each, and their values one after the other.
pub struct Groups<'a> {
    axes: usize,
    low: &'a [i32],
    high: &'a [i32],
    /// Records of a group divided by the integers in its box: the records per integer point.
    density: Vec<f64>,
    offsets: &'a [i64],
    values: &'a [i32],
}

impl<'a> Groups<'a> {
    pub fn new(
        axes: usize,
        (low, high): (&'a [i32], &'a [i32]),
        records: &[i32],
        (offsets, values): (&'a [i64], &'a [i32]),
    ) -> Result<Self, &'static str> {
        let boxes = low.len() == records.len() * axes && high.len() == low.len();
        let ends = offsets.last().copied().unwrap_or(0) as usize == values.len();
        if !boxes || !ends || !offsets.is_sorted() || offsets.len() != records.len() + 1 {
            return Err("a group lacks its box, its records or its values");
        }
        Ok(Groups {
            axes,
            low,
            high,
            density: densities(low, high, records, axes),
            offsets,
            values,
        })
    }

    fn estimate(&self, from: &[i32], to: &[i32]) -> f64 {
        (0..self.density.len())
            .map(|g| self.share(g, from, to))
            .sum()
    }

    fn share(&self, group: usize, from: &[i32], to: &[i32]) -> f64 {
        let mut part = self.density[group];
        for axis in 0..self.axes {
            let at = group * self.axes + axis;
            part *= overlap(self.low[at], self.high[at], from[axis], to[axis]);
            if part == 0.0 {
                return 0.0;
            }
        }
        let values = &self.values[self.offsets[group] as usize..self.offsets[group + 1] as usize];
        let (first, last) = (from[self.axes], to[self.axes]);
        let hits = values.iter().filter(|&&v| v >= first && v <= last).count();
        part * hits as f64 / values.len() as f64
    }
}

fn densities(low: &[i32], high: &[i32], records: &[i32], axes: usize) -> Vec<f64> {
    let points = |g: usize| {
        (g * axes..(g + 1) * axes)
            .map(|at| f64::from(high[at] - low[at] + 1))
            .product::<f64>()
    };
    records
        .iter()
        .enumerate()
        .map(|(g, &n)| f64::from(n) / points(g))
        .collect()
}

/// Estimated count of each query; a query is one closed range per axis and one of sensitive codes, last.
pub fn estimate(groups: &Groups, from: &[i32], to: &[i32]) -> Vec<f64> {
    let width = groups.axes + 1;
    from.par_chunks(width)
        .zip(to.par_chunks(width))
        .map(|(f, t)| groups.estimate(f, t))
        .collect()
}

/// Exact count of each query on records of `width` codes, the sensitive one last.
pub fn count(records: &[i32], width: usize, from: &[i32], to: &[i32]) -> Vec<i64> {
    let inside =
        |row: &[i32], f: &[i32], t: &[i32]| (0..width).all(|a| row[a] >= f[a] && row[a] <= t[a]);
    let hits = |(f, t): (&[i32], &[i32])| {
        let rows = records.chunks(width);
        rows.filter(|row| inside(row, f, t)).count() as i64
    };
    from.par_chunks(width)
        .zip(to.par_chunks(width))
        .map(hits)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_answers_in_proportion_to_the_overlap() {
        // Four records spread over [0, 9]; half of their values lie in the query.
        let groups = Groups::new(1, (&[0], &[9]), &[4], (&[0, 2], &[1, 5])).unwrap();
        assert_eq!(estimate(&groups, &[0, 0], &[9, 9]), [4.0]);
        assert_eq!(estimate(&groups, &[0, 0], &[4, 1]), [1.0]);
        assert_eq!(estimate(&groups, &[10, 0], &[20, 9]), [0.0]);
    }

    #[test]
    fn records_are_counted_one_by_one() {
        let records = [0, 1, 5, 1, 5, 2];
        assert_eq!(count(&records, 2, &[0, 0, 5, 2], &[9, 1, 9, 2]), [2, 1]);
    }

    #[test]
    fn groups_without_a_box_or_values_are_rejected() {
        assert!(Groups::new(1, (&[0], &[9]), &[4, 4], (&[0, 2], &[1, 5])).is_err());
        assert!(Groups::new(1, (&[0], &[9]), &[4], (&[0, 3], &[1, 5])).is_err());
    }
}
