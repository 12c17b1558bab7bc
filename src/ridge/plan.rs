//! How the scores of a set of candidates are added up, line by line: the adjoint of
//! [evaluating](super::Evaluator) a network.

use super::lines::{CandidateLine, Members, candidate_lines};
use super::{Ladder, Rungs, SPLINE_FROM, Sweep, SweepScratch, direct};
use crate::activation::Activation;
use crate::candidates::Candidates;
use std::ops::Range;

/// The lines to visit and what to do on each.
pub struct Plan {
    lines: Vec<PlanLine>,
    activation: Activation,
    count: usize,
}

struct PlanLine {
    omega: Vec<f64>,
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
pub enum LineSum {
    /// For all offsets at once.
    Sweep(Sweep),
    /// Neuron by neuron.
    Direct(Vec<f64>),
}

impl Plan {
    /// How to score these candidates.
    pub fn new(activation: Activation, candidates: Candidates) -> Self {
        let lines = candidate_lines(candidates).into_iter();
        Self {
            lines: lines.map(|line| PlanLine::new(activation, line)).collect(),
            activation,
            count: candidates.len(),
        }
    }

    /// How many candidates there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// ω of each line.
    pub fn directions(&self) -> impl Iterator<Item = &[f64]> {
        self.lines.iter().map(|line| line.omega.as_slice())
    }

    /// The lines in groups whose sums take at most so many bytes each, a single line excepted.
    pub fn groups(&self, bytes: usize) -> Vec<Range<usize>> {
        let mut groups = Vec::new();
        let (mut start, mut held) = (0, 0);
        for (index, line) in self.lines.iter().enumerate() {
            let size = line.bytes(self.activation);
            if index > start && held + size > bytes {
                groups.push(start..index);
                (start, held) = (index, 0);
            }
            held += size;
        }
        if start < self.lines.len() {
            groups.push(start..self.lines.len());
        }
        groups
    }

    /// The memory of the sums of all lines, in bytes.
    pub fn bytes(&self) -> usize {
        let lines = self.lines.iter().map(|line| line.bytes(self.activation));
        lines.fold(0, usize::saturating_add)
    }

    /// The memory of the sums of the line that has most, in bytes.
    pub fn widest(&self) -> usize {
        let lines = self.lines.iter().map(|line| line.bytes(self.activation));
        lines.max().unwrap_or(0)
    }

    /// Empty sums for some of the lines.
    pub fn sums(&self, lines: Range<usize>) -> Vec<LineSum> {
        let power = self.activation.relu_power().unwrap_or_default();
        let empty = |line: &PlanLine| match &line.work {
            Work::GridSweep { ladder, .. } | Work::ListSweep { ladder, .. } => {
                LineSum::Sweep(Sweep::new(power, ladder.count()))
            }
            Work::Direct { members } => LineSum::Direct(vec![0.0; members.len()]),
        };
        self.lines[lines].iter().map(empty).collect()
    }

    /// ω of a line.
    pub fn omega(&self, line: usize) -> &[f64] {
        &self.lines[line].omega
    }

    /// Adds a block of points to one line's sums: t = ω·x and the channels per order.
    pub fn add(
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

    /// Where the scores of some lines are, one after the other.
    pub fn places(&self, lines: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        self.lines[lines].iter().flat_map(PlanLine::places)
    }

    /// Puts the scores of some lines in their places.
    pub fn put_scores(&self, lines: Range<usize>, sums: &[LineSum], scores: &mut [f64]) {
        for (line, sum) in self.lines[lines].iter().zip(sums) {
            line.put_scores(sum, scores);
        }
    }
}

impl PlanLine {
    fn new(activation: Activation, line: CandidateLine) -> Self {
        let sweeps = activation.has_sweep();
        let work = match line.members {
            Members::Knots {
                knots,
                start,
                mirrored,
            } if sweeps => Work::GridSweep {
                ladder: Ladder::Even(knots),
                start,
                mirrored,
            },
            Members::Listed(mut members) if sweeps && members.len() >= SPLINE_FROM => {
                members.sort_by(|a, b| (-a.1 * a.2).total_cmp(&(-b.1 * b.2)));
                let knots = members.iter().map(|&(_, sign, bias)| -sign * bias);
                Work::ListSweep {
                    ladder: Ladder::Sorted(knots.collect()),
                    members: members
                        .iter()
                        .map(|&(position, sign, _)| (position, sign))
                        .collect(),
                }
            }
            members => Work::Direct {
                members: members.one_by_one(),
            },
        };
        Self {
            omega: line.omega,
            work,
        }
    }

    fn bytes(&self, activation: Activation) -> usize {
        match &self.work {
            Work::GridSweep { ladder, .. } | Work::ListSweep { ladder, .. } => {
                Sweep::bytes(activation.relu_power().unwrap_or_default(), ladder.count())
            }
            Work::Direct { members } => 8 * members.len(),
        }
    }

    fn places(&self) -> Vec<Range<usize>> {
        let one = |position: usize| position..position + 1;
        match &self.work {
            Work::GridSweep {
                ladder,
                start,
                mirrored,
            } => {
                let count = if *mirrored { 2 } else { 1 } * ladder.count();
                std::iter::once(*start..*start + count).collect()
            }
            Work::ListSweep { members, .. } => members.iter().map(|member| one(member.0)).collect(),
            Work::Direct { members } => members.iter().map(|member| one(member.0)).collect(),
        }
    }

    fn put_scores(&self, sum: &LineSum, scores: &mut [f64]) {
        match (&self.work, sum) {
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
}

impl LineSum {
    /// All numbers that are added up.
    pub fn numbers(&self) -> &[f64] {
        match self {
            LineSum::Sweep(sweep) => sweep.moments(),
            LineSum::Direct(sums) => sums,
        }
    }

    /// The same, to be changed.
    pub fn numbers_mut(&mut self) -> &mut [f64] {
        match self {
            LineSum::Sweep(sweep) => sweep.moments_mut(),
            LineSum::Direct(sums) => sums,
        }
    }

    /// Adds the sums over other points.
    pub fn merge(&mut self, other: &LineSum) {
        match (self, other) {
            (LineSum::Sweep(sum), LineSum::Sweep(term)) => sum.merge(term),
            (LineSum::Direct(sum), LineSum::Direct(term)) => {
                sum.iter_mut().zip(term).for_each(|(sum, term)| *sum += term);
            }
            _ => unreachable!("sums are made from the same plan"),
        }
    }
}
