//! First groups: records without a past, partitioned into groups of exactly m with m different colors.
//!
//! The color is the sensitive value (m-unique), or the component of the update graph (disjoint candidate update sets).
//! There are two methods. Mondrian halves along the axis with the best split score; a cut is legal if no color fills
//! more places than its half has groups. Dealing lays the records, sorted by value, out in m columns, so that few
//! signatures occur and later buckets are large; it is used where signatures would be many.

use std::collections::HashMap;

use rand_chacha::ChaCha20Rng;

use super::bucket::Slot;
use super::knowledge::Knowledge;
use super::space::Space;
use super::split::{Entries, split};
use crate::random::{below, shuffle};

/// The requirements of a first group.
pub struct Plan<'a> {
    pub m: usize,
    pub colors: &'a [i32],
    pub knowledge: &'a Knowledge,
}

impl Plan<'_> {
    fn of(&self, slot: &Slot) -> i32 {
        self.colors[slot.value as usize]
    }
}

/// Counts of each color among the slots.
fn tally(plan: &Plan, slots: &[Slot]) -> HashMap<i32, usize> {
    let mut count = HashMap::new();
    for slot in slots {
        *count.entry(plan.of(slot)).or_insert(0) += 1;
    }
    count
}

/// Counterfeits that groups of m with different colors would need.
fn count_missing(plan: &Plan, slots: &[Slot]) -> usize {
    let top = tally(plan, slots).values().copied().max().unwrap_or(0);
    top.max(slots.len().div_ceil(plan.m)) * plan.m - slots.len()
}

/// Removes groups of a single color until no color is too frequent for the rest; None if that is impossible.
///
/// A group of one color hides its members among one another as well as a group of all different colors.
fn pure(plan: &Plan, slots: &[Slot]) -> Option<(Vec<Slot>, Vec<Vec<Slot>>)> {
    let mut rest = slots.to_vec();
    let mut taken = Vec::new();
    loop {
        let count = tally(plan, &rest);
        let (&color, &top) = count.iter().max_by_key(|&(c, n)| (*n, -*c))?;
        let fair = rest.len() / plan.m;
        if top <= fair {
            return Some((rest, taken));
        }
        let groups = (top - fair).div_ceil(plan.m - 1);
        let (chosen, left) = choose(plan, rest, color, groups)?;
        rest = left;
        taken.push(chosen);
    }
}

/// Splits off `groups * m` slots of a color with no value more often than `groups`.
fn choose(
    plan: &Plan,
    slots: Vec<Slot>,
    color: i32,
    groups: usize,
) -> Option<(Vec<Slot>, Vec<Slot>)> {
    let mut used: HashMap<u32, usize> = HashMap::new();
    let (mut chosen, mut left) = (Vec::new(), Vec::new());
    for slot in slots {
        let n = used.entry(slot.value).or_insert(0);
        if plan.of(&slot) == color && *n < groups && chosen.len() < groups * plan.m {
            *n += 1;
            chosen.push(slot);
        } else {
            left.push(slot);
        }
    }
    (chosen.len() == groups * plan.m).then_some((chosen, left))
}

/// First groups of all slots; false if the domain has too few colors.
///
/// With `relax` the colors are optional: too frequent colors fill groups of their own, and if counterfeits would still
/// be needed, different values suffice.
pub fn first_groups(
    plan: &Plan,
    relax: bool,
    space: &Space,
    mut slots: Vec<Slot>,
    rng: &mut ChaCha20Rng,
    out: &mut Vec<Vec<Slot>>,
) -> bool {
    if slots.is_empty() {
        return true;
    }
    let identity: Vec<i32> = (0..plan.colors.len() as i32).collect();
    let by_value = Plan {
        m: plan.m,
        colors: &identity,
        knowledge: plan.knowledge,
    };
    let mut by = plan;
    if relax {
        shuffle(&mut slots, rng);
        match pure(plan, &slots) {
            Some((rest, taken))
                if count_missing(plan, &rest) <= count_missing(&by_value, &slots) =>
            {
                slots = rest;
                for mut part in taken {
                    form(&by_value, space, &mut part, out);
                }
            }
            _ => by = &by_value,
        }
    }
    if !pad(by, &mut slots, rng) {
        return false;
    }
    form(by, space, &mut slots, out);
    true
}

/// Adds counterfeits until the slots can be cut into groups of m; false if the domain has too few colors.
fn pad(plan: &Plan, slots: &mut Vec<Slot>, rng: &mut ChaCha20Rng) -> bool {
    let mut count = tally(plan, slots);
    let top = count.values().copied().max().unwrap_or(0);
    let groups = top.max(slots.len().div_ceil(plan.m));
    let real = slots.len();
    let mut pool: Vec<u32> = (0..plan.colors.len() as u32).collect();
    shuffle(&mut pool, rng);
    let mut at = 0;
    while slots.len() < groups * plan.m {
        // At most one round over the pool per color: a full color is skipped for good.
        let Some(&value) = pool.get(at) else {
            return false;
        };
        let used = count.entry(plan.colors[value as usize]).or_insert(0);
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

/// Chooses the method by the number of signatures that could occur.
fn form(plan: &Plan, space: &Space, slots: &mut [Slot], out: &mut Vec<Vec<Slot>>) {
    const GROUPS_PER_SIGNATURE: f64 = 4.0;
    let mut ids: Vec<u32> = slots
        .iter()
        .map(|s| plan.knowledge.id[s.value as usize])
        .collect();
    ids.sort_unstable();
    ids.dedup();
    let signatures: f64 = (1..=plan.m)
        .map(|i| (ids.len() + i - 1) as f64 / i as f64)
        .product();
    if signatures * GROUPS_PER_SIGNATURE > (slots.len() / plan.m) as f64 {
        deal_columns(plan, space, slots, out);
    } else {
        groups(plan, space, slots, out);
    }
}

/// Lays the sorted slots out in m columns and splits each run of rows with the same values along the axes.
fn deal_columns(plan: &Plan, space: &Space, slots: &mut [Slot], out: &mut Vec<Vec<Slot>>) {
    slots.sort_by_key(|slot| (plan.of(slot), slot.value));
    let count = slots.len() / plan.m;
    let columns: Vec<&[Slot]> = slots.chunks(count).collect();
    let mut begin = 0;
    for row in 1..=count {
        let same = row < count && columns.iter().all(|c| c[row].value == c[begin].value);
        if !same {
            let run: Entries = columns.iter().map(|c| c[begin..row].to_vec()).collect();
            split(space, run, out);
            begin = row;
        }
    }
}

/// Cuts padded slots into groups of m; writes them one after the other.
fn groups(plan: &Plan, space: &Space, slots: &mut [Slot], out: &mut Vec<Vec<Slot>>) {
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

/// Deals the slots, sorted by color, to the groups in turn: no color meets itself.
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

/// Halves the slots along one axis and swaps colors that are too frequent on one side; None if swaps do not suffice.
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

/// Exchanges slots whose color overflows `from` for slots of `to` whose color has room in `from`.
fn swap_out(plan: &Plan, from: Side, to: Side) {
    let (from, in_from, room_from) = from;
    let (to, in_to, room_to) = to;
    let mut next = 0;
    for slot in from.iter_mut() {
        let color = plan.of(slot);
        if in_from[&color] <= room_from || in_to.get(&color).copied().unwrap_or(0) >= room_to {
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
        *in_from.get_mut(&color).expect("counted") -= 1;
        *in_from.entry(other).or_insert(0) += 1;
        *in_to.get_mut(&other).expect("counted") -= 1;
        *in_to.entry(color).or_insert(0) += 1;
    }
}
