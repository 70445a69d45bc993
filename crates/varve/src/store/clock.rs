//! The store's time.
//!
//! Invariant: it never goes back, so nothing that has expired comes back. A host's clock that goes back far was ahead before: a machine that
//! starts with its clock an hour ahead sets it right once it has a network. From then on the store's time runs ahead of the host's by
//! that hour, and times are converted at the boundary: an entry expires when its caller said.

/// A clock that goes back by less than this is adjusted a little, and the store waits until it has caught up.
const ADJUSTED_MS: u64 = 5 * 60 * 1000;

/// The store's time, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    /// The store's time now.
    pub now_ms: u64,
    /// How far it is ahead of the host's.
    pub ahead_ms: u64,
}

impl Clock {
    /// The time when the host's clock shows `host_ms`.
    #[must_use]
    pub fn at(self, host_ms: u64) -> Self {
        let is_near = |time: u64| time.saturating_add(ADJUSTED_MS) >= self.now_ms;
        let time = host_ms.saturating_add(self.ahead_ms);
        if is_near(host_ms) {
            // The earlier time was right: the host's clock was behind since.
            Self { now_ms: self.now_ms.max(host_ms), ahead_ms: 0 }
        } else if is_near(time) {
            Self { now_ms: self.now_ms.max(time), ..self }
        } else {
            Self { ahead_ms: self.now_ms - host_ms, ..self }
        }
    }

    /// The store's time for a time of the host's clock.
    #[must_use]
    pub fn of_host(self, host_ms: u64) -> u64 {
        host_ms.saturating_add(self.ahead_ms)
    }

    /// The host's time for a time of the store.
    #[must_use]
    pub fn to_host(self, store_ms: u64) -> u64 {
        store_ms.saturating_sub(self.ahead_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    const HOUR: u64 = 3_600_000;
    const NOW: u64 = 1_700_000_000_000;

    #[test]
    fn a_clock_that_was_ahead_and_is_set_right_runs_on_from_there() {
        let wrong = Clock::default().at(NOW + HOUR);
        let right = wrong.at(NOW);
        assert_eq!((right.now_ms, right.to_host(right.now_ms)), (NOW + HOUR, NOW));
        let later = right.at(NOW + 1000);
        assert_eq!((later.now_ms, later.to_host(later.now_ms)), (NOW + HOUR + 1000, NOW + 1000));
        // Ahead once more, by the same hour.
        assert_eq!(later.at(NOW + HOUR + 2000), Clock { now_ms: NOW + HOUR + 2000, ahead_ms: 0 });
    }

    #[test]
    fn a_clock_that_begins_in_1970_and_is_set_right_expires_nothing() {
        let known = Clock { now_ms: NOW, ahead_ms: 0 };
        let started = known.at(5000);
        assert_eq!(started.to_host(started.now_ms), 5000);
        assert_eq!(started.at(NOW + HOUR), Clock { now_ms: NOW + HOUR, ahead_ms: 0 });
    }

    #[test]
    fn a_small_step_back_is_waited_for() {
        let clock = Clock::default().at(NOW).at(NOW - 60_000);
        assert_eq!(clock, Clock { now_ms: NOW, ahead_ms: 0 });
        assert_eq!(clock.at(u64::MAX).now_ms, u64::MAX);
    }
}
