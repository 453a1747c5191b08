//! EAC (Sun, Wang, Li, AI 2008): examines every cluster for the least extra information loss.
//!
//! Information loss of a cluster is its size times the sum over attributes of its normalized extent: the width over the
//! range of a numeric attribute, 1 if a categorical attribute is not constant. A cluster with 2 l distinct values or
//! more is split; one that falls below l is dispersed.

use super::classes::Table;
use super::enc::Enc;
use super::locate::{Locator, NotFound};

/// Per cluster, the least and the greatest code of each attribute.
pub struct Eac {
    pub scale: Vec<f64>,
    quasi: Vec<i32>,
    bounds: Vec<Vec<(i32, i32)>>,
}

impl Eac {
    /// `scale[a]` is 1/range of a numeric attribute and 0 for a categorical one.
    pub fn new(scale: Vec<f64>) -> Self {
        Eac {
            scale,
            quasi: Vec::new(),
            bounds: Vec::new(),
        }
    }

    pub fn admit(&mut self, row: u32, codes: &[i32]) {
        let (width, at) = (self.scale.len(), row as usize);
        if self.quasi.len() < (at + 1) * width {
            self.quasi.resize((at + 1) * width, 0);
        }
        self.quasi[at * width..(at + 1) * width].copy_from_slice(codes);
    }

    fn codes(&self, row: u32) -> &[i32] {
        let (width, at) = (self.scale.len(), row as usize);
        &self.quasi[at * width..(at + 1) * width]
    }

    fn extent(&self, attribute: usize, low: i32, high: i32) -> f64 {
        match self.scale[attribute] {
            0.0 => f64::from(u8::from(low != high)),
            scale => (f64::from(high) - f64::from(low)) * scale,
        }
    }

    /// Information loss that the row would add to the cluster.
    fn increase(&self, table: &Table, class: u32, codes: &[i32]) -> f64 {
        let (mut now, mut then) = (0.0, 0.0);
        for (a, (&(low, high), &code)) in self.bounds[class as usize].iter().zip(codes).enumerate()
        {
            now += self.extent(a, low, high);
            then += self.extent(a, low.min(code), high.max(code));
        }
        let size = f64::from(table.size(class));
        (size + 1.0) * then - size * now
    }

    fn measure(&mut self, table: &Table, class: u32) {
        let at = class as usize;
        if self.bounds.len() <= at {
            self.bounds.resize(at + 1, Vec::new());
        }
        let mut bounds = vec![(i32::MAX, i32::MIN); self.scale.len()];
        for &row in &table.classes[at].rows {
            for (bound, &code) in bounds.iter_mut().zip(self.codes(row)) {
                *bound = (bound.0.min(code), bound.1.max(code));
            }
        }
        self.bounds[at] = bounds;
    }

    pub fn insert(&mut self, table: &mut Table, fresh: &[u32], key: [u8; 32]) {
        let mut rows: Vec<u32> = table.withheld.iter().copied().collect();
        rows.extend_from_slice(fresh);
        if table.satisfied.is_empty() {
            rows = Enc {
                locator: Locator::Index,
                probes: 0,
            }
            .form(table, &rows, key);
            for class in 0..table.classes.len() as u32 {
                self.measure(table, class);
            }
        }
        for row in rows {
            self.place(table, row);
        }
    }

