//! What a search may use, and whether it is still wanted: every loop that can be long asks here.
//!
//! A watch and those made from it share one flag of cancelling and one account of progress; each has a deadline of its
//! own, never later than that of the watch it was made from.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How far the searches are: the nodes and the bound of the last one, the best score of all.
struct Account {
    cancelled: AtomicBool,
    checked: AtomicU64,
    best: AtomicU64,
    bound: AtomicU64,
}

impl Default for Account {
    fn default() -> Self {
        let unknown = || AtomicU64::new(f64::NAN.to_bits());
        Self {
            cancelled: AtomicBool::new(false),
            checked: AtomicU64::new(0),
            best: unknown(),
            bound: unknown(),
        }
    }
}

#[derive(Default)]
pub struct Watch {
    account: Arc<Account>,
    deadline: Option<Instant>,
    bytes: Option<usize>,
    stopped: AtomicBool,
}

impl Watch {
    /// A watch with less time or room, counted from now.
    pub fn within(&self, time: Option<Duration>, bytes: Option<usize>) -> Self {
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        Self {
            account: Arc::clone(&self.account),
            deadline: [self.deadline, deadline].into_iter().flatten().min(),
            bytes: [self.bytes, bytes].into_iter().flatten().min(),
            stopped: AtomicBool::new(false),
        }
    }

    pub fn cancel(&self) {
        self.account.cancelled.store(true, Relaxed);
    }

    pub fn cancelled(&self) -> bool {
        self.account.cancelled.load(Relaxed)
    }

    /// Whether the search must end with what it has.
    pub fn late(&self) -> bool {
        let late = self.cancelled() || self.deadline.is_some_and(|end| Instant::now() >= end);
        if late {
            self.stopped.store(true, Relaxed);
        }
        late
    }

    /// The same for a search that keeps this many bytes.
    pub fn late_with(&self, bytes: impl FnOnce() -> usize) -> bool {
        let full = self.bytes.is_some_and(|most| bytes() > most);
        if full {
            self.stopped.store(true, Relaxed);
        }
        full || self.late()
    }

    /// Whether a search was told to end early.
    pub fn stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Time until the deadline; none where there is no deadline.
    pub fn left(&self) -> Option<Duration> {
        self.deadline
            .map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Most bytes that a search may keep beside the table.
    pub fn bytes(&self) -> usize {
        self.bytes.unwrap_or(usize::MAX)
    }

    pub fn limited(&self) -> bool {
        self.deadline.is_some() || self.bytes.is_some()
    }

    /// What a search has reached: nodes checked, the best score, and the least that is possible; not a number where
    /// nothing is known.
    pub fn tell(&self, checked: u64, best: f64, bound: f64) {
        self.account.checked.store(checked, Relaxed);
        self.account.bound.store(bound.to_bits(), Relaxed);
        self.tell_best(best);
    }

    /// A score; the least one is kept.
    pub fn tell_best(&self, best: f64) {
        let less = |bits: u64| Some(f64::from_bits(bits).min(best).to_bits());
        // The closure never refuses. Its newer name, try_update, is not known to the oldest Rust that builds this.
        #[allow(deprecated)]
        let _ = self.account.best.fetch_update(Relaxed, Relaxed, less);
    }

    /// Nodes checked, best score and bound; a bound that another search has beaten says nothing.
    pub fn told(&self) -> (u64, f64, f64) {
        let number = |bits: &AtomicU64| f64::from_bits(bits.load(Relaxed));
        let account = &self.account;
        let (best, bound) = (number(&account.best), number(&account.bound));
        let bound = if bound <= best { bound } else { f64::NAN };
        (account.checked.load(Relaxed), best, bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_has_more_time_than_the_whole() {
        let whole = Watch::default().within(Some(Duration::ZERO), None);
        let part = whole.within(Some(Duration::from_secs(3600)), None);
        assert!(part.late() && part.stopped());
        assert!(!whole.stopped());
        assert!(!Watch::default().late());
    }

    #[test]
    fn one_word_cancels_all_parts() {
        let whole = Watch::default();
        let part = whole.within(None, None);
        assert!(!part.late());
        whole.cancel();
        assert!(part.late());
    }

    #[test]
    fn the_best_score_of_all_searches_is_told_and_a_beaten_bound_is_not() {
        let watch = Watch::default();
        assert!(watch.told().1.is_nan());
        watch.tell(7, 0.5, 0.4);
        assert_eq!(watch.told(), (7, 0.5, 0.4));
        watch.within(None, None).tell_best(0.1);
        watch.tell_best(f64::NAN);
        let (checked, best, bound) = watch.told();
        assert_eq!((checked, best), (7, 0.1));
        assert!(bound.is_nan());
    }

    #[test]
    fn a_search_that_keeps_too_much_must_end() {
        let watch = Watch::default().within(None, Some(10));
        assert!(!watch.late_with(|| 10));
        assert!(watch.late_with(|| 11));
    }
}
