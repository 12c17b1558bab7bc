//! How much work goes into one submission: as much as the device does in a fraction of a second.

use super::{Adapter, locked};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A submission should take about so long: a desktop's driver ends what takes seconds, and its user waits for the
/// screen; far less would leave a fast device without work between two of them.
const AIM: Duration = Duration::from_millis(200);
/// The same on a software adapter: it has no driver that ends anything, and no screen that waits.
const SOFTWARE_AIM: Duration = Duration::from_secs(2);
/// Points along directions in the first submission, when nothing is known: a slow device takes about as long as it
/// should, a fast one is soon given more.
const FIRST: f64 = 16e6;
/// Less work than this says nothing about speed: it is the way up and down that is measured.
const TELLING: f64 = 1e6;
/// From one submission to the next the amount changes by at most this factor.
const CHANGE: f64 = 4.0;

/// What one submission may have, from how long the ones before took.
pub(super) struct Pace {
    aim: Duration,
    allowance: Mutex<f64>,
}

impl Pace {
    pub(super) fn new(adapter: Adapter) -> Self {
        Self {
            aim: if adapter.software { SOFTWARE_AIM } else { AIM },
            allowance: Mutex::new(FIRST),
        }
    }

    /// Points along directions that the next submission may have.
    pub(super) fn allowance(&self) -> f64 {
        *locked(&self.allowance)
    }

    /// Does some work, and learns from it.
    pub(super) fn time<T>(&self, point_directions: f64, work: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = work();
        self.learn(point_directions, started.elapsed());
        result
    }

    fn learn(&self, point_directions: f64, taken: Duration) {
        if point_directions < TELLING {
            return;
        }
        let wanted = point_directions * self.aim.as_secs_f64() / taken.as_secs_f64().max(1e-6);
        let mut allowance = locked(&self.allowance);
        // Short work is slow for its size: with a few lines it is channels that take the time. Only what took too long
        // tells that less is to follow.
        if wanted < *allowance && taken < self.aim {
            return;
        }
        *allowance = wanted.clamp(*allowance / CHANGE, *allowance * CHANGE);
    }
}

/// Cuts a list into parts whose sizes add up to at most what is allowed, or which have one member.
pub(super) fn parts<T>(list: &[T], size: impl Fn(&T) -> f64, allowed: f64) -> Vec<&[T]> {
    let (mut parts, mut start, mut total) = (Vec::new(), 0, 0.0);
    for (index, member) in list.iter().enumerate() {
        if index > start && total + size(member) > allowed {
            parts.push(&list[start..index]);
            (start, total) = (index, 0.0);
        }
        total += size(member);
    }
    parts.push(&list[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_to_what_is_allowed_and_leave_nothing_out() {
        let sizes = [3.0, 3.0, 5.0, 20.0, 1.0, 1.0];
        let found = parts(&sizes, |&size| size, 8.0);
        assert_eq!(found, [&[3.0, 3.0][..], &[5.0], &[20.0], &[1.0, 1.0]]);
        assert_eq!(parts(&[] as &[f64], |&size| size, 8.0), [&[] as &[f64]]);
    }

    #[test]
    fn a_slow_device_gets_less_and_a_fast_one_more() {
        let pace = Pace::new(Adapter {
            native: true,
            software: false,
        });
        pace.learn(FIRST, 2 * AIM);
        assert_eq!(pace.allowance(), FIRST / 2.0);
        pace.learn(FIRST, AIM / 1000);
        assert_eq!(pace.allowance(), FIRST * 2.0);
        // Too little to tell.
        pace.learn(1.0, AIM);
        assert_eq!(pace.allowance(), FIRST * 2.0);
        // Little work that took its time, but not too much of it.
        pace.learn(TELLING, AIM / 2);
        assert_eq!(pace.allowance(), FIRST * 2.0);
        // Nobody waits for a software adapter's screen.
        let pace = Pace::new(Adapter {
            native: true,
            software: true,
        });
        pace.learn(FIRST, 2 * AIM);
        assert_eq!(pace.allowance(), FIRST * CHANGE);
    }
}