    /// Adds the row where it costs least, and splits the cluster if it is large enough.
    fn place(&mut self, table: &mut Table, row: u32) {
        let codes = self.codes(row).to_vec();
        let mut best: Option<(f64, u32)> = None;
        for &(_, class) in &table.satisfied {
            let cost = self.increase(table, class, &codes);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, class));
            }
        }
        let Some((_, class)) = best else {
            return table.withhold(row);
        };
        table.add(class, row);
        if table.classes[class as usize].values.len() >= 2 * table.l {
            self.split(table, class);
        }
        self.measure(table, class);
    }

    /// Moves every second value to a new cluster, so that both keep l distinct values.
    fn split(&mut self, table: &mut Table, class: u32) {
        let mut values: Vec<i32> = table.classes[class as usize]
            .values
            .iter()
            .map(|&(v, _)| v)
            .collect();
        values.sort_unstable();
        let leaving: Vec<i32> = values.into_iter().skip(1).step_by(2).collect();
        let rows: Vec<u32> = table.classes[class as usize]
            .rows
            .iter()
            .copied()
            .filter(|&r| leaving.binary_search(&table.value[r as usize]).is_ok())
            .collect();
        let mut rows = rows;
        rows.sort_unstable();
        let other = table.open();
        for row in rows {
            table.remove(class, row);
            table.add(other, row);
        }
        self.measure(table, other);
    }

    pub fn delete(&mut self, table: &mut Table, rows: &[u32]) -> Result<(), NotFound> {
        for &row in rows {
            // Located row by row: the deletion before may have moved this one.
            if let Some(class) = Locator::Index.host(table, row)? {
                table.remove(class, row);
                self.measure(table, class);
                if !table.is_satisfied(class) {
                    self.disperse(table, class);
                }
            }
            table.drop_row(row);
        }
        Ok(())
    }

    fn disperse(&mut self, table: &mut Table, class: u32) {
        let rows = table.dissolve(class);
        table.tally.relocated += rows.len();
        for row in rows {
            self.place(table, row);
        }
    }

    pub fn reload(&mut self, table: &Table) {
        for class in 0..table.classes.len() as u32 {
            self.measure(table, class);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with one numeric attribute of range 10 and one categorical.
    fn cluster(rows: &[(i32, [i32; 2])], l: usize) -> (Table, Eac) {
        let (mut table, mut eac) = (Table::new(l), Eac::new(vec![0.1, 0.0]));
        for (row, &(value, codes)) in rows.iter().enumerate() {
            table.admit(row as u32, value, row as u64 + 1);
            eac.admit(row as u32, &codes);
            eac.insert(&mut table, &[row as u32], [1; 32]);
        }
        (table, eac)
    }

    #[test]
    fn a_row_goes_where_it_costs_least() {
        let (mut table, mut eac) = (Table::new(2), Eac::new(vec![0.1, 0.0]));
        for (row, code) in [0, 1, 8, 9].into_iter().enumerate() {
            table.admit(row as u32, row as i32, row as u64 + 1);
            eac.admit(row as u32, &[code, 0]);
            if row % 2 == 0 {
                table.open();
            }
            table.add(row as u32 / 2, row as u32);
        }
        eac.reload(&table);
        table.admit(4, 7, 5);
        eac.admit(4, &[7, 0]);
        eac.insert(&mut table, &[4], [1; 32]);
        assert_eq!(table.class_of[4], 1);
    }

    #[test]
    fn a_cluster_with_twice_l_values_is_split() {
        let rows: Vec<_> = (0..4).map(|i| (i, [i, 0])).collect();
        let (table, _) = cluster(&rows, 2);
        let sizes: Vec<usize> = table.classes.iter().map(|c| c.values.len()).collect();
        assert_eq!(sizes, [2, 2]);
    }

    #[test]
    fn a_cluster_below_l_is_dispersed() {
        let rows: Vec<_> = (0..4).map(|i| (i, [i, 0])).collect();
        let (mut table, mut eac) = cluster(&rows, 2);
        eac.delete(&mut table, &[0]).unwrap();
        assert_eq!(table.satisfied.len(), 1);
        assert!(table.withheld.is_empty());
        eac.delete(&mut table, &[1, 2]).unwrap();
        assert_eq!(table.withheld.len(), 1);
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let eac = Eac::new(vec![1.0]);
        assert_eq!(eac.extent(0, i32::MIN, i32::MAX), f64::from(u32::MAX));
    }
}
