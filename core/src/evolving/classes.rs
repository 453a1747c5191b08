//! Equivalence classes over rows: members, value counts, and the smallest class.

use std::collections::BTreeSet;

pub const NONE: i32 = -1;

/// One class: its members and how often each value occurs among them.
///
/// `tuples` holds the hash of each member (row and tuple) contiguously, so that a scan touches nothing else.
#[derive(Clone, Default)]
pub struct Class {
    pub tuples: Vec<u64>,
    pub rows: Vec<u32>,
    pub values: Vec<(i32, u32)>,
}

impl Class {
    pub fn holds(&self, value: i32) -> bool {
        self.values.iter().any(|&(v, _)| v == value)
    }

    fn count(&mut self, value: i32) {
        match self.values.iter_mut().find(|(v, _)| *v == value) {
            Some(entry) => entry.1 += 1,
            None => self.values.push((value, 1)),
        }
    }

    fn discount(&mut self, value: i32) {
        let at = self
            .values
            .iter()
            .position(|&(v, _)| v == value)
            .expect("a member's value is counted");
        self.values[at].1 -= 1;
        if self.values[at].1 == 0 {
            self.values.swap_remove(at);
        }
    }
}

/// The counts of one change.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    pub dissolved: usize,
    pub relocated: usize,
}

/// The whole table: per row its value, tuple hash and class; per class its members.
pub struct Table {
    pub l: usize,
    pub value: Vec<i32>,
    pub tuple: Vec<u64>,
    pub class_of: Vec<i32>,
    pub classes: Vec<Class>,
    /// Numbers of dissolved classes; the least is reused first, so that a restart continues identically.
    free: BTreeSet<u32>,
    /// Satisfied classes by size; the first is the smallest.
    pub satisfied: BTreeSet<(u32, u32)>,
    pub withheld: BTreeSet<u32>,
    /// Rows whose class this change set, and classes that it touched; repeats are allowed.
    pub moved: Vec<u32>,
    pub seen: Vec<u32>,
    pub tally: Tally,
}

impl Table {
    pub fn new(l: usize) -> Self {
        Table {
            l,
            value: Vec::new(),
            tuple: Vec::new(),
            class_of: Vec::new(),
            classes: Vec::new(),
            free: BTreeSet::new(),
            satisfied: BTreeSet::new(),
            withheld: BTreeSet::new(),
            moved: Vec::new(),
            seen: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Makes room for a row and stores its value and tuple.
    pub fn admit(&mut self, row: u32, value: i32, tuple: u64) {
        let at = row as usize;
        if self.value.len() <= at {
            self.value.resize(at + 1, NONE);
            self.tuple.resize(at + 1, 0);
            self.class_of.resize(at + 1, NONE);
        }
        self.value[at] = value;
        self.tuple[at] = tuple;
    }

    pub fn open(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.classes.push(Class::default());
            self.classes.len() as u32 - 1
        })
    }

    /// Makes room for classes numbered below `count`; empty ones are free.
    pub fn reserve(&mut self, count: usize, used: &[i32]) {
        self.classes.resize(count, Class::default());
        let mut taken = vec![false; count];
        used.iter()
            .filter(|&&c| c != NONE)
            .for_each(|&c| taken[c as usize] = true);
        self.free = (0..count as u32).filter(|&c| !taken[c as usize]).collect();
    }

    pub fn is_satisfied(&self, class: u32) -> bool {
        self.classes[class as usize].values.len() >= self.l
    }

    pub fn size(&self, class: u32) -> u32 {
        self.classes[class as usize].rows.len() as u32
    }

    /// Adds a row to a class and updates the list of satisfied classes.
    pub fn add(&mut self, class: u32, row: u32) {
        self.satisfied.remove(&(self.size(class), class));
        let at = row as usize;
        let entry = &mut self.classes[class as usize];
        entry.tuples.push(self.tuple[at]);
        entry.rows.push(row);
        entry.count(self.value[at]);
        self.class_of[at] = class as i32;
        self.withheld.remove(&row);
        self.moved.push(row);
        self.seen.push(class);
        if self.is_satisfied(class) {
            self.satisfied.insert((self.size(class), class));
        }
    }

    /// Removes a row from its class; a class that falls below l leaves the list of satisfied ones.
    pub fn remove(&mut self, class: u32, row: u32) {
        self.satisfied.remove(&(self.size(class), class));
        let entry = &mut self.classes[class as usize];
        let at = entry
            .rows
            .iter()
            .position(|&r| r == row)
            .expect("the row is a member");
        entry.tuples.swap_remove(at);
        entry.rows.swap_remove(at);
        entry.discount(self.value[row as usize]);
        self.class_of[row as usize] = NONE;
        self.seen.push(class);
        if self.is_satisfied(class) {
            self.satisfied.insert((self.size(class), class));
        }
    }

    /// Closes a class and returns its rows.
    pub fn dissolve(&mut self, class: u32) -> Vec<u32> {
        self.satisfied.remove(&(self.size(class), class));
        let entry = std::mem::take(&mut self.classes[class as usize]);
        self.free.insert(class);
        let mut rows = entry.rows;
        rows.sort_unstable();
        for &row in &rows {
            self.class_of[row as usize] = NONE;
        }
        self.tally.dissolved += usize::from(!rows.is_empty());
        rows
    }

    pub fn smallest(&self) -> Option<u32> {
        self.satisfied.first().map(|&(_, class)| class)
    }

    /// No class can take the row now: it is withheld until a later change.
    pub fn withhold(&mut self, row: u32) {
        self.withheld.insert(row);
        self.moved.push(row);
    }

    pub fn drop_row(&mut self, row: u32) {
        self.withheld.remove(&row);
        self.value[row as usize] = NONE;
    }

    pub fn live(&self, row: u32) -> bool {
        self.value.get(row as usize).is_some_and(|&v| v != NONE)
    }
}
