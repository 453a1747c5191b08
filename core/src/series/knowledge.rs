//! Public knowledge about updates: the candidate update set of every sensitive value, and intersections of such sets.

use std::collections::HashMap;

/// Candidate update sets; equal ones share an id, and intersections are added as they are formed.
pub struct Knowledge {
    /// Id of the set of each value.
    pub id: Vec<u32>,
    /// Sorted values of each set.
    pub sets: Vec<Vec<u32>>,
    /// The probability weight of each value of a set, parallel to `sets`.
    chances: Vec<Vec<f64>>,
    seen: HashMap<Vec<u32>, u32>,
    met: HashMap<(u32, u32), Option<u32>>,
}

impl Knowledge {
    /// Reads the sets from compressed rows; row v lists the values that v may become, v included.
    pub fn new(indptr: &[i64], indices: &[i32], weights: &[f64]) -> Self {
        let mut knowledge = Self {
            id: Vec::with_capacity(indptr.len() - 1),
            sets: Vec::new(),
            chances: Vec::new(),
            seen: HashMap::new(),
            met: HashMap::new(),
        };
        for row in indptr.windows(2) {
            let (a, b) = (row[0] as usize, row[1] as usize);
            let set: Vec<u32> = indices[a..b].iter().map(|&x| x as u32).collect();
            let id = knowledge.intern(set);
            knowledge.chances[id as usize]
                .iter_mut()
                .zip(&weights[a..b])
                .for_each(|(sum, w)| *sum += w);
            knowledge.id.push(id);
        }
        knowledge
    }

    fn intern(&mut self, set: Vec<u32>) -> u32 {
        let next = self.sets.len() as u32;
        let id = *self.seen.entry(set.clone()).or_insert(next);
        if id == next {
            self.chances.push(vec![0.0; set.len()]);
            self.sets.push(set);
        }
        id
    }

    /// The set of the values that two sets share, None if they share none.
    pub fn meet(&mut self, a: u32, b: u32) -> Option<u32> {
        if a == b {
            return Some(a);
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&known) = self.met.get(&pair) {
            return known;
        }
        let shared: Vec<u32> = self.sets[a as usize]
            .iter()
            .copied()
            .filter(|&v| self.covers(b, v))
            .collect();
        let meet = (!shared.is_empty()).then(|| self.intern_shared(a, b, shared));
        self.met.insert(pair, meet);
        meet
    }

    fn intern_shared(&mut self, a: u32, b: u32, values: Vec<u32>) -> u32 {
        // Likely if both say so; an existing set keeps its own weights.
        let chances: Vec<f64> = values
            .iter()
            .map(|&v| self.chance(a, v) * self.chance(b, v))
            .collect();
        let fresh = !self.seen.contains_key(&values);
        let id = self.intern(values);
        if fresh {
            self.chances[id as usize] = chances;
        }
        id
    }

    /// The share of two sets' values that both have (Jaccard), 0 if they share none.
    pub fn overlap(&mut self, a: u32, b: u32) -> f64 {
        let size = |id: u32| self.sets[id as usize].len();
        let both = size(a) + size(b);
        let shared = self.meet(a, b).map_or(0, |id| self.sets[id as usize].len());
        shared as f64 / (both - shared) as f64
    }

    /// Whether the set `a` contains all of the set `b`.
    pub fn contains(&mut self, a: u32, b: u32) -> bool {
        self.meet(a, b) == Some(b)
    }

    /// Relative probability of a value in the set `id`; equal for all values of a set if all updates are equally
    /// likely.
    pub fn chance(&self, id: u32, value: u32) -> f64 {
        let set = &self.sets[id as usize];
        set.binary_search(&value).map_or(0.0, |at| {
            let row = &self.chances[id as usize];
            row[at] / row.iter().copied().fold(f64::MIN_POSITIVE, f64::max)
        })
    }

    /// Whether the set `id` contains the value.
    pub fn covers(&self, id: u32, value: u32) -> bool {
        self.sets[id as usize].binary_search(&value).is_ok()
    }

    /// The component of the update graph of each set: sets of different components never intersect.
    pub fn components(&self) -> Vec<u32> {
        let mut root: Vec<u32> = (0..self.id.len() as u32).collect();
        for set in &self.sets {
            let all: Vec<u32> = set.iter().map(|&v| find(&root, v)).collect();
            let least = all.iter().copied().min().unwrap_or(0);
            all.iter().for_each(|&v| root[v as usize] = least);
        }
        self.sets.iter().map(|set| find(&root, set[0])).collect()
    }
}

fn find(root: &[u32], mut value: u32) -> u32 {
    while root[value as usize] != value {
        value = root[value as usize];
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Value 0 becomes 0 or 1, 1 and 2 stay, 3 becomes 2 or 3.
    fn knowledge() -> Knowledge {
        Knowledge::new(&[0, 2, 3, 4, 6], &[0, 1, 1, 2, 2, 3], &[1.0; 6])
    }

    #[test]
    fn sets_meet_in_their_intersection() {
        let mut known = knowledge();
        let ids = known.id.clone();
        assert_eq!(known.meet(ids[0], ids[1]), Some(ids[1]));
        assert_eq!(known.meet(ids[0], ids[3]), None);
        assert!(known.contains(ids[3], ids[2]) && !known.contains(ids[2], ids[3]));
        assert_eq!(known.overlap(ids[0], ids[1]), 0.5);
    }

    #[test]
    fn components_contain_the_sets_that_can_meet() {
        assert_eq!(knowledge().components(), [0, 0, 2, 2]);
    }
}
