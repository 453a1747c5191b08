//! Phase 1 of m-Distinct (Algorithm 2): one bucket per update set signature, and one per intersection of two
//! signatures.
//!
//! A signature implies a bucket if its sets can be matched one to one to entries that they contain. Records of the
//! signature may go there: values that fill the entries are a legal update instance of every signature that implies
//! them.

use std::collections::{BTreeMap, HashMap};

use super::bucket::Bucket;
use super::knowledge::Knowledge;
use super::matching::{best_plan, can_represent, has_perfect_matching};

/// Signatures of one class that are intersected with one another, those with the fewest records first: small buckets
/// need counterfeits. Pairs grow with the square of this, implication tests with its third power.
const TOGETHER: usize = 24;

/// Earlier groups: their values, one after the other.
pub struct Past<'a> {
    pub offsets: &'a [i64],
    pub values: &'a [i32],
}

impl Past<'_> {
    fn signature(&self, knowledge: &Knowledge, group: i32) -> Vec<u32> {
        let (a, b) = (
            self.offsets[group as usize],
            self.offsets[group as usize + 1],
        );
        let values = &self.values[a as usize..b as usize];
        let mut key: Vec<u32> = values.iter().map(|&v| knowledge.id[v as usize]).collect();
        key.sort_unstable();
        key
    }
}

/// All buckets, and the buckets that the records of each signature may go to (its own first).
pub struct Buckets {
    pub all: Vec<Bucket>,
    pub hosts: Vec<Vec<usize>>,
    /// Signature of each row, None for a record without a past.
    pub signature: Vec<Option<usize>>,
}

/// Creates the buckets of a table from the previous groups of its rows, -1 for a row without a past.
pub fn buckets(previous: &[i32], past: &Past, knowledge: &mut Knowledge) -> Buckets {
    let mut known: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut by_group: HashMap<i32, usize> = HashMap::new();
    let mut keys: Vec<Vec<u32>> = Vec::new();
    let mut signature = vec![None; previous.len()];
    for (row, &group) in previous.iter().enumerate().filter(|(_, g)| **g >= 0) {
        let at = *by_group.entry(group).or_insert_with(|| {
            let key = past.signature(knowledge, group);
            *known.entry(key.clone()).or_insert_with(|| {
                keys.push(key);
                keys.len() - 1
            })
        });
        signature[row] = Some(at);
    }
    let hosts = intersections(&mut keys, &mut known, &counts(&signature), knowledge);
    let all = keys
        .into_iter()
        .map(|key| Bucket::new(key, knowledge))
        .collect();
    Buckets {
        all,
        hosts,
        signature,
    }
}

fn counts(signature: &[Option<usize>]) -> Vec<usize> {
    let mut out = Vec::new();
    for &at in signature.iter().flatten() {
        if out.len() <= at {
            out.resize(at + 1, 0);
        }
        out[at] += 1;
    }
    out
}

/// Appends the intersections of signatures to `keys`; returns the buckets each signature implies.
fn intersections(
    keys: &mut Vec<Vec<u32>>,
    known: &mut HashMap<Vec<u32>, usize>,
    counts: &[usize],
    knowledge: &mut Knowledge,
) -> Vec<Vec<usize>> {
    let mut hosts: Vec<Vec<usize>> = (0..keys.len()).map(|at| vec![at]).collect();
    for class in classes(keys, counts, knowledge) {
        let mut made = class.clone();
        for (i, &a) in class.iter().enumerate() {
            for &b in &class[..i] {
                let Some(key) = best_plan(&keys[a].clone(), &keys[b].clone(), knowledge) else {
                    continue;
                };
                if can_represent(knowledge, &key) && !known.contains_key(&key) {
                    known.insert(key.clone(), keys.len());
                    made.push(keys.len());
                    keys.push(key);
                }
            }
        }
        for &a in &class {
            for &b in made.iter().filter(|&&b| b != a) {
                let (wide, narrow) = (&keys[a], &keys[b]);
                if has_perfect_matching(wide.len(), |i, j| knowledge.contains(wide[i], narrow[j])) {
                    hosts[a].push(b);
                }
            }
        }
    }
    hosts
}

/// Signatures that can intersect: sets of the same components of the update graph.
fn classes(keys: &[Vec<u32>], counts: &[usize], knowledge: &Knowledge) -> Vec<Vec<usize>> {
    let component = knowledge.components();
    let mut classes: BTreeMap<Vec<u32>, Vec<usize>> = BTreeMap::new();
    for (at, key) in keys.iter().enumerate() {
        let mut kind: Vec<u32> = key.iter().map(|&id| component[id as usize]).collect();
        kind.sort_unstable();
        classes.entry(kind).or_default().push(at);
    }
    let mut out: Vec<Vec<usize>> = classes.into_values().filter(|c| c.len() > 1).collect();
    for class in &mut out {
        class.sort_by_key(|&at| counts[at]);
        class.truncate(TOGETHER);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flu (0) may become pneumonia (1), which stays; dyspepsia (2) stays.
    fn knowledge() -> Knowledge {
        Knowledge::new(&[0, 2, 3, 4], &[0, 1, 1, 2], &[1.0; 4])
    }

    #[test]
    fn a_signature_implies_only_narrower_ones() {
        let past = Past {
            offsets: &[0, 2, 4],
            values: &[0, 2, 1, 2],
        };
        let found = buckets(&[0, 1, -1], &past, &mut knowledge());
        assert_eq!(found.all.len(), 2);
        assert_eq!(found.hosts, [vec![0, 1], vec![1]]);
        assert_eq!(found.signature, [Some(0), Some(1), None]);
    }

    #[test]
    fn two_signatures_share_a_bucket_of_their_intersection() {
        // 0 becomes 0, 1 or 2; 3 becomes 1, 2 or 3; 1 and 2 become one another; 4 stays.
        let indices = [0, 1, 2, 1, 2, 1, 2, 1, 2, 3, 4];
        let mut known = Knowledge::new(&[0, 3, 5, 7, 10, 11], &indices, &[1.0; 11]);
        let past = Past {
            offsets: &[0, 2, 4],
            values: &[0, 4, 3, 4],
        };
        let found = buckets(&[0, 1], &past, &mut known);
        assert_eq!(found.hosts, [vec![0, 2], vec![1, 2]]);
        assert_eq!(found.all[2].domain(), [1, 2, 4]);
    }
}
