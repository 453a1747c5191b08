//! Groups of equal generalized quasi-identifiers with histograms of the sensitive values, and their roll-up to coarser
//! nodes.

use super::space::Space;

/// Groups of records, each with a representative and a sparse histogram (compressed rows).
///
/// Sensitive attributes share one range of codes, each with its own offset.
#[derive(Default)]
pub struct Grouping {
    /// `columns[pack][group]`: code of a representative record.
    pub columns: Vec<Vec<u32>>,
    pub counts: Vec<u32>,
    pub starts: Vec<u32>,
    pub values: Vec<u32>,
    pub numbers: Vec<u32>,
}

impl Grouping {
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    pub fn entries(&self, group: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let range = self.starts[group] as usize..self.starts[group + 1] as usize;
        self.values[range.clone()]
            .iter()
            .copied()
            .zip(self.numbers[range].iter().copied())
    }

    /// Puts the values of every group in ascending order.
    pub fn sort_values(&mut self) {
        for range in self.starts.windows(2) {
            let range = range[0] as usize..range[1] as usize;
            if self.values[range.clone()].is_sorted() {
                continue;
            }
            let mut entries: Vec<(u32, u32)> = self.values[range.clone()]
                .iter()
                .copied()
                .zip(self.numbers[range.clone()].iter().copied())
                .collect();
            entries.sort_unstable();
            for (at, (value, number)) in range.zip(entries) {
                self.values[at] = value;
                self.numbers[at] = number;
            }
        }
    }

    pub fn bytes(&self) -> usize {
        4 * (self.columns.len() * self.len() + 2 * self.len() + 2 * self.values.len())
    }
}

const EMPTY: u32 = u32::MAX;

/// Working memory of one thread; nothing in it outlives a node.
#[derive(Default)]
pub struct Scratch {
    acc: Vec<u64>,
    dense: Vec<u32>,
    slots: Vec<(u64, u32)>,
    /// New group of each source group.
    pub ids: Vec<u32>,
    pub counts: Vec<u32>,
    pub histogram: Histogram,
    pub order: Vec<u32>,
    pub offsets: Vec<u32>,
}

/// A dense histogram that clears only the counts it used.
#[derive(Default)]
pub struct Histogram {
    pub counts: Vec<u32>,
    pub touched: Vec<u32>,
}

impl Histogram {
    pub fn reset(&mut self, domain: usize) {
        for &v in &self.touched {
            self.counts[v as usize] = 0;
        }
        self.touched.clear();
        self.counts.resize(domain, 0);
    }

    #[inline]
    pub fn add(&mut self, value: u32, number: u32) {
        let slot = &mut self.counts[value as usize];
        if *slot == 0 {
            self.touched.push(value);
        }
        *slot += number;
    }
}

/// Direct addressing is used up to this many keys per group; beyond that a hash table touches less memory.
const DENSE_PER_GROUP: u64 = 16;
const DENSE_FLOOR: u64 = 1 << 14;

impl Scratch {
    /// Numbers the groups of `columns` at `levels`; fills `ids` and returns the number of groups.
    pub fn assign(
        &mut self,
        space: &Space,
        columns: &[Vec<u32>],
        rows: usize,
        levels: &[u8],
    ) -> usize {
        self.acc.clear();
        self.acc.resize(rows, 0);
        let mut radix = 1u64;
        for (pack, column) in space.packs.iter().zip(columns) {
            let width = pack_width(space, pack, levels);
            if width == 1 {
                continue;
            }
            if radix.checked_mul(width).is_none_or(|r| r > 1 << 62) {
                radix = self.renumber(radix) as u64;
                for (key, &id) in self.acc.iter_mut().zip(&self.ids) {
                    *key = u64::from(id);
                }
            }
            let table = pack_table(space, pack, levels, radix);
            for (key, &code) in self.acc.iter_mut().zip(column) {
                *key += table[code as usize];
            }
            radix *= width;
        }
        self.renumber(radix)
    }

    /// Turns the keys below `radix` into dense numbers in order of first occurrence.
    fn renumber(&mut self, radix: u64) -> usize {
        self.ids.clear();
        self.ids.resize(self.acc.len(), 0);
        if radix <= DENSE_FLOOR.max(DENSE_PER_GROUP * self.acc.len() as u64) {
            self.renumber_dense(radix as usize)
        } else {
            self.renumber_sparse()
        }
    }

    fn renumber_dense(&mut self, radix: usize) -> usize {
        if self.dense.len() < radix {
            self.dense.resize(radix, EMPTY);
        }
        let mut made = 0u32;
        for (&key, id) in self.acc.iter().zip(&mut self.ids) {
            let slot = &mut self.dense[key as usize];
            if *slot == EMPTY {
                *slot = made;
                made += 1;
            }
            *id = *slot;
        }
        for &key in &self.acc {
            self.dense[key as usize] = EMPTY;
        }
        made as usize
    }

