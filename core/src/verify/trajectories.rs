//! The trajectories of a veiled stream: stratum, event and candidate set of everybody's last record.

use std::collections::HashMap;

use super::hasher::Build;
use super::support::Support;

/// In place of a stratum: no record yet.
const NOTHING: u16 = u16::MAX;
/// Words before the set: the stratum, and the event in two words.
const HEAD: usize = 3;

/// Records as columns of one length; l candidates each.
pub struct Batch<'a> {
    pub persons: &'a [u64],
    pub strata: &'a [u32],
    pub events: &'a [u32],
    pub candidates: &'a [u16],
}

pub struct Trajectories {
    pub support: Support,
    places: HashMap<u64, u32, Build>,
    names: Vec<u64>,
    /// HEAD + l words per person.
    last: Vec<u16>,
}

impl Trajectories {
    /// Starts with no persons.
    pub fn new(support: Support) -> Self {
        Trajectories {
            support,
            places: HashMap::default(),
            names: Vec::new(),
            last: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    fn size(&self) -> usize {
        HEAD + self.support.factors.len()
    }

    /// The first violation of a batch, in words. Afterwards the state is invalid. The sets of all strata must be known.
    pub fn find_violation(&mut self, batch: &Batch) -> Option<&'static str> {
        // All places first: the lookups do not depend on one another.
        let places: Vec<usize> = batch.persons.iter().map(|&p| self.place(p)).collect();
        let l = self.support.factors.len();
        (0..places.len()).find_map(|i| {
            let set = &batch.candidates[i * l..(i + 1) * l];
            self.follow(places[i], batch.strata[i], batch.events[i], set)
        })
    }

    fn place(&mut self, person: u64) -> usize {
        let next = self.names.len() as u32;
        let place = *self.places.entry(person).or_insert(next);
        if place == next {
            self.names.push(person);
            self.last.push(NOTHING);
            self.last.resize(self.names.len() * self.size(), 0);
        }
        place as usize
    }

    fn follow(
        &mut self,
        place: usize,
        stratum: u32,
        event: u32,
        set: &[u16],
    ) -> Option<&'static str> {
        let (size, support) = (self.size(), &self.support);
        let in_domain = set.iter().all(|&code| usize::from(code) < support.values);
        if !in_domain || stratum as usize >= support.sets.len() {
            return Some("a candidate or a stratum is not in the codebook");
        }
        if !set.is_sorted() {
            return Some("candidates are not in canonical order");
        }
        let last = &mut self.last[place * size..(place + 1) * size];
        let (head, before) = last.split_at_mut(HEAD);
        let last_event = u64::from(head[1]) | u64::from(head[2]) << 16;
        if head[0] == NOTHING {
            if event != 0 {
                return Some("the first record of a person is not event 0");
            }
            if !support.can_give(stratum as usize, set) {
                return Some("the stratum of a first event cannot give this candidate set");
            }
        } else if u32::from(head[0]) != stratum || last_event + 1 != u64::from(event) {
            return Some("the events of a person are not counted one by one in one stratum");
        } else if !support.can_follow(stratum as usize, before, set) {
            return Some("a candidate set cannot follow the one before it");
        }
        head.copy_from_slice(&[stratum as u16, event as u16, (event >> 16) as u16]);
        before.copy_from_slice(set);
        None
    }

