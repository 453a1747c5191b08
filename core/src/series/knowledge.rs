//! What the public knows about updates: the candidate update set of every sensitive value.

use std::collections::HashMap;

/// Candidate update sets, values with the same set sharing one id.
pub struct Knowledge {
    /// Id of the set of each value.
    pub id: Vec<u32>,
    /// Sorted values of each set.
    pub sets: Vec<Vec<u32>>,
    /// How likely each value of a set is, from the values whose set it is; beside `sets`.
    pub chances: Vec<Vec<f64>>,
    /// Ids of the sets that contain a value.
    pub covering: Vec<Vec<u32>>,
}

impl Knowledge {
    /// Reads the sets from compressed rows; row v lists the values v may become, v included.
    pub fn new(indptr: &[i64], indices: &[i32], weights: &[f64]) -> Self {
        let size = indptr.len() - 1;
        let mut seen: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut sets: Vec<Vec<u32>> = Vec::new();
        let mut chances: Vec<Vec<f64>> = Vec::new();
        let mut id = Vec::with_capacity(size);
        for v in 0..size {
            let (a, b) = (indptr[v] as usize, indptr[v + 1] as usize);
            let set: Vec<u32> = indices[a..b].iter().map(|&x| x as u32).collect();
            let next = sets.len() as u32;
            let found = *seen.entry(set.clone()).or_insert(next);
            if found == next {
                chances.push(vec![0.0; set.len()]);
                sets.push(set);
            }
            chances[found as usize]
                .iter_mut()
                .zip(&weights[a..b])
                .for_each(|(sum, w)| *sum += w);
            id.push(found);
        }
        let mut covering = vec![Vec::new(); size];
        for (i, set) in sets.iter().enumerate() {
            for &v in set {
                covering[v as usize].push(i as u32);
            }
        }
        Self {
            id,
            sets,
            chances,
            covering,
        }
    }

    /// Relative chance of a value in the set `id`; equal for all values of a set where all updates are equally likely.
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
}
