//! The privacy models where persons have several records: a class is evaluated by its persons, not by its records.
//!
//! k counts different persons. Distinct l requires l persons with l different values: a matching of that size between
//! persons and values. The other forms of l, and t, use the histogram in which every person spreads weight 1 over his
//! or her records in the class. With one record per person these are the usual definitions.
//!
//! The searches see one sensitive attribute whose codes are pairs of a person and the values of a record; pairs are
//! numbered person by person. Doubles decide the clear cases, integers the close ones. A close case whose common
//! denominator is too large counts as a violation, which errs on the side of privacy.

use std::collections::HashMap;

use super::entropy;
use super::grouping::Histogram;
use super::model::{Distance, Diversity, Model, Ratio, hierarchical_distance, ordered_distance};

/// Doubles closer to a bound than this are not trusted.
const DOUBT: f64 = 1e-9;
/// Shares are rounded to this grid for the first estimate of a distance.
const GRID: f64 = (1u64 << 50) as f64;
/// An upper bound of the grid's error, for fewer than ten thousand values.
const GRID_DOUBT: f64 = 1e-7;
/// Products below this many bits cannot overflow when they are added up.
const ROOM: u32 = 120;

/// A pair of the class and its records there; sorted by pair, so that a person's pairs are contiguous.
pub type Entry = (u32, u32);

/// One sensitive attribute of the pairs.
pub struct Attribute {
    /// Value of each pair.
    pub values: Vec<u32>,
    pub width: usize,
    /// `tree[level][value]`, for the hierarchical distance.
    pub tree: Vec<Vec<u32>>,
    reference: Weights,
}

pub struct Persons {
    /// Person of each pair, ascending.
    pub owner: Vec<u32>,
    pub attributes: Vec<Attribute>,
    /// Records of each person in the whole table.
    records: Vec<u32>,
}

/// Weight of each value that occurs, ascending by value; `exact` has the weights over a common denominator.
struct Weights {
    shares: Vec<(u32, f64)>,
    persons: f64,
    exact: Option<(Vec<(u32, u128)>, u128)>,
}

impl Persons {
    /// `times[pair]` is the pair's number of records in the whole table.
    pub fn new(
        owner: Vec<u32>,
        columns: Vec<(Vec<u32>, usize, Vec<Vec<u32>>)>,
        times: &[u32],
    ) -> Self {
        let whole: Vec<Entry> = (0..).zip(times.iter().copied()).collect();
        let attribute = |(values, width, tree): (Vec<u32>, usize, Vec<Vec<u32>>)| Attribute {
            reference: weigh(&owner, &values, &whole),
            values,
            width,
            tree,
        };
        let mut records = vec![0; owner.last().map_or(0, |&person| person as usize + 1)];
        for (&person, &n) in owner.iter().zip(times) {
            records[person as usize] += n;
        }
        Self {
            attributes: columns.into_iter().map(attribute).collect(),
            owner,
            records,
        }
    }

    /// Whether a class has all records of each of its persons.
    pub fn is_closed(&self, class: &[Entry]) -> bool {
        let owner = |entry: &Entry| self.owner[entry.0 as usize];
        class.chunk_by(|a, b| owner(a) == owner(b)).all(|own| {
            own.iter().map(|e| e.1).sum::<u32>() == self.records[owner(&own[0]) as usize]
        })
    }

    /// The monotone part: persons, and different values (for distinct l: of different persons).
    pub fn plausible(&self, model: &Model, class: &[Entry]) -> bool {
        let fewest = model.fewest_values() as usize;
        self.at_least(class, model.k.max(1))
            && (fewest <= 1
                || self.attributes.iter().all(|a| match model.diversity {
                    Some(Diversity::Distinct(_)) => self.has_matching(a, class, fewest),
                    _ => distinct(a, class, fewest),
                }))
    }

    /// The rest of the model, for classes that are `plausible`.
    pub fn holds(&self, model: &Model, class: &[Entry]) -> bool {
        if !weighs(model) {
            return true;
        }
        self.attributes.iter().all(|a| {
            let weights = weigh(&self.owner, &a.values, class);
            model.diversity.is_none_or(|d| diverse(&weights, d))
                && model
                    .closeness
                    .is_none_or(|(distance, t)| close(&weights, a, distance, t))
        })
    }

