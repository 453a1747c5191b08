//! Boxes of generalized values: the regions of CASTLE's clusters, and their loss (equations 3 to 5 of the paper).

/// A hierarchy on codes: per level, the node of every leaf and the loss of every node.
#[derive(Default, Clone)]
pub struct Hierarchy {
    pub tables: Vec<Vec<u32>>,
    pub losses: Vec<Vec<f64>>,
}

impl Hierarchy {
    /// Number of leaves.
    pub fn leaves(&self) -> usize {
        self.tables.first().map_or(0, Vec::len)
    }

    /// Whether every level has a node for every leaf and a loss for every node.
    pub fn is_complete(&self) -> bool {
        let leaves = self.leaves();
        let level = |(table, losses): (&Vec<u32>, &Vec<f64>)| {
            table.len() == leaves && table.iter().all(|&node| (node as usize) < losses.len())
        };
        self.tables.len() == self.losses.len() && self.tables.iter().zip(&self.losses).all(level)
    }
}

/// The attributes of the stream: categories first, then numbers with the range so far.
#[derive(Default)]
pub struct Space {
    pub hierarchies: Vec<Hierarchy>,
    pub low: Vec<f64>,
    pub high: Vec<f64>,
}

/// One tuple's quasi-identifiers.
#[derive(Clone)]
pub struct Point {
    pub leaves: Vec<u32>,
    pub numbers: Vec<f64>,
}

/// A generalization: per category a leaf and the number of levels above it, per number an interval.
#[derive(Clone)]
pub struct Region {
    pub leaves: Vec<u32>,
    pub levels: Vec<u32>,
    pub low: Vec<f64>,
    pub high: Vec<f64>,
}

impl Region {
    pub fn around(point: &Point) -> Self {
        Region {
            leaves: point.leaves.clone(),
            levels: vec![0; point.leaves.len()],
            low: point.numbers.clone(),
            high: point.numbers.clone(),
        }
    }
}

impl Space {
    pub fn see(&mut self, point: &Point) {
        for (i, &x) in point.numbers.iter().enumerate() {
            self.low[i] = self.low[i].min(x);
            self.high[i] = self.high[i].max(x);
        }
    }

    /// The lowest level, from `from` up, at which two leaves share a node.
    fn meet(&self, attribute: usize, from: u32, a: u32, b: u32) -> u32 {
        let tables = &self.hierarchies[attribute].tables;
        let mut level = from as usize;
        while level + 1 < tables.len() && tables[level][a as usize] != tables[level][b as usize] {
            level += 1;
        }
        level as u32
    }

    fn node_loss(&self, attribute: usize, level: u32, leaf: u32) -> f64 {
        let hierarchy = &self.hierarchies[attribute];
        hierarchy.losses[level as usize][hierarchy.tables[level as usize][leaf as usize] as usize]
    }

    fn width_loss(&self, attribute: usize, low: f64, high: f64) -> f64 {
        let range = self.high[attribute] - self.low[attribute];
        if range > 0.0 {
            (high - low) / range
        } else {
            0.0
        }
    }

    fn average(&self, sum: f64) -> f64 {
        sum / (self.hierarchies.len() + self.low.len()).max(1) as f64
    }

    pub fn loss(&self, region: &Region) -> f64 {
        let mut sum = 0.0;
        for (i, (&level, &leaf)) in region.levels.iter().zip(&region.leaves).enumerate() {
            sum += self.node_loss(i, level, leaf);
        }
        for (i, (&low, &high)) in region.low.iter().zip(&region.high).enumerate() {
            sum += self.width_loss(i, low, high);
        }
        self.average(sum)
    }

    /// The loss after adding a point.
    pub fn loss_with(&self, region: &Region, point: &Point) -> f64 {
        let mut sum = 0.0;
        for (i, &leaf) in point.leaves.iter().enumerate() {
            let level = self.meet(i, region.levels[i], region.leaves[i], leaf);
            sum += self.node_loss(i, level, leaf);
        }
        for (i, &x) in point.numbers.iter().enumerate() {
            sum += self.width_loss(i, region.low[i].min(x), region.high[i].max(x));
        }
        self.average(sum)
    }

    pub fn extend(&self, region: &mut Region, point: &Point) {
        for (i, &leaf) in point.leaves.iter().enumerate() {
            region.levels[i] = self.meet(i, region.levels[i], region.leaves[i], leaf);
        }
        for (i, &x) in point.numbers.iter().enumerate() {
            region.low[i] = region.low[i].min(x);
            region.high[i] = region.high[i].max(x);
        }
    }

    pub fn join(&self, a: &Region, b: &Region) -> Region {
        let mut out = a.clone();
        for i in 0..a.leaves.len() {
            let from = a.levels[i].max(b.levels[i]);
            out.levels[i] = self.meet(i, from, a.leaves[i], b.leaves[i]);
        }
        for i in 0..a.low.len() {
            out.low[i] = a.low[i].min(b.low[i]);
            out.high[i] = a.high[i].max(b.high[i]);
        }
        out
    }

    pub fn contains(&self, region: &Region, point: &Point) -> bool {
        let same = |i: usize| {
            let table = &self.hierarchies[i].tables[region.levels[i] as usize];
            table[region.leaves[i] as usize] == table[point.leaves[i] as usize]
        };
        let within =
            |i: usize| region.low[i] <= point.numbers[i] && point.numbers[i] <= region.high[i];
        // Numbers first: an interval is cheaper to check than two nodes of a hierarchy.
        (0..point.numbers.len()).all(within) && (0..point.leaves.len()).all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One category of four leaves in pairs, and one number from 0 to 10.
    fn space() -> Space {
        Space {
            hierarchies: vec![Hierarchy {
                tables: vec![vec![0, 1, 2, 3], vec![0, 0, 1, 1], vec![0; 4]],
                losses: vec![vec![0.0; 4], vec![0.5; 2], vec![1.0]],
            }],
            low: vec![0.0],
            high: vec![10.0],
        }
    }

    fn point(leaf: u32, number: f64) -> Point {
        Point {
            leaves: vec![leaf],
            numbers: vec![number],
        }
    }

    #[test]
    fn a_region_grows_to_the_lowest_common_node() {
        let space = space();
        let mut region = Region::around(&point(0, 2.0));
        assert_eq!(space.loss(&region), 0.0);
        let expected = space.loss_with(&region, &point(1, 4.0));
        space.extend(&mut region, &point(1, 4.0));
        assert_eq!(region.levels, [1]);
        assert_eq!(space.loss(&region), expected);
        assert_eq!(expected, (0.5 + 0.2) / 2.0);
        assert!(space.contains(&region, &point(0, 3.0)));
        assert!(!space.contains(&region, &point(2, 3.0)));
        assert!(!space.contains(&region, &point(0, 4.5)));
    }

    #[test]
    fn a_join_covers_both_regions() {
        let space = space();
        let (a, b) = (point(0, 2.0), point(3, 9.0));
        let joined = space.join(&Region::around(&a), &Region::around(&b));
        assert!(space.contains(&joined, &a) && space.contains(&joined, &b));
        assert_eq!(space.loss(&joined), (1.0 + 0.7) / 2.0);
        let again = space.join(&joined, &Region::around(&a));
        assert_eq!(again.levels, joined.levels);
    }

    #[test]
    fn a_hierarchy_with_a_node_without_loss_is_incomplete() {
        let hierarchy = |losses| Hierarchy {
            tables: vec![vec![0, 1]],
            losses: vec![losses],
        };
        assert!(hierarchy(vec![0.0; 2]).is_complete());
        assert!(!hierarchy(vec![0.0]).is_complete());
    }
}
