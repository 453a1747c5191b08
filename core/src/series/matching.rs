//! Matchings between entries, values and sets: distinct representatives by augmenting paths (Kuhn), and the
//! intersection plan with the highest score by the Hungarian method.

use super::knowledge::Knowledge;

/// Whether `n` items on the left can be matched to `n` on the right; `fits` says which pairs are allowed.
pub fn has_perfect_matching(n: usize, mut fits: impl FnMut(usize, usize) -> bool) -> bool {
    let mut owner = vec![usize::MAX; n];
    (0..n).all(|left| augment(left, &mut owner, &mut vec![false; n], &mut fits))
}

fn augment(
    left: usize,
    owner: &mut [usize],
    visited: &mut [bool],
    fits: &mut impl FnMut(usize, usize) -> bool,
) -> bool {
    for right in 0..owner.len() {
        if visited[right] || !fits(left, right) {
            continue;
        }
        visited[right] = true;
        if owner[right] == usize::MAX || augment(owner[right], owner, visited, fits) {
            owner[right] = left;
            return true;
        }
    }
    false
}

struct Search<'a> {
    knowledge: &'a Knowledge,
    entries: &'a [u32],
    banned: u32,
    owner: Vec<(u32, usize)>,
    visited: Vec<u32>,
}

impl Search<'_> {
    fn augment(&mut self, entry: usize) -> bool {
        let knowledge = self.knowledge;
        for &value in &knowledge.sets[self.entries[entry] as usize] {
            if value == self.banned || self.visited.contains(&value) {
                continue;
            }
            self.visited.push(value);
            match self.owner.iter().position(|&(v, _)| v == value) {
                None => {
                    self.owner.push((value, entry));
                    return true;
                }
                Some(at) => {
                    let other = self.owner[at].1;
                    if self.augment(other) {
                        let at = self.owner.iter().position(|&(v, _)| v == value);
                        self.owner[at.expect("an owned value keeps an owner")].1 = entry;
                        return true;
                    }
                }
            }
        }
        false
    }
}

/// Whether all entries but `taken` can be represented by different values, none of them `value`.
///
/// Otherwise a record could take an entry and leave the others without a legal completion.
pub fn can_represent_others(
    knowledge: &Knowledge,
    entries: &[u32],
    taken: usize,
    value: u32,
) -> bool {
    let mut search = Search {
        knowledge,
        entries,
        banned: value,
        owner: Vec::new(),
        visited: Vec::new(),
    };
    (0..entries.len()).filter(|&e| e != taken).all(|e| {
        search.visited.clear();
        search.augment(e)
    })
}

/// Whether all entries can be represented by different values.
pub fn can_represent(knowledge: &Knowledge, entries: &[u32]) -> bool {
    can_represent_others(knowledge, entries, usize::MAX, u32::MAX)
}

/// The intersection plan of two signatures with the highest share of overlapped elements, as sorted set ids.
///
/// None if the signatures do not intersect: every set of one must meet a set of its own in the other.
pub fn best_plan(left: &[u32], right: &[u32], knowledge: &mut Knowledge) -> Option<Vec<u32>> {
    if left.len() != right.len() {
        return None;
    }
    let n = left.len();
    if !has_perfect_matching(n, |i, j| knowledge.meet(left[i], right[j]).is_some()) {
        return None;
    }
    // A pair that does not meet costs more than any plan without such a pair.
    let far = 2.0 * n as f64;
    let mut cost = vec![0.0; n * n];
    for (i, &a) in left.iter().enumerate() {
        for (j, &b) in right.iter().enumerate() {
            let share = knowledge.overlap(a, b);
            cost[i * n + j] = if share > 0.0 { 1.0 - share } else { far };
        }
    }
    let mut plan: Vec<u32> = cheapest(&cost, n)
        .into_iter()
        .enumerate()
        .filter_map(|(i, j)| knowledge.meet(left[i], right[j]))
        .collect();
    plan.sort_unstable();
    (plan.len() == n).then_some(plan)
}

