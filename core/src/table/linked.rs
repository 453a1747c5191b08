//! Records of one person in several classes must have l sensitive values in common.
//!
//! An attacker who knows a person's quasi-identifiers in every record intersects the values of the classes. The classes
//! with most records of the person stay as long as the intersection has l values; the rows in the others are
//! violations.

/// One sensitive attribute by row.
pub struct Column<'a> {
    pub codes: &'a [i32],
    pub domain: usize,
}

/// Flags the rows (class -1: not published) that would leave their person fewer than l common values.
pub fn find_violations(
    classes: &[i64],
    persons: &[u32],
    columns: &[Column<'_>],
    l: u32,
) -> Vec<bool> {
    let count = classes.iter().max().map_or(0, |&c| (c + 1).max(0) as usize);
    let sets: Vec<Sets> = columns
        .iter()
        .map(|c| Sets::new(classes, c, count))
        .collect();
    let mut rows: Vec<u32> = (0..classes.len() as u32)
        .filter(|&row| classes[row as usize] >= 0)
        .collect();
    let key = |row: u32| (persons[row as usize], classes[row as usize]);
    rows.sort_unstable_by_key(|&row| key(row));
    let mut bad = vec![false; classes.len()];
    for records in rows.chunk_by(|&a, &b| key(a).0 == key(b).0) {
        let mut parts: Vec<&[u32]> = records.chunk_by(|&a, &b| key(a).1 == key(b).1).collect();
        if parts.len() < 2 {
            continue;
        }
        parts.sort_by_key(|part| (std::cmp::Reverse(part.len()), key(part[0]).1));
        let mut common: Vec<Vec<u64>> = sets.iter().map(Sets::all).collect();
        for part in parts {
            let class = key(part[0]).1 as usize;
            let next: Vec<Vec<u64>> = common
                .iter()
                .zip(&sets)
                .map(|(c, s)| s.meet(class, c))
                .collect();
            if next.iter().all(|words| ones(words) >= l) {
                common = next;
            } else {
                part.iter().for_each(|&row| bad[row as usize] = true);
            }
        }
    }
    bad
}

fn ones(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}

/// The values of every class, one bit each.
struct Sets {
    words: usize,
    bits: Vec<u64>,
}

impl Sets {
    fn new(classes: &[i64], column: &Column<'_>, count: usize) -> Self {
        let words = column.domain.div_ceil(64).max(1);
        let mut bits = vec![0u64; words * count];
        for (&class, &code) in classes.iter().zip(column.codes) {
            if class >= 0 {
                bits[class as usize * words + code as usize / 64] |= 1 << (code % 64);
            }
        }
        Self { words, bits }
    }

    fn all(&self) -> Vec<u64> {
        vec![u64::MAX; self.words]
    }

    fn meet(&self, class: usize, other: &[u64]) -> Vec<u64> {
        let own = &self.bits[class * self.words..(class + 1) * self.words];
        own.iter().zip(other).map(|(a, b)| a & b).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_in_two_classes_needs_l_values_in_common() {
        // Person 0 has two rows in class 0 and one in class 1; the classes share one value.
        let classes = [0, 0, 0, 1, 1];
        let persons = [0, 0, 1, 0, 2];
        let column = Column {
            codes: &[0, 1, 2, 0, 3],
            domain: 4,
        };
        let one = find_violations(&classes, &persons, std::slice::from_ref(&column), 1);
        assert_eq!(one, [false; 5]);
        let two = find_violations(&classes, &persons, &[column], 2);
        assert_eq!(two, [false, false, false, true, false]);
    }
}
