//! The persons and values of an equivalence class: persons are counted, not records.

use std::collections::{BTreeMap, HashMap};

/// The number of occurrences of each item.
#[derive(Default, Clone)]
struct Tally(HashMap<u64, u32>);

impl Tally {
    fn add(&mut self, x: u64) {
        *self.0.entry(x).or_default() += 1;
    }

    fn remove(&mut self, x: u64) {
        if let Some(n) = self.0.get_mut(&x) {
            *n -= 1;
            if *n == 0 {
                self.0.remove(&x);
            }
        }
    }
}

/// The persons and values of some records.
#[derive(Default, Clone)]
pub struct ClassCounts {
    persons: Tally,
    values: Tally,
    /// Records of a person with a value.
    pairs: BTreeMap<(u64, u32), u32>,
}

impl ClassCounts {
    pub fn add(&mut self, person: u64, value: u32) {
        self.persons.add(person);
        self.values.add(u64::from(value));
        *self.pairs.entry((person, value)).or_default() += 1;
    }

    pub fn remove(&mut self, person: u64, value: u32) {
        self.persons.remove(person);
        self.values.remove(u64::from(value));
        if let Some(n) = self.pairs.get_mut(&(person, value)) {
            *n -= 1;
            if *n == 0 {
                self.pairs.remove(&(person, value));
            }
        }
    }

    pub fn persons(&self) -> usize {
        self.persons.0.len()
    }

    pub fn values(&self) -> usize {
        self.values.0.len()
    }

    pub fn has_person(&self, person: u64) -> bool {
        self.persons.0.contains_key(&person)
    }

    pub fn has_value(&self, value: u32) -> bool {
        self.values.0.contains_key(&u64::from(value))
    }

    /// Whether there are k persons, and l of them with l different values.
    pub fn satisfies(&self, k: usize, l: usize) -> bool {
        self.persons() >= k && self.values() >= l && self.diverse(l)
    }

    /// Whether l persons can be matched with as many different values.
    fn diverse(&self, l: usize) -> bool {
        // If every person has one value, each value finds a person of its own.
        if self.pairs.len() == self.persons() || l <= 1 {
            return true;
        }
        let mut values: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for &(person, value) in self.pairs.keys() {
            values.entry(value).or_default().push(person);
        }
        let mut of: HashMap<u64, u32> = HashMap::new();
        let mut matched = 0;
        for &value in values.keys() {
            let mut tried = Vec::new();
            matched += usize::from(augment(value, &values, &mut of, &mut tried));
            if matched >= l {
                return true;
            }
        }
        false
    }
}

/// Finds a person for a value and, if necessary, moves other values to other persons.
fn augment(
    value: u32,
    values: &BTreeMap<u32, Vec<u64>>,
    of: &mut HashMap<u64, u32>,
    tried: &mut Vec<u64>,
) -> bool {
    for &person in &values[&value] {
        if tried.contains(&person) {
            continue;
        }
        tried.push(person);
        let free = of
            .get(&person)
            .copied()
            .is_none_or(|other| augment(other, values, of, tried));
        if free {
            of.insert(person, value);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_of(pairs: &[(u64, u32)]) -> ClassCounts {
        let mut counts = ClassCounts::default();
        for &(person, value) in pairs {
            counts.add(person, value);
        }
        counts
    }

    #[test]
    fn one_person_with_all_values_does_not_make_a_class_diverse() {
        let one = [(1, 10), (1, 11), (1, 12), (2, 10), (3, 10)];
        assert!(counts_of(&one).satisfies(3, 2));
        assert!(!counts_of(&one).satisfies(3, 3));
        assert!(!counts_of(&one).satisfies(4, 2));
        let mut more = counts_of(&one);
        more.add(3, 11);
        assert!(more.satisfies(3, 3));
        more.remove(3, 11);
        assert!(!more.satisfies(3, 3));
    }

    #[test]
    fn values_move_to_other_persons() {
        // 10 takes person 1 first, and must move to 2 when 11 comes, which only 1 has.
        assert!(counts_of(&[(1, 10), (2, 10), (1, 11)]).satisfies(2, 2));
    }
}
