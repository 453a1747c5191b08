//! What a published line and kernel make possible: sets of first events, and steps from one set to the next.

use std::collections::HashSet;

use super::hasher::Build;

/// A kernel as a matrix: the targets of value v are starts[v] .. starts[v + 1], sorted.
pub struct Matrix {
    starts: Vec<usize>,
    targets: Vec<u16>,
}

impl Matrix {
    /// None if the numbers are no kernel of this many values.
    pub fn new(values: usize, starts: Vec<usize>, targets: Vec<u16>) -> Option<Self> {
        let rises = starts.is_sorted() && starts.first() == Some(&0);
        if starts.len() != values + 1 || !rises || starts.last() != Some(&targets.len()) {
            return None;
        }
        let in_domain = |span: &[usize]| {
            let targets = &targets[span[0]..span[1]];
            targets.is_sorted_by(|a, b| a < b)
                && targets.last().is_none_or(|&v| usize::from(v) < values)
        };
        let valid = starts.windows(2).all(in_domain);
        valid.then_some(Matrix { starts, targets })
    }

    fn allows(&self, from: u16, to: u16) -> bool {
        let value = usize::from(from);
        let targets = &self.targets[self.starts[value]..self.starts[value + 1]];
        targets.binary_search(&to).is_ok()
    }
}

/// A kernel with few parameters: what each value may do in each stratum of the prior.
pub struct Shares {
    /// Strata x values.
    flags: Vec<u8>,
    parents: Vec<u32>,
}

/// The value is a candidate in the stratum.
const OFFERED: u8 = 1;
/// The value may stay.
const STAYS: u8 = 2;
/// The value may go to its siblings.
const LEAVES: u8 = 4;
/// The value may go to all others as well.
const ANYWHERE: u8 = 8;

impl Shares {
    /// None if the number of flags does not match strata and values.
    pub fn new(strata: usize, flags: Vec<u8>, parents: Vec<u32>) -> Option<Self> {
        (flags.len() == strata * parents.len()).then_some(Shares { flags, parents })
    }

    fn allows(&self, stratum: usize, from: u16, to: u16) -> bool {
        let (from, to) = (usize::from(from), usize::from(to));
        let flags = &self.flags[stratum * self.parents.len()..];
        if from == to {
            return flags[from] & STAYS > 0;
        }
        let near = flags[from] & ANYWHERE > 0 || self.parents[from] == self.parents[to];
        near && flags[from] & LEAVES > 0 && flags[to] & OFFERED > 0
    }
}

/// How values may follow one another.
pub enum Steps {
    /// Without a kernel no value changes.
    Identity,
    Matrix(Matrix),
    Shares(Shares),
}

impl Steps {
    fn allow(&self, stratum: usize, from: u16, to: u16) -> bool {
        match self {
            Steps::Identity => from == to,
            Steps::Matrix(matrix) => matrix.allows(from, to),
            Steps::Shares(shares) => shares.allows(stratum, from, to),
        }
    }

    /// Whether the slots before and after can be matched one to one.
    fn can_lead(&self, stratum: usize, before: &[u16], after: &[u16]) -> bool {
        // In most cases each slot can go to its neighbor in canonical order, and no search is needed.
        let mut pairs = before.iter().zip(after);
        pairs.all(|(&from, &to)| self.allow(stratum, from, to)) || {
            let may = |slot: usize, to: usize| self.allow(stratum, before[slot], after[to]);
            let mut owners = vec![None; after.len()];
            (0..before.len())
                .all(|slot| place(slot, &may, &mut owners, &mut vec![false; after.len()]))
        }
    }
}

/// Gives a slot a target of its own and moves other slots where necessary (augmenting paths).
fn place(
    slot: usize,
    may: &impl Fn(usize, usize) -> bool,
    owners: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    for to in 0..owners.len() {
        if tried[to] || !may(slot, to) {
            continue;
        }
        tried[to] = true;
        if owners[to].is_none_or(|owner| place(owner, may, owners, tried)) {
            owners[to] = Some(slot);
            return true;
        }
    }
    false
}

pub struct Support {
    pub values: usize,
    /// One odd number per slot: the sum of the products with the codes identifies a set.
    pub factors: Vec<u64>,
    /// Per stratum the ids of its sets, once they are taught.
    pub sets: Vec<Option<HashSet<u64, Build>>>,
    pub steps: Steps,
}

impl Support {
    /// Two sets have the same id with a probability of 2^-60.
    fn name(&self, set: &[u16]) -> u64 {
        let products = set.iter().zip(&self.factors);
        products.fold(0, |sum, (&code, &factor)| {
            sum.wrapping_add((u64::from(code) + 1).wrapping_mul(factor))
        })
    }

    /// Whether a stratum can give a set.
    pub fn can_give(&self, stratum: usize, set: &[u16]) -> bool {
        let name = self.name(set);
        self.sets[stratum]
            .as_ref()
            .is_some_and(|sets| sets.contains(&name))
    }

    /// Whether a set can follow another in a stratum.
    pub fn can_follow(&self, stratum: usize, before: &[u16], after: &[u16]) -> bool {
        self.steps.can_lead(stratum, before, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_needs_a_perfect_matching() {
        // 0 goes to 1, 1 stays or goes to 2, 2 stays.
        let steps = Steps::Matrix(Matrix::new(3, vec![0, 1, 3, 4], vec![1, 1, 2, 2]).unwrap());
        assert!(steps.can_lead(0, &[0, 1], &[1, 2]) && steps.can_lead(0, &[1, 1], &[1, 2]));
        assert!(steps.can_lead(0, &[0, 2], &[1, 2]) && !steps.can_lead(0, &[0, 2], &[2, 2]));
        assert!(!steps.can_lead(0, &[0, 0], &[0, 1]) && !steps.can_lead(0, &[1, 2], &[1, 1]));
    }

    #[test]
    fn slots_swap_targets_where_necessary() {
        // 0 goes only to 2, 1 goes to 0 or 2: the neighbors in order do not match, the others do.
        let steps = Steps::Matrix(Matrix::new(3, vec![0, 1, 3, 3], vec![2, 0, 2]).unwrap());
        assert!(steps.can_lead(0, &[0, 1], &[0, 2]) && !steps.can_lead(0, &[0, 0], &[0, 2]));
    }

    #[test]
    fn shares_depend_on_the_stratum() {
        // 0 and 1 are siblings; in the second stratum 2 is omitted, and 0 goes only to its sibling.
        let all = OFFERED | STAYS | LEAVES | ANYWHERE;
        let flags = vec![all, all, all, all & !ANYWHERE, all, STAYS];
        let steps = Steps::Shares(Shares::new(2, flags, vec![0, 0, 1]).unwrap());
        assert!(steps.can_lead(0, &[0, 0], &[1, 2]) && !steps.can_lead(1, &[0, 0], &[1, 2]));
        assert!(steps.can_lead(1, &[0, 1], &[0, 0]) && !steps.can_lead(1, &[0, 2], &[0, 1]));
        assert!(Shares::new(2, vec![0; 5], vec![0, 0, 1]).is_none());
    }

    #[test]
    fn an_invalid_kernel_is_rejected() {
        assert!(Matrix::new(2, vec![0, 1], vec![1]).is_none());
        assert!(Matrix::new(2, vec![0, 1, 1], vec![2]).is_none());
        assert!(Matrix::new(2, vec![0, 2, 2], vec![1, 0]).is_none());
        assert!(Matrix::new(2, vec![0, 2, 1], vec![0]).is_none());
    }
}