    pub fn at_least(&self, class: &[Entry], k: u32) -> bool {
        let mut last = u32::MAX;
        let mut persons = 0;
        for &(pair, _) in class {
            let owner = self.owner[pair as usize];
            persons += u32::from(owner != last);
            last = owner;
            if persons >= k {
                return true;
            }
        }
        false
    }

    /// Whether `size` persons can be matched with as many different values.
    fn has_matching(&self, attribute: &Attribute, class: &[Entry], size: usize) -> bool {
        let mut matching = Matching::default();
        for block in class.chunk_by(|a, b| self.owner[a.0 as usize] == self.owner[b.0 as usize]) {
            let values = block
                .iter()
                .map(|&(pair, _)| attribute.values[pair as usize]);
            matching.values_of.push(values.collect());
            let person = matching.values_of.len() - 1;
            let mut tried = Vec::new();
            matching.size += usize::from(matching.augment(person, &mut tried));
            if matching.size >= size {
                return true;
            }
        }
        false
    }
}

/// Whether a model uses weights, besides persons and matchings.
pub fn weighs(model: &Model) -> bool {
    model.closeness.is_some() || !matches!(model.diversity, None | Some(Diversity::Distinct(_)))
}

/// Pairs that are checked before the whole class.
const SOME: usize = 256;

/// Some of the class's pairs as entries, sorted.
pub fn some_entries(class: &Histogram) -> Vec<Entry> {
    let count = |&pair: &u32| (pair, class.counts[pair as usize]);
    let entries = class.touched.iter().map(count).filter(|e| e.1 > 0);
    let mut entries: Vec<Entry> = entries.take(SOME).collect();
    entries.sort_unstable();
    entries
}

/// The class's pairs as entries, sorted.
pub fn entries(class: &Histogram) -> Vec<Entry> {
    let count = |&pair: &u32| (pair, class.counts[pair as usize]);
    let mut entries: Vec<Entry> = class
        .touched
        .iter()
        .map(count)
        .filter(|e| e.1 > 0)
        .collect();
    if !entries.is_sorted() {
        entries.sort_unstable();
    }
    entries
}

/// The pairs of single records as entries, sorted.
pub fn count_pairs(mut pairs: Vec<u32>) -> Vec<Entry> {
    pairs.sort_unstable();
    let block = |same: &[u32]| (same[0], same.len() as u32);
    pairs.chunk_by(|a, b| a == b).map(block).collect()
}

#[derive(Default)]
struct Matching {
    /// Values of each person.
    values_of: Vec<Vec<u32>>,
    /// The person matched with a value.
    person_of: HashMap<u32, usize>,
    size: usize,
}

impl Matching {
    fn augment(&mut self, person: usize, tried: &mut Vec<u32>) -> bool {
        for at in 0..self.values_of[person].len() {
            let value = self.values_of[person][at];
            if tried.contains(&value) {
                continue;
            }
            tried.push(value);
            let before = self.person_of.get(&value).copied();
            if before.is_none_or(|other| self.augment(other, tried)) {
                self.person_of.insert(value, person);
                return true;
            }
        }
        false
    }
}

fn distinct(attribute: &Attribute, class: &[Entry], fewest: usize) -> bool {
    let mut seen: Vec<u32> = Vec::with_capacity(fewest);
    for &(pair, _) in class {
        let value = attribute.values[pair as usize];
        if !seen.contains(&value) {
            seen.push(value);
            if seen.len() >= fewest {
                return true;
            }
        }
    }
    false
}

fn weigh(owner: &[u32], values: &[u32], class: &[Entry]) -> Weights {
    let blocks = || class.chunk_by(|a, b| owner[a.0 as usize] == owner[b.0 as usize]);
    let records = |block: &[Entry]| block.iter().map(|&(_, n)| u128::from(n)).sum::<u128>();
    let mut parts: Vec<(u32, u128, u128)> = Vec::with_capacity(class.len());
    let (mut persons, mut scale) = (0u64, Some(1u128));
    for block in blocks() {
        let all = records(block);
        persons += 1;
        scale = scale.and_then(|scale| common(scale, all));
        parts.extend(
            block
                .iter()
                .map(|&(pair, n)| (values[pair as usize], u128::from(n), all)),
        );
    }
    parts.sort_unstable_by_key(|part| part.0);
    let runs = || parts.chunk_by(|a, b| a.0 == b.0);
    let share =
        |run: &[(u32, u128, u128)]| run.iter().map(|&(_, n, all)| n as f64 / all as f64).sum();
    let exact = scale.map(|scale| {
        let whole =
            |run: &[(u32, u128, u128)]| run.iter().map(|&(_, n, all)| n * (scale / all)).sum();
        let weights = runs().map(|run| (run[0].0, whole(run))).collect();
        (weights, scale * u128::from(persons))
    });
    Weights {
        shares: runs().map(|run| (run[0].0, share(run))).collect(),
        persons: persons as f64,
        exact,
    }
}

