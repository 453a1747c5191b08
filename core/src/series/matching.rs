//! Systems of distinct representatives by augmenting paths (Kuhn).

use super::knowledge::Knowledge;

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
                        self.owner[at.expect("owned values stay owned")].1 = entry;
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
/// Without this a record could sit in an entry and leave the others without a legal completion.
pub fn others_represented(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_not_take_what_another_entry_cannot_do_without() {
        // Value 0 stays 0; value 1 becomes 0 or 1.
        let knowledge = Knowledge::new(&[0, 1, 3], &[0, 0, 1], &[1.0, 0.5, 0.5]);
        let entries = [knowledge.id[0], knowledge.id[1]];
        assert!(!others_represented(&knowledge, &entries, 1, 0));
        assert!(others_represented(&knowledge, &entries, 1, 1));
        assert!(others_represented(&knowledge, &entries, 0, 0));
    }

    #[test]
    fn entries_give_way_along_a_path() {
        // All sets are {0, 1, 2}: three entries have representatives, four have not.
        let all = [0, 1, 2];
        let indices: Vec<i32> = all.iter().chain(&all).chain(&all).copied().collect();
        let knowledge = Knowledge::new(&[0, 3, 6, 9], &indices, &[1.0; 9]);
        assert!(others_represented(&knowledge, &[0; 3], 0, 2));
        assert!(!others_represented(&knowledge, &[0; 4], 0, 2));
    }
}
