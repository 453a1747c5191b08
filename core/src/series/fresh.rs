//! First groups: records without a past, partitioned into groups of exactly m with m different colours.
//!
//! The colour is the sensitive value (m-unique), or the component of the update graph (disjoint candidate update
//! sets). Halves are cut Mondrian-wise along the axis with the best split score; a cut is legal when no colour
//! fills more places than its half has groups.

use std::collections::HashMap;

use rand_chacha::ChaCha20Rng;

use super::bucket::Slot;
use super::space::Space;
use crate::random::{below, shuffle};

/// What a first group must look like.
pub struct Plan<'a> {
    pub m: usize,
    pub colours: &'a [i32],
}

impl Plan<'_> {
    fn of(&self, slot: &Slot) -> i32 {
        self.colours[slot.value as usize]
    }
}

/// Counts of each colour among the slots.
fn tally(plan: &Plan, slots: &[Slot]) -> HashMap<i32, usize> {
    let mut count = HashMap::new();
    for slot in slots {
        *count.entry(plan.of(slot)).or_insert(0) += 1;
    }
    count
}

/// Adds counterfeits until the slots can be cut into groups of m; false when the domain has too few colours.
pub fn pad(plan: &Plan, slots: &mut Vec<Slot>, rng: &mut ChaCha20Rng) -> bool {
    let mut count = tally(plan, slots);
    let top = count.values().copied().max().unwrap_or(0);
    let groups = top.max(slots.len().div_ceil(plan.m));
    let real = slots.len();
    let mut pool: Vec<u32> = (0..plan.colours.len() as u32).collect();
    shuffle(&mut pool, rng);
    let mut at = 0;
    while slots.len() < groups * plan.m {
        // One round over the pool per colour at most: a colour that is full is skipped for good.
        let Some(&value) = pool.get(at) else {
            return false;
        };
        let used = count.entry(plan.colours[value as usize]).or_insert(0);
        if *used >= groups {
            at += 1;
            continue;
        }
        *used += 1;
        let donor = slots[below(rng, real)].donor;
        slots.push(Slot {
            row: -1,
            value,
            donor,
        });
        let rest = pool.len() - at;
        let swap = at + below(rng, rest);
        pool.swap(at, swap);
    }
    true
}

/// Cuts padded slots into groups of m; writes them one after the other.
pub fn groups(plan: &Plan, space: &Space, slots: &mut [Slot], out: &mut Vec<Vec<Slot>>) {
    let count = slots.len() / plan.m;
    if count <= 1 {
        if count == 1 {
            out.push(slots.to_vec());
        }
        return;
    }
    match best_cut(plan, space, slots) {
        Some((mut left, mut right)) => {
            groups(plan, space, &mut left, out);
            groups(plan, space, &mut right, out);
        }
        None => deal(plan, slots, count, out),
    }
}

/// Deals the slots, sorted by colour, to the groups in turn: no colour meets itself.
fn deal(plan: &Plan, slots: &mut [Slot], count: usize, out: &mut Vec<Vec<Slot>>) {
    slots.sort_by_key(|slot| plan.of(slot));
    let mut dealt = vec![Vec::with_capacity(plan.m); count];
    for (i, slot) in slots.iter().enumerate() {
        dealt[i % count].push(*slot);
    }
    out.append(&mut dealt);
}

fn best_cut(plan: &Plan, space: &Space, slots: &[Slot]) -> Option<(Vec<Slot>, Vec<Slot>)> {
    let whole = space.widths(slots.iter());
    let mut best: Option<(f32, Vec<Slot>, Vec<Slot>)> = None;
    for axis in (0..space.axes).filter(|&a| whole[a] > 0.0) {
        let Some((left, right)) = cut(plan, space, slots, axis) else {
            continue;
        };
        let score = space.score(left.iter(), &whole) + space.score(right.iter(), &whole);
        if best.as_ref().is_none_or(|(s, _, _)| score < *s) {
            best = Some((score, left, right));
        }
    }
    best.map(|(_, left, right)| (left, right))
}

/// Halves the slots along one axis and swaps what is too frequent on one side; None when swaps do not suffice.
fn cut(plan: &Plan, space: &Space, slots: &[Slot], axis: usize) -> Option<(Vec<Slot>, Vec<Slot>)> {
    let count = slots.len() / plan.m;
    let (lower, upper) = (count / 2, count - count / 2);
    let mut left = slots.to_vec();
    let by = |a: &Slot, b: &Slot| space.at(a, axis).total_cmp(&space.at(b, axis));
    left.select_nth_unstable_by(lower * plan.m, by);
    let mut right = left.split_off(lower * plan.m);
    let mut in_left = tally(plan, &left);
    let mut in_right = tally(plan, &right);
    let legal = |l: &HashMap<i32, usize>, r: &HashMap<i32, usize>| {
        l.values().all(|&n| n <= lower) && r.values().all(|&n| n <= upper)
    };
    if legal(&in_left, &in_right) {
        return Some((left, right));
    }
    left.sort_by(|a, b| by(b, a)); // nearest to the cut first, on both sides
    right.sort_by(by);
    swap_out(
        plan,
        (&mut left, &mut in_left, lower),
        (&mut right, &mut in_right, upper),
    );
    swap_out(
        plan,
        (&mut right, &mut in_right, upper),
        (&mut left, &mut in_left, lower),
    );
    legal(&in_left, &in_right).then_some((left, right))
}

type Side<'a> = (&'a mut Vec<Slot>, &'a mut HashMap<i32, usize>, usize);

/// Exchanges slots whose colour overflows `from` against slots of `to` whose colour has room in `from`.
fn swap_out(plan: &Plan, from: Side, to: Side) {
    let (from, in_from, room_from) = from;
    let (to, in_to, room_to) = to;
    let mut next = 0;
    for slot in from.iter_mut() {
        let colour = plan.of(slot);
        if in_from[&colour] <= room_from || in_to.get(&colour).copied().unwrap_or(0) >= room_to {
            continue;
        }
        let fits = |other: &Slot| in_from.get(&plan.of(other)).copied().unwrap_or(0) < room_from;
        let Some(step) = to[next..].iter().position(fits) else {
            return;
        };
        next += step;
        let other = plan.of(&to[next]);
        std::mem::swap(slot, &mut to[next]);
        next += 1;
        *in_from.get_mut(&colour).expect("counted") -= 1;
        *in_from.entry(other).or_insert(0) += 1;
        *in_to.get_mut(&other).expect("counted") -= 1;
        *in_to.entry(colour).or_insert(0) += 1;
    }
}