    /// The whole state: the number of persons, the persons, the last record of each.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + 8 * self.len() + 2 * self.last.len());
        bytes.extend((self.len() as u64).to_le_bytes());
        bytes.extend(self.names.iter().flat_map(|name| name.to_le_bytes()));
        bytes.extend(self.last.iter().flat_map(|word| word.to_le_bytes()));
        bytes
    }

    /// Restores what `to_bytes` wrote, if it can belong to this stream.
    pub fn load(&mut self, bytes: &[u8]) -> Option<()> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let size = usize::try_from(u64::from_le_bytes(*head)).ok()?;
        if size.checked_mul(8 + 2 * self.size()) != Some(rest.len()) {
            return None;
        }
        let (names, last) = rest.split_at(8 * size);
        let number = |word: &[u8]| u64::from_le_bytes(word.try_into().expect("eight bytes"));
        let word = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
        self.names = names.chunks_exact(8).map(number).collect();
        self.last = last.chunks_exact(2).map(word).collect();
        self.places = self.names.iter().copied().zip(0..).collect();
        let valid = |last: &[u16]| {
            let in_domain = |&code: &u16| usize::from(code) < self.support.values;
            usize::from(last[0]) < self.support.sets.len() && last[HEAD..].iter().all(in_domain)
        };
        let valid = self.last.chunks_exact(self.size()).all(valid);
        (valid && self.places.len() == size).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{Matrix, Steps};
    use super::*;

    type Record = (u64, u32, u32, [u16; 2]);

    /// One stratum that gives {0, 1} and {1, 2}; every value goes to the next.
    fn verifier() -> Trajectories {
        let factors = vec![3, 5];
        let name = |set: [u64; 2]| (set[0] + 1) * 3 + (set[1] + 1) * 5;
        let sets = [[0, 1], [1, 2]].map(name).into_iter().collect();
        Trajectories::new(Support {
            values: 3,
            factors,
            sets: vec![Some(sets)],
            steps: Steps::Matrix(Matrix::new(3, vec![0, 1, 2, 3], vec![1, 2, 0]).unwrap()),
        })
    }

    fn find_violation(verifier: &mut Trajectories, records: &[Record]) -> Option<&'static str> {
        let column = |of: fn(&Record) -> u32| records.iter().map(of).collect();
        let (strata, events): (Vec<u32>, Vec<u32>) = (column(|r| r.1), column(|r| r.2));
        verifier.find_violation(&Batch {
            persons: &records.iter().map(|r| r.0).collect::<Vec<_>>(),
            strata: &strata,
            events: &events,
            candidates: &records.iter().flat_map(|r| r.3).collect::<Vec<_>>(),
        })
    }

    #[test]
    fn possible_records_pass_in_one_batch_and_in_several() {
        let mut one = verifier();
        let records = [
            (7, 0, 0, [0, 1]),
            (8, 0, 0, [1, 2]),
            (7, 0, 1, [1, 2]),
            (7, 0, 2, [0, 2]),
        ];
        assert_eq!(find_violation(&mut one, &records), None);
        let mut several = verifier();
        for record in records {
            assert_eq!(find_violation(&mut several, &[record]), None);
        }
        assert_eq!((one.len(), one.to_bytes()), (2, several.to_bytes()));
        let mut again = verifier();
        assert!(again.load(&one.to_bytes()).is_some());
        assert!(find_violation(&mut again, &[(7, 0, 3, [0, 1])]).is_none());
    }

    #[test]
    fn impossible_records_are_violations() {
        for (records, word) in [
            (&[(7, 0, 0, [0, 3])][..], "codebook"),
            (&[(7, 1, 0, [0, 1])], "codebook"),
            (&[(7, 0, 0, [1, 0])], "canonical"),
            (&[(7, 0, 1, [0, 1])], "event 0"),
            (&[(7, 0, 0, [0, 2])], "stratum of"),
            (&[(7, 0, 0, [0, 1]), (7, 0, 0, [0, 1])], "one by one"),
            (&[(7, 0, 0, [0, 1]), (7, 0, 2, [1, 2])], "one by one"),
            (&[(7, 0, 0, [0, 1]), (7, 0, 1, [0, 1])], "follow"),
        ] {
            let find_violation = find_violation(&mut verifier(), records).unwrap_or("");
            assert!(
                find_violation.contains(word),
                "{find_violation} is not {word}"
            );
        }
    }

    #[test]
    fn corrupt_state_is_rejected() {
        let mut one = verifier();
        assert_eq!(find_violation(&mut one, &[(7, 0, 0, [0, 1])]), None);
        let bytes = one.to_bytes();
        for size in [0, 7, 8, bytes.len() - 1] {
            assert!(verifier().load(&bytes[..size]).is_none());
        }
        for (at, corrupt) in [(16, 1), (22, 9)] {
            let mut bytes = bytes.clone();
            bytes[at] = corrupt;
            assert!(verifier().load(&bytes).is_none());
        }
    }
}
