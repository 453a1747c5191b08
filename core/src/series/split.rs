//! Phase 3: a balanced bucket is halved until every entry has one record; each final part is a group.
//!
//! A half is legal if its entries are equally long and no value fills more places than that. By König's theorem such a
//! half always splits further, so no search is needed: if no axis gives a legal cut, an edge coloring does.

use std::collections::HashMap;

use super::bucket::Slot;
use super::color::color;
use super::space::Space;

/// Entries of a bucket, each with the same number of slots.
pub type Entries = Vec<Vec<Slot>>;

/// Splits a balanced bucket into groups that take one slot from each entry.
pub fn split(space: &Space, entries: Entries, out: &mut Vec<Vec<Slot>>) {
    let delta = entries[0].len();
    if delta == 1 {
        out.push(entries.iter().map(|e| e[0]).collect());
        return;
    }
    let (left, right) = best_cut(space, &entries).unwrap_or_else(|| color_cut(space, &entries));
    split(space, left, out);
    split(space, right, out);
}

fn best_cut(space: &Space, entries: &Entries) -> Option<(Entries, Entries)> {
    let whole = space.widths(entries.iter().flatten());
    let mut best: Option<(f32, Entries, Entries)> = None;
    for axis in (0..space.axes).filter(|&a| whole[a] > 0.0) {
        let Some((left, right)) = cut(entries, |slot| space.at(slot, axis)) else {
            continue;
        };
        let score = part_score(space, &left, &whole) + part_score(space, &right, &whole);
        if best.as_ref().is_none_or(|(s, _, _)| score < *s) {
            best = Some((score, left, right));
        }
    }
    best.map(|(_, left, right)| (left, right))
}

fn part_score(space: &Space, part: &Entries, whole: &[f32]) -> f32 {
    let flat: Vec<Slot> = part.iter().flatten().copied().collect();
    space.score(flat.iter(), whole)
}

/// Uses of each value in each half.
struct Halves {
    used: [HashMap<u32, usize>; 2],
    room: [usize; 2],
}

impl Halves {
    fn of(&self, side: usize, value: u32) -> usize {
        self.used[side].get(&value).copied().unwrap_or(0)
    }

    fn legal(&self) -> bool {
        (0..2).all(|s| self.used[s].values().all(|&n| n <= self.room[s]))
    }

    fn shift(&mut self, value: u32, from: usize) {
        *self.used[from].get_mut(&value).expect("counted") -= 1;
        *self.used[1 - from].entry(value).or_insert(0) += 1;
    }
}

/// Cuts every entry at the same rank of a key, then repairs values that are too frequent in a half.
fn cut(entries: &Entries, key: impl Fn(&Slot) -> f32) -> Option<(Entries, Entries)> {
    let delta = entries[0].len();
    let at = delta / 2;
    let mut left = entries.clone();
    let mut right = Vec::with_capacity(entries.len());
    let mut halves = Halves {
        used: [HashMap::new(), HashMap::new()],
        room: [at, delta - at],
    };
    for entry in &mut left {
        entry.sort_by(|a, b| key(a).total_cmp(&key(b)));
        let rest = entry.split_off(at);
        entry.reverse(); // nearest to the cut first, on both sides
        for slot in entry.iter() {
            *halves.used[0].entry(slot.value).or_insert(0) += 1;
        }
        for slot in &rest {
            *halves.used[1].entry(slot.value).or_insert(0) += 1;
        }
        right.push(rest);
    }
    if !halves.legal() {
        repair(&mut left, &mut right, 0, &mut halves);
        repair(&mut right, &mut left, 1, &mut halves);
    }
    halves.legal().then_some((left, right))
}

/// Exchanges slots of overflowing values in half `side` within their entry.
fn repair(from: &mut Entries, to: &mut Entries, side: usize, halves: &mut Halves) {
    for (mine, theirs) in from.iter_mut().zip(to.iter_mut()) {
        for slot in mine.iter_mut() {
            if halves.of(side, slot.value) <= halves.room[side]
                || halves.of(1 - side, slot.value) >= halves.room[1 - side]
            {
                continue;
            }
            let fits = |other: &Slot| {
                other.value != slot.value && halves.of(side, other.value) < halves.room[side]
            };
            if let Some(other) = theirs.iter().position(fits) {
                halves.shift(slot.value, side);
                halves.shift(theirs[other].value, 1 - side);
                std::mem::swap(slot, &mut theirs[other]);
            }
        }
    }
}

/// A cut that always exists: color the bucket into groups, sort them along the widest axis, halve the list.
fn color_cut(space: &Space, entries: &Entries) -> (Entries, Entries) {
    let (m, delta) = (entries.len(), entries[0].len());
    let mut codes: HashMap<u32, usize> = HashMap::new();
    let mut edges = Vec::with_capacity(m * delta);
    for (e, entry) in entries.iter().enumerate() {
        for slot in entry {
            let next = codes.len();
            edges.push((*codes.entry(slot.value).or_insert(next), e));
        }
    }
    let colors = color(&edges, codes.len(), m, delta);
    let mut groups: Vec<Vec<Slot>> = vec![vec![entries[0][0]; m]; delta];
    for (i, (&(_, e), &c)) in edges.iter().zip(&colors).enumerate() {
        groups[c][e] = entries[e][i - e * delta];
    }
    let whole = space.widths(entries.iter().flatten());
    let axis = (0..space.axes)
        .max_by(|&a, &b| whole[a].total_cmp(&whole[b]))
        .unwrap_or(0);
    if space.axes > 0 {
        let mean = |g: &Vec<Slot>| g.iter().map(|s| space.at(s, axis)).sum::<f32>();
        groups.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    }
    let turn = |part: &[Vec<Slot>]| {
        (0..m)
            .map(|e| part.iter().map(|g| g[e]).collect())
            .collect()
    };
    (turn(&groups[..delta / 2]), turn(&groups[delta / 2..]))
}
