//! Baseline: Mondrian cuts with at least l distinct values per part, anew for each release.

use std::collections::HashSet;

use super::bucket::Slot;
use super::space::Space;

fn diverse(part: &[Slot], l: usize) -> bool {
    let mut seen = HashSet::new();
    part.iter().any(|slot| {
        seen.insert(slot.value);
        seen.len() >= l
    })
}

fn halve(space: &Space, part: &mut [Slot], l: usize, out: &mut Vec<Vec<i32>>) {
    let whole = space.widths(part.iter());
    let mut axes: Vec<usize> = (0..space.axes).filter(|&a| whole[a] > 0.0).collect();
    axes.sort_by(|&a, &b| whole[b].total_cmp(&whole[a]));
    if part.len() >= 2 * l {
        for axis in axes {
            let mid = part.len() / 2;
            part.select_nth_unstable_by(mid, |a, b| {
                space.at(a, axis).total_cmp(&space.at(b, axis))
            });
            let (left, right) = part.split_at_mut(mid);
            if diverse(left, l) && diverse(right, l) {
                halve(space, left, l, out);
                halve(space, right, l, out);
                return;
            }
        }
    }
    out.push(part.iter().map(|slot| slot.row).collect());
}

/// The group of each row and the number of groups; -1 everywhere if the table itself is not l-diverse.
pub fn l_diverse(values: &[i32], space: &Space, l: usize) -> (Vec<i32>, i32) {
    let slot = |(row, &value): (usize, &i32)| Slot {
        row: row as i32,
        value: value as u32,
        donor: row as u32,
    };
    let mut slots: Vec<Slot> = values.iter().enumerate().map(slot).collect();
    let mut groups = vec![-1i32; values.len()];
    let mut parts = Vec::new();
    if diverse(&slots, l) {
        halve(space, &mut slots, l, &mut parts);
    }
    for (g, rows) in parts.iter().enumerate() {
        rows.iter().for_each(|&row| groups[row as usize] = g as i32);
    }
    (groups, parts.len() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_near_and_have_l_values() {
        let points: Vec<f32> = (0..8).map(|i| i as f32).collect();
        let space = Space {
            points: &points,
            axes: 1,
        };
        let (groups, count) = l_diverse(&[0, 1, 0, 1, 0, 1, 0, 1], &space, 2);
        assert_eq!(count, 4);
        assert!((0..4).all(|i| groups[2 * i] == groups[2 * i + 1]));
        let (_, count) = l_diverse(&[0, 1, 0, 1, 0, 0, 0, 0], &space, 2);
        assert_eq!(count, 1, "the right half would have one value");
        let (groups, count) = l_diverse(&[0; 8], &space, 2);
        assert_eq!((groups, count), (vec![-1; 8], 0));
    }
}
