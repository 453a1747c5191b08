//! The cancellation token of a search in Python, and searches that Ctrl-C ends.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::py::refuse;
use crate::table::cancellation;

/// The limits that searches share, and whether they are cancelled.
#[pyclass(frozen, module = "reticent._core.table")]
#[derive(Default)]
pub struct CancellationToken(pub(super) cancellation::CancellationToken);

#[pymethods]
impl CancellationToken {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// A token with less time or memory, counted from now; both are cancelled together.
    #[pyo3(signature = (*, seconds=None, megabytes=None))]
    fn with_limits(&self, seconds: Option<f64>, megabytes: Option<usize>) -> PyResult<Self> {
        let time = seconds
            .map(Duration::try_from_secs_f64)
            .transpose()
            .map_err(|_| refuse("the time limit is not a duration"))?;
        let bytes = megabytes.map(|m| m.saturating_mul(1 << 20));
        Ok(Self(self.0.with_limits(time, bytes)))
    }

    /// Asks all searches of this token to end.
    fn cancel(&self) {
        self.0.cancel();
    }

    #[getter]
    fn cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Whether time is up or the work is cancelled.
    #[getter]
    fn is_late(&self) -> bool {
        self.0.is_late()
    }

    /// Whether a search of this token ended early.
    #[getter]
    fn stopped(&self) -> bool {
        self.0.has_stopped()
    }

    /// Seconds until the deadline.
    #[getter]
    fn seconds_left(&self) -> Option<f64> {
        self.0.time_left().map(|time| time.as_secs_f64())
    }

    /// Reports the loss of a release; `progress` shows the lowest.
    fn report_loss(&self, loss: f64) {
        self.0.report_loss(loss);
    }

    /// Nodes checked, best loss so far and proved bound of the running search.
    #[getter]
    fn progress(&self) -> (u64, f64, f64) {
        self.0.progress()
    }
}

/// The longest delay before Ctrl-C takes effect.
const TICK: Duration = Duration::from_millis(50);

/// Runs without the interpreter's lock and lets a signal end the work.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    cancellation: &cancellation::CancellationToken,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    thread::scope(|scope| {
        let (sender, mut receiver) = channel();
        let worker = scope.spawn(move || sender.send(work()).is_ok());
        loop {
            let (back, answer) = py.detach(move || {
                let answer = receiver.recv_timeout(TICK);
                (receiver, answer)
            });
            receiver = back;
            match answer {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| cancellation.cancel())?
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let panic = worker
                        .join()
                        .expect_err("the worker ended without an answer");
                    std::panic::resume_unwind(panic)
                }
            }
        }
    })
}
