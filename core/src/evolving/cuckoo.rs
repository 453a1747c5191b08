//! Cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher, CoNEXT 2014): a set that answers "no" or "maybe", and can forget.
//!
//! Four 16-bit fingerprints share one 64-bit bucket; a key has two possible buckets, each reachable from the other by the
//! fingerprint alone. A lookup compares eight fingerprints, so a key that was never added is reported with probability at
//! most 8 / 65,535, about 0.012%. Delete only what was added: deleting a stranger may remove a key that collides with it.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

const SLOTS: usize = 4;
const LANES: u64 = 0x0001_0001_0001_0001;
const HIGH: u64 = 0x8000_8000_8000_8000;
/// After this many evictions the filter counts as full; the value is that of the paper.
const KICKS: usize = 500;
/// Eight comparisons per lookup against 65,535 possible fingerprints (0 marks an empty slot).
pub const FALSE_POSITIVES: f64 = 8.0 / 65_535.0;

/// Finaliser of splitmix64: spreads every input bit over the whole word.
pub fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What a lookup needs of a key, computed once and used on many filters.
#[derive(Clone, Copy)]
pub struct Hashed {
    print: u64,
    first: u64,
    other: u64,
}

impl Hashed {
    pub fn new(key: u64) -> Self {
        let h = mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let print = (h >> 48) % 65_535 + 1;
        Hashed {
            print,
            first: h & 0xffff_ffff,
            other: mix(print) & 0xffff_ffff,
        }
    }
}

fn has(bucket: u64, print: u64) -> bool {
    let x = bucket ^ print.wrapping_mul(LANES);
    x.wrapping_sub(LANES) & !x & HIGH != 0
}

fn lane(bucket: u64, slot: usize) -> u64 {
    (bucket >> (16 * slot)) & 0xffff
}

/// The filter itself, small enough to keep one per class.
#[derive(Clone, Default)]
pub struct Filter {
    buckets: Vec<u64>,
}

impl Filter {
    pub fn with_capacity(keys: usize) -> Self {
        // Above 95% load insertions start to fail, so one bucket more than needed and then a power of two.
        let wanted = (keys as f64 / 0.95 / SLOTS as f64).ceil() as usize;
        Filter {
            buckets: vec![0; wanted.max(1).next_power_of_two()],
        }
    }

    /// Whether it was never given any room.
    pub fn is_unset(&self) -> bool {
        self.buckets.is_empty()
    }

    fn mask(&self) -> u64 {
        self.buckets.len() as u64 - 1
    }

    fn pair(&self, key: Hashed) -> (usize, usize) {
        let first = key.first & self.mask();
        (first as usize, ((first ^ key.other) & self.mask()) as usize)
    }

    pub fn contains(&self, key: Hashed) -> bool {
        if self.buckets.is_empty() {
            return false;
        }
        let (a, b) = self.pair(key);
        has(self.buckets[a], key.print) || has(self.buckets[b], key.print)
    }

    /// Adds a key; false when the filter is full and then nothing has changed.
    pub fn insert(&mut self, key: Hashed) -> bool {
        let (a, b) = self.pair(key);
        if self.put(a, key.print) || self.put(b, key.print) {
            return true;
        }
        let before = self.buckets.clone();
        let (mut at, mut print) = (b, key.print);
        for kick in 0..KICKS {
            let slot = (mix(print + kick as u64) % SLOTS as u64) as usize;
            let evicted = lane(self.buckets[at], slot);
            self.buckets[at] ^= (evicted ^ print) << (16 * slot);
            print = evicted;
            at = ((at as u64 ^ (mix(print) & 0xffff_ffff)) & self.mask()) as usize;
            if self.put(at, print) {
                return true;
            }
        }
        self.buckets = before;
        false
    }

    fn put(&mut self, at: usize, print: u64) -> bool {
        for slot in 0..SLOTS {
            if lane(self.buckets[at], slot) == 0 {
                self.buckets[at] |= print << (16 * slot);
                return true;
            }
        }
        false
    }

    pub fn delete(&mut self, key: Hashed) -> bool {
        if self.buckets.is_empty() {
            return false;
        }
        let (a, b) = self.pair(key);
        for at in [a, b] {
            for slot in 0..SLOTS {
                if lane(self.buckets[at], slot) == key.print {
                    self.buckets[at] &= !(0xffff << (16 * slot));
                    return true;
                }
            }
        }
        false
    }
}

/// A cuckoo filter over 64-bit keys.
#[pyclass(module = "reticent._core.evolving")]
pub struct CuckooFilter {
    filter: Filter,
    held: usize,
}

#[pymethods]
impl CuckooFilter {
    #[new]
    fn new(capacity: usize) -> Self {
        CuckooFilter {
            filter: Filter::with_capacity(capacity),
            held: 0,
        }
    }

    /// Upper bound on the chance that a key never added is reported.
    #[getter]
    fn false_positive_rate(&self) -> f64 {
        FALSE_POSITIVES
    }

    fn __len__(&self) -> usize {
        self.held
    }

    fn __contains__(&self, key: u64) -> bool {
        self.filter.contains(Hashed::new(key))
    }

    /// Adds a key; raises when the filter is full.
    fn insert(&mut self, key: u64) -> PyResult<()> {
        if !self.filter.insert(Hashed::new(key)) {
            return Err(PyValueError::new_err(
                "the filter is full; make it with a larger capacity",
            ));
        }
        self.held += 1;
        Ok(())
    }

    /// Forgets a key that was added; false when no such fingerprint is there.
    fn delete(&mut self, key: u64) -> bool {
        let gone = self.filter.delete(Hashed::new(key));
        self.held -= usize::from(gone);
        gone
    }

    /// Looks up many keys at once.
    fn contains_many<'py>(
        &self,
        py: Python<'py>,
        keys: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let keys = keys.as_slice()?;
        let found: Vec<bool> = py.detach(|| {
            keys.iter()
                .map(|&k| self.filter.contains(Hashed::new(k)))
                .collect()
        });
        Ok(found.into_pyarray(py))
    }
}