    /// The table starts small and grows with the groups, not with the rows.
    fn renumber_sparse(&mut self) -> usize {
        let mut bits = 12;
        self.slots.clear();
        self.slots.resize(1 << bits, (0, EMPTY));
        let mut made = 0u32;
        for (&key, id) in self.acc.iter().zip(&mut self.ids) {
            let at = find(&self.slots, bits, key);
            if self.slots[at].1 == EMPTY {
                self.slots[at] = (key, made);
                made += 1;
                *id = made - 1;
                if made as usize * 2 > self.slots.len() {
                    bits += 2;
                    self.slots = grow_table(&self.slots, bits);
                }
            } else {
                *id = self.slots[at].1;
            }
        }
        made as usize
    }

    /// Adds up the records of the new groups.
    pub fn count(&mut self, source: &[u32], groups: usize) {
        self.counts.clear();
        self.counts.resize(groups, 0);
        for (&id, &n) in self.ids.iter().zip(source) {
            self.counts[id as usize] += n;
        }
    }

    /// Sorts the source groups by their new group: `order[offsets[g]..offsets[g + 1]]` belong to `g`.
    pub fn sort(&mut self, groups: usize) {
        self.offsets.clear();
        self.offsets.resize(groups + 1, 0);
        for &id in &self.ids {
            self.offsets[id as usize + 1] += 1;
        }
        for g in 0..groups {
            self.offsets[g + 1] += self.offsets[g];
        }
        self.order.resize(self.ids.len(), 0);
        let mut next = self.offsets.clone();
        for (source, &id) in self.ids.iter().enumerate() {
            self.order[next[id as usize] as usize] = source as u32;
            next[id as usize] += 1;
        }
    }

    /// Loads the histogram of a new group (after `sort`).
    #[inline]
    pub fn load(&mut self, source: &Grouping, group: usize, domain: usize) {
        self.histogram.reset(domain);
        for at in self.offsets[group]..self.offsets[group + 1] {
            for (value, number) in source.entries(self.order[at as usize] as usize) {
                self.histogram.add(value, number);
            }
        }
    }

    /// The groups themselves (after `sort`), for a later roll-up.
    pub fn collect(&mut self, source: &Grouping, groups: usize, domain: usize) -> Grouping {
        let mut made = Grouping {
            counts: self.counts.clone(),
            starts: vec![0],
            ..Grouping::default()
        };
        for column in &source.columns {
            let first = |g: usize| column[self.order[self.offsets[g] as usize] as usize];
            made.columns.push((0..groups).map(first).collect());
        }
        for g in 0..groups {
            self.load(source, g, domain);
            for &value in &self.histogram.touched {
                made.values.push(value);
                made.numbers.push(self.histogram.counts[value as usize]);
            }
            made.starts.push(made.values.len() as u32);
        }
        made
    }
}

/// The slot of a key, or the free slot where it belongs.
#[inline]
fn find(slots: &[(u64, u32)], bits: u32, key: u64) -> usize {
    // Fibonacci hashing: the high bits of the product are well mixed.
    let mut at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize;
    while slots[at].1 != EMPTY && slots[at].0 != key {
        at = (at + 1) & (slots.len() - 1);
    }
    at
}

fn grow_table(slots: &[(u64, u32)], bits: u32) -> Vec<(u64, u32)> {
    let mut larger = vec![(0, EMPTY); 1 << bits];
    for &slot in slots.iter().filter(|slot| slot.1 != EMPTY) {
        let at = find(&larger, bits, slot.0);
        larger[at] = slot;
    }
    larger
}

fn pack_width(space: &Space, pack: &super::space::Pack, levels: &[u8]) -> u64 {
    pack.members
        .iter()
        .map(|&(j, _)| space.attributes[j].widths[levels[j] as usize] as u64)
        .product()
}

/// Key contribution of every code of a pack at `levels`, scaled by `radix`.
fn pack_table(space: &Space, pack: &super::space::Pack, levels: &[u8], radix: u64) -> Vec<u64> {
    let mut table = vec![0u64; 1];
    let mut scale = radix;
    for &(j, _) in &pack.members {
        let attribute = &space.attributes[j];
        let nodes = &attribute.tables[levels[j] as usize];
        let mut wider = Vec::with_capacity(table.len() * nodes.len());
        for &node in nodes {
            wider.extend(table.iter().map(|&key| key + u64::from(node) * scale));
        }
        table = wider;
        scale *= attribute.widths[levels[j] as usize] as u64;
    }
    table
}