/// The column of each row in the cheapest assignment (Hungarian method with potentials).
fn cheapest(cost: &[f64], n: usize) -> Vec<usize> {
    // Row and column 0 are helpers; column j means j - 1.
    let (mut u, mut v) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    let mut owner = vec![0usize; n + 1];
    for row in 1..=n {
        owner[0] = row;
        let mut at = 0;
        let mut least = vec![f64::INFINITY; n + 1];
        let mut way = vec![0usize; n + 1];
        let mut used = vec![false; n + 1];
        while owner[at] != 0 {
            used[at] = true;
            let (mut step, mut next) = (f64::INFINITY, 0);
            for j in (1..=n).filter(|&j| !used[j]) {
                let reduced = cost[(owner[at] - 1) * n + j - 1] - u[owner[at]] - v[j];
                if reduced < least[j] {
                    (least[j], way[j]) = (reduced, at);
                }
                if least[j] < step {
                    (step, next) = (least[j], j);
                }
            }
            for j in 0..=n {
                if used[j] {
                    u[owner[j]] += step;
                    v[j] -= step;
                } else {
                    least[j] -= step;
                }
            }
            at = next;
        }
        while at != 0 {
            owner[at] = owner[way[at]];
            at = way[at];
        }
    }
    let mut columns = vec![0; n];
    (1..=n).for_each(|j| columns[owner[j] - 1] = j - 1);
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_must_leave_a_value_for_every_other_entry() {
        // Value 0 stays 0; value 1 becomes 0 or 1.
        let knowledge = Knowledge::new(&[0, 1, 3], &[0, 0, 1], &[1.0, 0.5, 0.5]);
        let entries = [knowledge.id[0], knowledge.id[1]];
        assert!(!can_represent_others(&knowledge, &entries, 1, 0));
        assert!(can_represent_others(&knowledge, &entries, 1, 1));
        assert!(can_represent_others(&knowledge, &entries, 0, 0));
    }

    #[test]
    fn more_entries_than_values_have_no_representatives() {
        // All sets are {0, 1, 2}: three entries have representatives, four have not.
        let all = [0, 1, 2];
        let indices: Vec<i32> = all.iter().chain(&all).chain(&all).copied().collect();
        let knowledge = Knowledge::new(&[0, 3, 6, 9], &indices, &[1.0; 9]);
        assert!(can_represent(&knowledge, &[0; 3]));
        assert!(!can_represent(&knowledge, &[0; 4]));
    }

    #[test]
    fn an_entry_with_a_choice_gives_way() {
        let knowledge = Knowledge::new(&[0, 1, 3, 4], &[0, 0, 1, 2], &[1.0; 4]);
        let entries = [knowledge.id[2], knowledge.id[1], knowledge.id[0]];
        assert!(can_represent_others(&knowledge, &entries, 0, 2));
    }

    #[test]
    fn the_cheapest_assignment_is_the_best_of_all_orders() {
        let cost = [4.0, 1.0, 3.0, 2.0, 0.0, 5.0, 3.0, 2.0, 2.0];
        assert_eq!(cheapest(&cost, 3), [1, 0, 2]);
    }

    #[test]
    fn the_plan_with_the_larger_overlap_wins() {
        // Sets {0, 1}, {1}, {1, 2}: {0, 1} and {1} both meet {1, 2}; {0, 1} meets itself completely.
        let mut known = Knowledge::new(&[0, 2, 3, 5], &[0, 1, 1, 1, 2], &[1.0; 5]);
        let [a, b, c] = [known.id[0], known.id[1], known.id[2]];
        let plan = best_plan(&[a, b], &[a, c], &mut known);
        let mut expected = vec![a, b];
        expected.sort_unstable();
        assert_eq!(plan, Some(expected));
        let disjoint = Knowledge::new(&[0, 1, 2], &[0, 1], &[1.0; 2]);
        let mut disjoint = disjoint;
        assert_eq!(best_plan(&[0, 0], &[0, 1], &mut disjoint), None);
    }
}
