//! Canonical order: candidates are published in the order of their codes, never in the person's permutation.

/// Sets up to this size are sorted without a branch.
const LANES: usize = 16;

/// Sorts the candidates of one record.
///
/// In a small set, the place of a candidate is the number of candidates before it. Counting all of them costs less than
/// mispredicted branches. The slot number breaks ties between equal candidates.
#[inline]
pub fn sort(candidates: &mut [u16]) {
    if candidates.len() > LANES {
        return candidates.sort_unstable();
    }
    let mut keys = [i32::MAX; LANES];
    for (slot, (key, &code)) in keys.iter_mut().zip(candidates.iter()).enumerate() {
        *key = i32::from(code) << 4 | slot as i32;
    }
    let mut places = [0; LANES];
    for &other in &keys[..candidates.len()] {
        for (place, &key) in places.iter_mut().zip(&keys) {
            *place += i32::from(other < key);
        }
    }
    let codes = keys.map(|key| (key >> 4) as u16);
    for (&place, &code) in places.iter().zip(&codes).take(candidates.len()) {
        candidates[place as usize] = code;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_any_size_are_sorted() {
        for size in 0..40_u64 {
            for seed in 0..50_u64 {
                let code =
                    |i: u64| ((i * 7919 + seed * 104_729) * 31 % 65_536 % (1 + 3 * seed)) as u16;
                let mut codes: Vec<u16> = (0..size).map(code).collect();
                codes.extend([u16::MAX, 0, u16::MAX]);
                let mut sorted = codes.clone();
                sorted.sort_unstable();
                sort(&mut codes);
                assert_eq!(codes, sorted);
            }
        }
    }
}
