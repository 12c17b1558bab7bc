//! How the scores of a set of candidates are added up, direction by direction.

use crate::activation::Activation;
use crate::candidates::{Candidates, Grid};
use crate::network::{Neuron, ridges};
use crate::ridge::{Ladder, Rungs, SPLINE_FROM, Sweep, SweepScratch, direct};

/// The directions to visit and what to do on each.
pub(super) struct Plan {
    pub(super) lines: Vec<PlanLine>,
    activation: Activation,
    count: usize,
}

pub(super) struct PlanLine {
    pub(super) omega: Vec<f64>,
    work: Work,
}

enum Work {
    /// All knots of a grid's line by a sweep; the scores start here.
    GridSweep {
        ladder: Ladder,
        start: usize,
        mirrored: bool,
    },
    /// Listed neurons by a sweep: position in the list and sign, in the order of the knots.
    ListSweep {
        ladder: Ladder,
        members: Vec<(usize, f64)>,
    },
    /// Neurons one by one: position, sign, bias.
    Direct { members: Vec<(usize, f64, f64)> },
}

/// What is added up along one line.
pub(super) enum LineSum {
    Sweep(Sweep),
    Direct(Vec<f64>),
}

impl Plan {
    pub(super) fn new(activation: Activation, candidates: Candidates) -> Self {
        let lines = match candidates {
            Candidates::Grid(grid) => grid_lines(activation, grid),
            Candidates::List(list) => list_lines(activation, list),
        };
        Self {
            lines,
            activation,
            count: candidates.len(),
        }
    }

    /// Empty sums for every line.
    pub(super) fn sums(&self) -> Vec<LineSum> {
        self.lines
            .iter()
            .map(|line| match &line.work {
                Work::GridSweep { ladder, .. } | Work::ListSweep { ladder, .. } => LineSum::Sweep(
                    Sweep::new(self.activation.relu_power().unwrap_or_default(), ladder.count()),
                ),
                Work::Direct { members } => LineSum::Direct(vec![0.0; members.len()]),
            })
            .collect()
    }

    /// Adds a tile of points to one line's sums: t = ω·x and the channels per order.
    pub(super) fn add(
        &self,
        line: usize,
        sum: &mut LineSum,
        t: &[f64],
        channels: &[Vec<f64>],
        scratch: &mut SweepScratch,
    ) {
        match (&self.lines[line].work, sum) {
            (Work::GridSweep { ladder, .. } | Work::ListSweep { ladder, .. }, LineSum::Sweep(sweep)) => {
                sweep.add(ladder, t, channels, scratch);
            }
            (Work::Direct { members }, LineSum::Direct(sums)) => {
                let members = members.iter().map(|&(_, sign, bias)| (sign, bias));
                direct::add_scores(self.activation, members, t, channels, sums);
            }
            _ => unreachable!("sums are made from the same plan"),
        }
    }

    /// The scores of all candidates.
    pub(super) fn scores(&self, sums: &[LineSum]) -> Vec<f64> {
        let mut scores = vec![0.0; self.count];
        for (line, sum) in self.lines.iter().zip(sums) {
            match (&line.work, sum) {
                (
                    Work::GridSweep {
                        ladder,
                        start,
                        mirrored,
                    },
                    LineSum::Sweep(sweep),
                ) => {
                    let count = ladder.count();
                    sweep.scores(ladder, &mut scores[*start..][..count]);
                    if *mirrored {
                        sweep.mirrored_scores(ladder, &mut scores[start + count..][..count]);
                    }
                }
                (Work::ListSweep { ladder, members }, LineSum::Sweep(sweep)) => {
                    let (mut plus, mut minus) = (vec![0.0; members.len()], vec![0.0; members.len()]);
                    sweep.scores(ladder, &mut plus);
                    sweep.mirrored_scores(ladder, &mut minus);
                    for (j, &(position, sign)) in members.iter().enumerate() {
                        scores[position] = if sign > 0.0 { plus[j] } else { minus[j] };
                    }
                }
                (Work::Direct { members }, LineSum::Direct(sums)) => {
                    for (&(position, ..), sum) in members.iter().zip(sums) {
                        scores[position] = *sum;
                    }
                }
                _ => unreachable!("sums are made from the same plan"),
            }
        }
        scores
    }
}

impl LineSum {
    pub(super) fn merge(&mut self, other: &LineSum) {
        match (self, other) {
            (LineSum::Sweep(sum), LineSum::Sweep(term)) => sum.merge(term),
            (LineSum::Direct(sum), LineSum::Direct(term)) => {
                sum.iter_mut().zip(term).for_each(|(sum, term)| *sum += term);
            }
            _ => unreachable!("sums are made from the same plan"),
        }
    }
}

fn grid_lines(activation: Activation, grid: &Grid) -> Vec<PlanLine> {
    let sweeps = activation.relu_power().is_some();
    grid.lines
        .iter()
        .enumerate()
        .map(|(index, line)| {
            let (start, count) = (grid.start(index), line.knots.count);
            let plus = (0..count).map(|j| (start + j, 1.0, -line.knots.at(j)));
            let minus = (0..count).map(|j| (start + count + j, -1.0, line.knots.at(j)));
            PlanLine {
                omega: line.omega.clone(),
                work: match (sweeps, grid.mirrored) {
                    (true, mirrored) => Work::GridSweep {
                        ladder: Ladder::Even(line.knots),
                        start,
                        mirrored,
                    },
                    (false, true) => Work::Direct {
                        members: plus.chain(minus).collect(),
                    },
                    (false, false) => Work::Direct {
                        members: plus.collect(),
                    },
                },
            }
        })
        .collect()
}

fn list_lines(activation: Activation, list: &[Neuron]) -> Vec<PlanLine> {
    ridges(list)
        .into_iter()
        .map(|ridge| {
            let mut members = ridge.members;
            let work = if activation.relu_power().is_some() && members.len() >= SPLINE_FROM {
                members.sort_by(|a, b| (-a.1 * a.2).total_cmp(&(-b.1 * b.2)));
                Work::ListSweep {
                    ladder: Ladder::Sorted(members.iter().map(|&(_, sign, bias)| -sign * bias).collect()),
                    members: members
                        .iter()
                        .map(|&(position, sign, _)| (position, sign))
                        .collect(),
                }
            } else {
                Work::Direct { members }
            };
            PlanLine {
                omega: ridge.omega,
                work,
            }
        })
        .collect()
}