/// Least common multiple, if sums of it cannot overflow.
fn common(a: u128, b: u128) -> Option<u128> {
    let multiple = a / gcd(a, b) * b;
    (multiple < 1 << 64).then_some(multiple)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The answer of doubles in clear cases, of integers in close ones.
fn decide(have: f64, need: f64, exact: impl FnOnce() -> Option<bool>) -> bool {
    let doubt = DOUBT * have.abs().max(need.abs()).max(1.0);
    if (have - need).abs() > doubt {
        have > need
    } else {
        exact().unwrap_or(false)
    }
}

fn diverse(weights: &Weights, diversity: Diversity) -> bool {
    match diversity {
        Diversity::Distinct(_) => true,
        Diversity::Entropy(l) => has_entropy(weights, l),
        Diversity::Frequency(l) => frequent_cuts(weights, l),
        Diversity::Recursive { c, l } => recursive(weights, c, l),
    }
}

fn has_entropy(weights: &Weights, l: Ratio) -> bool {
    let spent: f64 = weights.shares.iter().map(|&(_, w)| w * w.ln()).sum();
    let have = weights.persons.ln() - spent / weights.persons;
    decide(have, (l.num as f64 / l.den as f64).ln(), || {
        let (exact, _) = weights.exact.as_ref()?;
        let shared = exact.iter().fold(0, |shared, &(_, w)| gcd(shared, w));
        let small = |&(_, w): &(u32, u128)| u32::try_from(w / shared).ok();
        let counts: Vec<u32> = exact.iter().map(small).collect::<Option<_>>()?;
        let n = u32::try_from(counts.iter().map(|&c| u64::from(c)).sum::<u64>()).ok()?;
        Some(entropy::diverse(counts.iter().copied(), n, l.num, l.den))
    })
}

fn frequent_cuts(weights: &Weights, l: Ratio) -> bool {
    let largest = weights.shares.iter().map(|&(_, w)| w).fold(0.0, f64::max);
    let bound = l.den as f64 / l.num as f64;
    decide(bound, largest / weights.persons, || {
        let (exact, total) = weights.exact.as_ref()?;
        let largest = exact.iter().map(|&(_, w)| w).max()?;
        Some(largest.checked_mul(l.num.into())? <= total.checked_mul(l.den.into())?)
    })
}

fn recursive(weights: &Weights, c: Ratio, l: u32) -> bool {
    let skip = l.max(1) as usize - 1;
    let mut shares: Vec<f64> = weights.shares.iter().map(|&(_, w)| w).collect();
    shares.sort_unstable_by(|a, b| b.total_cmp(a));
    let tail: f64 = shares.iter().skip(skip).sum();
    let first = shares.first().copied().unwrap_or(0.0);
    decide(tail * c.num as f64 / c.den as f64, first, || {
        let (exact, _) = weights.exact.as_ref()?;
        let mut counts: Vec<u128> = exact.iter().map(|&(_, w)| w).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let tail: u128 = counts.iter().skip(skip).sum();
        Some(counts.first()?.checked_mul(c.den.into())? < tail.checked_mul(c.num.into())?)
    })
}

fn close(weights: &Weights, a: &Attribute, distance: Distance, t: Ratio) -> bool {
    let longest = match distance {
        Distance::Equal => 2,
        Distance::Ordered => a.width.saturating_sub(1) as i128,
        Distance::Hierarchical => a.tree.len().saturating_sub(1) as i128,
    };
    if longest == 0 {
        return true;
    }
    let mut extra = vec![0.0; a.width];
    for &(value, w) in &weights.shares {
        extra[value as usize] += w / weights.persons;
    }
    for &(value, w) in &a.reference.shares {
        extra[value as usize] -= w / a.reference.persons;
    }
    let grid: Vec<i128> = extra.iter().map(|&x| (x * GRID).round() as i128).collect();
    let far = transport(&grid, a, distance) as f64 / (longest as f64 * GRID);
    let bound = t.num as f64 / t.den as f64;
    if (far - bound).abs() > GRID_DOUBT {
        return far < bound;
    }
    is_close_exactly(weights, a, distance, t, longest).unwrap_or(false)
}

fn is_close_exactly(
    weights: &Weights,
    a: &Attribute,
    distance: Distance,
    t: Ratio,
    longest: i128,
) -> Option<bool> {
    let (class, n) = weights.exact.as_ref()?;
    let (table, rows) = a.reference.exact.as_ref()?;
    let bits = |x: u128| u128::BITS - x.leading_zeros();
    let steps = bits(a.width as u128) * 2 + bits(t.num.max(t.den).into()) + bits(longest as u128);
    if bits(*n) + bits(*rows) + steps > ROOM {
        return None;
    }
    let mut surplus = vec![0i128; a.width];
    for &(value, w) in class {
        surplus[value as usize] += (w * rows) as i128;
    }
    for &(value, w) in table {
        surplus[value as usize] -= (w * n) as i128;
    }
    let way = transport(&surplus, a, distance);
    Some(way * i128::from(t.den) <= i128::from(t.num) * longest * (n * rows) as i128)
}

fn transport(surplus: &[i128], a: &Attribute, distance: Distance) -> i128 {
    match distance {
        Distance::Equal => surplus.iter().map(|x| x.abs()).sum(),
        Distance::Ordered => ordered_distance(surplus.len(), |v| surplus[v]),
        Distance::Hierarchical => hierarchical_distance(&a.tree, surplus.len(), |v| surplus[v]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Persons 0, 1, ... with the values of their records, as one class.
    fn class(records: &[&[u32]]) -> (Persons, Vec<Entry>) {
        let (mut owner, mut values, mut times) = (vec![], vec![], vec![]);
        for (person, seen) in records.iter().enumerate() {
            for entry in count_pairs(seen.to_vec()) {
                owner.push(person as u32);
                values.push(entry.0);
                times.push(entry.1);
            }
        }
        let persons = Persons::new(owner, vec![(values, 8, vec![])], &times);
        let entries = (0..).zip(times).collect();
        (persons, entries)
    }

    fn model(k: u32, diversity: Option<Diversity>) -> Model {
        Model {
            k,
            diversity,
            closeness: None,
            persons: None,
        }
    }

    #[test]
    fn four_records_are_one_person() {
        let (persons, entries) = class(&[&[0, 1, 2, 3]]);
        assert!(persons.plausible(&model(1, None), &entries));
        assert!(!persons.plausible(&model(2, None), &entries));
    }

    #[test]
    fn a_class_is_closed_if_it_has_all_records_of_its_persons() {
        let (persons, entries) = class(&[&[0, 1], &[0, 0, 2]]);
        assert!(persons.is_closed(&entries));
        assert!(persons.is_closed(&entries[2..]));
        assert!(!persons.is_closed(&entries[1..]));
        assert!(!persons.is_closed(&[(2, 1), (3, 1)]));
    }

    #[test]
    fn l_values_of_fewer_persons_are_not_enough() {
        let three = model(1, Some(Diversity::Distinct(3)));
        let (persons, entries) = class(&[&[0, 1, 2], &[0]]);
        assert!(!persons.plausible(&three, &entries));
        // The first person must give way twice: 0 -> 1 -> 2.
        let (persons, entries) = class(&[&[0, 1, 2], &[0], &[0, 1]]);
        assert!(persons.plausible(&three, &entries));
    }

    #[test]
    fn many_records_of_one_person_weigh_as_much_as_one() {
        let half = model(1, Some(Diversity::Frequency(Ratio { num: 2, den: 1 })));
        let (persons, entries) = class(&[&[0, 0, 0, 0, 0], &[1]]);
        assert!(persons.holds(&half, &entries));
        let (persons, entries) = class(&[&[0, 0, 1], &[0]]);
        assert!(!persons.holds(&half, &entries));
        let third = model(1, Some(Diversity::Entropy(Ratio { num: 3, den: 1 })));
        let (persons, entries) = class(&[&[0, 1, 2], &[0, 1, 2]]);
        assert!(persons.holds(&third, &entries));
        let (persons, entries) = class(&[&[0, 1, 2], &[0, 1, 1, 2]]);
        assert!(!persons.holds(&third, &entries));
    }
}
