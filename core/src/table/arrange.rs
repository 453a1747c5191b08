//! An order of rows and groups that depends on the published columns only.
//!
//! Within a group, rows are sorted by key. Groups are numbered in the order of their lists of keys.
//! Equal rows and groups keep their input order.

/// The row numbers in the new order, and the new number (`0..count`) of each group.
pub fn arrange(keys: &[i64], groups: &[i64], count: usize) -> (Vec<i64>, Vec<i64>) {
    let starts = starts(groups, count);
    let mut next = starts.clone();
    let mut rows = vec![(0i64, 0i64); keys.len()];
    for (row, (&key, &group)) in keys.iter().zip(groups).enumerate() {
        rows[next[group as usize]] = (key, row as i64);
        next[group as usize] += 1;
    }
    let list = |group: usize| starts[group]..starts[group + 1];
    for group in 0..count {
        rows[list(group)].sort_unstable();
    }
    let keys_of = |group: usize| rows[list(group)].iter().map(|&(key, _)| key);
    // Each list is stored with its first key, which decides most comparisons without access to the rows.
    let first = |group: usize| keys_of(group).next().unwrap_or(i64::MIN);
    let mut lists: Vec<(i64, usize)> = (0..count).map(|group| (first(group), group)).collect();
    lists.sort_by(|a, b| (a.0.cmp(&b.0)).then_with(|| keys_of(a.1).cmp(keys_of(b.1))));
    let mut numbers = vec![0i64; count];
    for (number, &(_, group)) in lists.iter().enumerate() {
        numbers[group] = number as i64;
    }
    let listed = lists.iter().flat_map(|&(_, group)| &rows[list(group)]);
    (listed.map(|&(_, row)| row).collect(), numbers)
}

/// The start of each group's rows, and the end of the last.
fn starts(groups: &[i64], count: usize) -> Vec<usize> {
    let mut starts = vec![0usize; count + 1];
    for &group in groups {
        starts[group as usize + 1] += 1;
    }
    for group in 0..count {
        starts[group + 1] += starts[group];
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_key_and_groups_by_their_lists() {
        let (order, numbers) = arrange(&[5, 1, 1, 9, 1], &[0, 0, 1, 1, 2], 3);
        // The lists are (1, 5), (1, 9) and (1): of two lists with a common prefix the shorter comes first.
        assert_eq!(numbers, [1, 2, 0]);
        assert_eq!(order, [4, 1, 0, 2, 3]);
    }

    #[test]
    fn equal_rows_and_groups_keep_their_order() {
        let (order, numbers) = arrange(&[3, 3, 3, 3], &[1, 0, 1, 0], 2);
        assert_eq!(numbers, [0, 1]);
        assert_eq!(order, [1, 3, 0, 2]);
    }
}
