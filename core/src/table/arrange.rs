//! The order of rows and groups that follows from what is published of the rows alone.
//!
//! Inside a group rows stand by their key; groups are numbered in the order of their lists of keys.
//! What is alike keeps the order it came in.

/// The rows in their order, and the new number of each group, which are all of `0..count`.
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
    // The first key of each list stands beside its group: most are told apart by it, without a look at the rows.
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

/// Where the rows of each group begin, and the end of the last.
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
    fn rows_stand_by_key_and_groups_by_their_lists() {
        let (order, numbers) = arrange(&[5, 1, 1, 9, 1], &[0, 0, 1, 1, 2], 3);
        // The lists are (1, 5), (1, 9) and (1): the shorter of two that begin alike comes first.
        assert_eq!(numbers, [1, 2, 0]);
        assert_eq!(order, [4, 1, 0, 2, 3]);
    }

    #[test]
    fn what_is_alike_keeps_its_order() {
        let (order, numbers) = arrange(&[3, 3, 3, 3], &[1, 0, 1, 0], 2);
        assert_eq!(numbers, [0, 1]);
        assert_eq!(order, [1, 3, 0, 2]);
    }
}
