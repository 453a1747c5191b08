//! The limits of a search, and whether it is cancelled: every long loop asks here.
//!
//! A token and those derived from it share one cancellation flag and one progress. Each has its own deadline, never
//! later than that of the token it comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Progress of the searches: nodes and bound of the last one, the best score of all.
struct Progress {
    cancelled: AtomicBool,
    checked: AtomicU64,
    best: AtomicU64,
    bound: AtomicU64,
}

impl Default for Progress {
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
pub struct CancellationToken {
    shared: Arc<Progress>,
    deadline: Option<Instant>,
    bytes: Option<usize>,
    stopped: AtomicBool,
}

impl CancellationToken {
    /// A token with less time or memory, counted from now.
    pub fn with_limits(&self, time: Option<Duration>, bytes: Option<usize>) -> Self {
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        Self {
            shared: Arc::clone(&self.shared),
            deadline: [self.deadline, deadline].into_iter().flatten().min(),
            bytes: [self.bytes, bytes].into_iter().flatten().min(),
            stopped: AtomicBool::new(false),
        }
    }

    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Relaxed)
    }

    /// Whether the search must end with what it has.
    pub fn is_late(&self) -> bool {
        let is_late = self.is_cancelled() || self.deadline.is_some_and(|end| Instant::now() >= end);
        if is_late {
            self.stopped.store(true, Relaxed);
        }
        is_late
    }

    /// The same for a search that uses this many bytes.
    pub fn is_late_with(&self, bytes: impl FnOnce() -> usize) -> bool {
        let full = self.bytes.is_some_and(|most| bytes() > most);
        if full {
            self.stopped.store(true, Relaxed);
        }
        full || self.is_late()
    }

    /// Whether a search ended early.
    pub fn has_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Time until the deadline; none without a deadline.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline
            .map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Most bytes that a search may use besides the table.
    pub fn bytes(&self) -> usize {
        self.bytes.unwrap_or(usize::MAX)
    }

    pub fn has_limits(&self) -> bool {
        self.deadline.is_some() || self.bytes.is_some()
    }

    /// Reports the nodes checked, the best score and the lower bound; NaN if unknown.
    pub fn report(&self, checked: u64, best: f64, bound: f64) {
        self.shared.checked.store(checked, Relaxed);
        self.shared.bound.store(bound.to_bits(), Relaxed);
        self.report_loss(best);
    }

    /// Reports a score; the lowest one is kept.
    pub fn report_loss(&self, best: f64) {
        let less = |bits: u64| Some(f64::from_bits(bits).min(best).to_bits());
        // The closure never refuses. Its newer name, try_update, is unknown to the oldest supported Rust.
        #[allow(deprecated)]
        let _ = self.shared.best.fetch_update(Relaxed, Relaxed, less);
    }

    /// Nodes checked, best score and bound; a bound above the best score of another search says nothing.
    pub fn progress(&self) -> (u64, f64, f64) {
        let number = |bits: &AtomicU64| f64::from_bits(bits.load(Relaxed));
        let shared = &self.shared;
        let (best, bound) = (number(&shared.best), number(&shared.bound));
        let bound = if bound <= best { bound } else { f64::NAN };
        (shared.checked.load(Relaxed), best, bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_derived_token_never_has_more_time() {
        let whole = CancellationToken::default().with_limits(Some(Duration::ZERO), None);
        let part = whole.with_limits(Some(Duration::from_secs(3600)), None);
        assert!(part.is_late() && part.has_stopped());
        assert!(!whole.has_stopped());
        assert!(!CancellationToken::default().is_late());
    }

    #[test]
    fn one_cancellation_reaches_all_derived_tokens() {
        let whole = CancellationToken::default();
        let part = whole.with_limits(None, None);
        assert!(!part.is_late());
        whole.cancel();
        assert!(part.is_late());
    }

    #[test]
    fn progress_has_the_best_score_and_no_beaten_bound() {
        let cancellation = CancellationToken::default();
        assert!(cancellation.progress().1.is_nan());
        cancellation.report(7, 0.5, 0.4);
        assert_eq!(cancellation.progress(), (7, 0.5, 0.4));
        cancellation.with_limits(None, None).report_loss(0.1);
        cancellation.report_loss(f64::NAN);
        let (checked, best, bound) = cancellation.progress();
        assert_eq!((checked, best), (7, 0.1));
        assert!(bound.is_nan());
    }

    #[test]
    fn a_search_that_uses_too_much_memory_must_end() {
        let cancellation = CancellationToken::default().with_limits(None, Some(10));
        assert!(!cancellation.is_late_with(|| 10));
        assert!(cancellation.is_late_with(|| 11));
    }
}
