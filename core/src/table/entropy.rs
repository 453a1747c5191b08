//! Entropy l-diversity without rounding: H >= ln l exactly when n^n >= l^n * prod f^f.
//!
//! Floating point decides the clear cases. Near the boundary integers decide: equality by prime factors, order by long
//! multiplication. A class of more than `EXACT` records that is within rounding of the boundary, but not on it, is
//! rejected, which errs on the side of privacy.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Largest class whose powers are multiplied out.
const EXACT: u64 = 4096;
/// Relative distance from the boundary within which doubles are not trusted.
const DOUBT: f64 = 1e-11;

static X_LOG_X: LazyLock<Vec<f64>> = LazyLock::new(|| {
    (0..4096u32)
        .map(|x| f64::from(x) * f64::from(x.max(1)).ln())
        .collect()
});

pub fn x_log_x(x: u32) -> f64 {
    X_LOG_X
        .get(x as usize)
        .copied()
        .unwrap_or_else(|| f64::from(x) * f64::from(x).ln())
}

/// Whether counts `f` with sum `n` have entropy at least ln(num/den).
pub fn diverse(f: impl Iterator<Item = u32> + Clone, n: u32, num: u64, den: u64) -> bool {
    let have = x_log_x(n) - f.clone().map(x_log_x).sum::<f64>();
    let need = f64::from(n) * (num as f64 / den as f64).ln();
    let doubt = DOUBT * x_log_x(n).max(need.abs()).max(1.0);
    if (have - need).abs() > doubt {
        return have > need;
    }
    let mut powers = Powers::default();
    powers.multiply(u64::from(n) * den, i64::from(n));
    powers.multiply(num, -i64::from(n));
    f.for_each(|c| powers.multiply(u64::from(c), -i64::from(c)));
    powers.is_one() || (u64::from(n) <= EXACT && powers.exceeds_one())
}

/// A rational number as powers of primes.
#[derive(Default)]
struct Powers(BTreeMap<u64, i64>);

impl Powers {
    fn multiply(&mut self, mut x: u64, power: i64) {
        let mut p = 2;
        while p * p <= x {
            while x % p == 0 {
                *self.0.entry(p).or_default() += power;
                x /= p;
            }
            p += 1;
        }
        if x > 1 {
            *self.0.entry(x).or_default() += power;
        }
    }

    fn is_one(&self) -> bool {
        self.0.values().all(|&e| e == 0)
    }

    fn exceeds_one(&self) -> bool {
        let side = |sign: i64| {
            let mut product = vec![1u32];
            for (&p, &e) in &self.0 {
                for _ in 0..(e * sign).max(0) {
                    scale(&mut product, p);
                }
            }
            product
        };
        let (above, below) = (side(1), side(-1));
        above
            .len()
            .cmp(&below.len())
            .then_with(|| above.iter().rev().cmp(below.iter().rev()))
            .is_gt()
    }
}

/// Multiplies a number in base 2^32, least significant digit first.
fn scale(digits: &mut Vec<u32>, by: u64) {
    let mut carry = 0u128;
    for digit in digits.iter_mut() {
        carry += u128::from(*digit) * u128::from(by);
        *digit = carry as u32;
        carry >>= 32;
    }
    while carry > 0 {
        digits.push(carry as u32);
        carry >>= 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(counts: &[u32], num: u64, den: u64) -> bool {
        diverse(counts.iter().copied(), counts.iter().sum(), num, den)
    }

    #[test]
    fn equal_counts_lie_on_the_boundary_and_count_as_diverse() {
        for l in 2..20 {
            assert!(holds(&vec![7; l], l as u64, 1));
            assert!(!holds(&vec![7; l], 1000 * l as u64 + 1, 1000));
        }
    }

    #[test]
    fn integers_decide_where_doubles_cannot() {
        // One more record on one side: the entropy falls below ln 2 by less than doubles can resolve.
        assert!(holds(&[2000, 2000], 2, 1));
        assert!(!holds(&[2001, 2000], 2, 1));
        // 4^4 / (2^2 * 1 * 1) = 64 = l^4 at l = 8^(1/2): just below it holds, just above it fails.
        assert!(holds(&[2, 1, 1], 282_842, 100_000));
        assert!(!holds(&[2, 1, 1], 282_843, 100_000));
    }
}
