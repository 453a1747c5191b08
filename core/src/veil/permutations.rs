//! Public permutations of a domain, from a public seed: random ones, and depth-first ones of a value hierarchy.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::random::shuffle;

/// `count` random permutations of `size` values.
pub fn random(size: usize, count: usize, seed: [u8; 32]) -> Vec<Vec<u16>> {
    let mut rng = ChaCha20Rng::from_seed(seed);
    let mut permutation = || {
        let mut values: Vec<u16> = (0..size).map(|value| value as u16).collect();
        shuffle(&mut values, &mut rng);
        values
    };
    (0..count).map(|_| permutation()).collect()
}

/// `count` depth-first permutations, with the children of every node in random order.
///
/// `levels[d][v]` is the node of value v at level d, nearest parents first. Every node lies in one node of the next level.
/// One random rank per node orders the children of every parent uniformly. Sorting by the ranks from the root down keeps
/// the values of every node together.
pub fn hierarchy(levels: &[Vec<u32>], size: usize, count: usize, seed: [u8; 32]) -> Vec<Vec<u16>> {
    let mut rng = ChaCha20Rng::from_seed(seed);
    let mut ranks = |nodes: usize| {
        let mut ranks: Vec<u32> = (0..nodes as u32).collect();
        shuffle(&mut ranks, &mut rng);
        ranks
    };
    let mut permutation = || {
        let leaves = ranks(size);
        let nodes: Vec<Vec<u32>> = levels.iter().map(|level| ranks(width(level))).collect();
        let mut values: Vec<u16> = (0..size).map(|value| value as u16).collect();
        values.sort_by_cached_key(|&value| {
            let value = usize::from(value);
            let above = levels.iter().zip(&nodes).rev();
            let mut path: Vec<u32> = above
                .map(|(level, rank)| rank[level[value] as usize])
                .collect();
            path.push(leaves[value]);
            path
        });
        values
    };
    (0..count).map(|_| permutation()).collect()
}

/// The number of node ids that a level uses.
pub fn width(level: &[u32]) -> usize {
    level.iter().max().map_or(0, |&node| node as usize + 1)
}

/// Whether every node of a level lies in one node of the next level.
pub fn is_nested(levels: &[Vec<u32>]) -> bool {
    levels.windows(2).all(|pair| {
        let mut above = vec![None; width(&pair[0])];
        pair[0]
            .iter()
            .zip(&pair[1])
            .all(|(&node, &parent)| *above[node as usize].get_or_insert(parent) == parent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_cover_the_domain_and_differ() {
        let permutations = random(50, 64, [1; 32]);
        for permutation in &permutations {
            let mut sorted = permutation.clone();
            sorted.sort_unstable();
            assert!(
                sorted
                    .iter()
                    .enumerate()
                    .all(|(i, &value)| i == usize::from(value))
            );
        }
        assert_ne!(permutations[0], permutations[1]);
    }

    #[test]
    fn the_values_of_a_node_stay_together() {
        let levels = vec![vec![0, 1, 0, 2, 1, 2, 3], vec![0, 1, 0, 0, 1, 0, 1]];
        assert!(is_nested(&levels));
        for permutation in hierarchy(&levels, 7, 64, [2; 32]) {
            for level in &levels {
                let mut nodes: Vec<u32> =
                    permutation.iter().map(|&v| level[usize::from(v)]).collect();
                nodes.dedup();
                assert_eq!(nodes.len(), width(level));
            }
        }
    }

    #[test]
    fn a_node_under_two_parents_is_not_nested() {
        assert!(!is_nested(&[vec![0, 0, 1], vec![0, 1, 1]]));
    }
}
