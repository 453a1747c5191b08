//! What the public knows about updates: the candidate update set of every sensitive value.

use std::collections::HashMap;

/// Candidate update sets, values with the same set sharing one id.
pub struct Knowledge {
    /// Id of the set of each value.
    pub id: Vec<u32>,
    /// Sorted values of each set.
    pub sets: Vec<Vec<u32>>,
    /// Ids of the sets that contain a value.
    pub covering: Vec<Vec<u32>>,
}

impl Knowledge {
    /// Reads the sets from compressed rows; row v lists the values v may become, v included.
    pub fn new(indptr: &[i64], indices: &[i32]) -> Self {
        let size = indptr.len() - 1;
        let mut seen: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut sets: Vec<Vec<u32>> = Vec::new();
        let mut id = Vec::with_capacity(size);
        for v in 0..size {
            let row = &indices[indptr[v] as usize..indptr[v + 1] as usize];
            let mut set: Vec<u32> = row.iter().map(|&x| x as u32).collect();
            set.sort_unstable();
            let next = sets.len() as u32;
            let found = *seen.entry(set.clone()).or_insert(next);
            if found == next {
                sets.push(set);
            }
            id.push(found);
        }
        let mut covering = vec![Vec::new(); size];
        for (i, set) in sets.iter().enumerate() {
            for &v in set {
                covering[v as usize].push(i as u32);
            }
        }
        Self { id, sets, covering }
    }

    /// Whether the set `id` contains the value.
    pub fn covers(&self, id: u32, value: u32) -> bool {
        self.sets[id as usize].binary_search(&value).is_ok()
    }
}
