//! Scales and their ticks.

/// How numbers become places on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm, with ticks at powers of this base.
    Log(u32),
}

/// An axis: a scale over a range, drawn from one pixel to another.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis for these values; those that the scale cannot show are passed over.
    pub(super) fn new(scale: Scale, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let shown = values.filter(|value| shows(scale, *value));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = match scale {
            _ if low > high => (1.0, 10.0),
            Scale::Log(_) if low == high => (low / 2.0, high * 2.0),
            Scale::Linear if low == high => {
                (low - 0.5 * low.abs().max(1.0), high + 0.5 * high.abs().max(1.0))
            }
            _ => (low, high),
        };
        Self {
            scale,
            low,
            high,
            from,
            to,
        }
    }

    /// A little room on both sides.
    pub(super) fn widened(mut self) -> Self {
        match self.scale {
            Scale::Linear => {
                let room = 0.05 * (self.high - self.low);
                self.low -= room;
                self.high += room;
            }
            Scale::Log(_) => {
                let room = (self.high / self.low).powf(0.05);
                self.low /= room;
                self.high *= room;
            }
        }
        self
    }

    /// Where a value lies, if the scale can show it.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log(_) => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        let place = self.from + part * (self.to - self.from);
        (shows(self.scale, value) && place.is_finite()).then_some(place)
    }

    /// Values worth a label, and the labels; at most about `count`.
    pub(super) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => linear_ticks(self.low, self.high, count),
            Scale::Log(base) => {
                let ticks = log_ticks(self.low, self.high, base, count);
                // A range within one power has no such ticks.
                if ticks.len() < 2 {
                    linear_ticks(self.low, self.high, count.min(4))
                } else {
                    ticks
                }
            }
        }
    }
}

fn shows(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

fn linear_ticks(low: f64, high: f64, count: usize) -> Vec<(f64, String)> {
    let rough = (high - low) / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    let largest = low.abs().max(high.abs());
    (first..=last)
        .map(|i| {
            let value = i as f64 * step;
            (value, linear_label(value, step, largest))
        })
        .collect()
}

/// A number with as many digits as the distance between ticks needs.
fn linear_label(value: f64, step: f64, largest: f64) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    if !(1e-3..1e5).contains(&largest) {
        let digits = (value.abs().log10().floor() - step.log10().floor()).max(0.0) as usize;
        return format!("{value:.digits$e}").replace('e', "·10^");
    }
    let digits = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.digits$}")
}

fn log_ticks(low: f64, high: f64, base: u32, count: usize) -> Vec<(f64, String)> {
    let b = f64::from(base);
    const SLACK: f64 = 1e-9;
    let first = (low.ln() / b.ln() - SLACK).ceil() as i32;
    let last = (high.ln() / b.ln() + SLACK).floor() as i32;
    let every = ((last - first + 1) as usize).div_ceil(count.max(1)).max(1);
    (first..=last)
        .filter(|power| power.rem_euclid(every as i32) == 0)
        .map(|power| {
            let value = b.powi(power);
            let label = match base {
                10 => format!("10^{power}"),
                _ => format!("{value}"),
            };
            (value, label)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_lie_in_the_range_and_are_few() {
        for (scale, low, high) in [
            (Scale::Linear, -1.0, 1.0),
            (Scale::Linear, 3.1e-9, 3.4e-9),
            (Scale::Linear, -2e7, 9e8),
            (Scale::Log(10), 1e-12, 3.0),
            (Scale::Log(2), 1.0, 2048.0),
            (Scale::Log(10), 2.0, 3.0),
        ] {
            let axis = Axis::new(scale, [low, high].into_iter(), 0.0, 100.0);
            let ticks = axis.ticks(6);
            assert!(
                (2..=8).contains(&ticks.len()),
                "{scale:?} {low} {high}: {ticks:?}"
            );
            for (value, _) in &ticks {
                let place = axis.place(*value).unwrap();
                assert!((-1e-6..=100.0 + 1e-6).contains(&place), "{value} at {place}");
            }
            let labels: std::collections::BTreeSet<&String> = ticks.iter().map(|(_, label)| label).collect();
            assert_eq!(labels.len(), ticks.len(), "{ticks:?}");
        }
    }

    #[test]
    fn what_a_logarithm_cannot_show_has_no_place() {
        let axis = Axis::new(Scale::Log(10), [0.0, 1.0, f64::NAN, 100.0].into_iter(), 0.0, 1.0);
        assert_eq!(axis.place(10.0), Some(0.5));
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(axis.place(value), None);
        }
    }
}
