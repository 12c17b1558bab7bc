//! What processes that share the points tell each other about whole numbers.
//!
//! The largest number of all decides by how much numbers are moved up; then sums add up in any order. Whoever has an
//! error takes part as far as to tell it.

use super::engine::{Engine, Functional, NeuronSums, Peaks, Source};
use super::runs::{LineSums, Runs};
use crate::cluster::Cluster;
use crate::error::SolveError;
use crate::network::Network;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Per term and line: the bins where anybody has points.
type AllBins = HashMap<(usize, usize), Arc<Vec<i64>>>;

/// The other processes, and what is known of their points.
pub(super) struct Others {
    pub(super) cluster: Cluster,
    /// Of the runs with this number.
    bins: Mutex<(u64, AllBins)>,
}

impl Others {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            bins: Mutex::new((u64::MAX, HashMap::new())),
        }
    }

    pub(super) fn are_there(&self) -> bool {
        !self.cluster.is_alone()
    }

    fn largest(&self, own: Result<Peaks, SolveError>) -> Result<Peaks, SolveError> {
        let own = self.cluster.agree(own)?;
        let flat: Vec<i64> = own.iter().flatten().map(|&peak| i64::from(peak)).collect();
        let mut largest = self.cluster.largest(&flat).into_iter().map(|peak| peak as u32);
        let of_term = |own: &Vec<u32>| largest.by_ref().take(own.len()).collect();
        Ok(own.iter().map(of_term).collect())
    }

    /// Has everybody know how large a functional's channels are.
    pub(super) fn agree_on(&self, rho: &Functional, engine: &dyn Engine) -> Result<(), SolveError> {
        let from_network = matches!(rho.source, Source::Network { .. });
        if self.are_there() && from_network && rho.peaks.get().is_none() {
            let peaks = self.largest(engine.peaks(rho))?;
            rho.peaks.get_or_init(|| peaks);
        }
        Ok(())
    }

    /// The sums of the risk.
    pub(super) fn risk(&self, u: &Network, engine: &dyn Engine) -> Result<Vec<(f64, i128)>, SolveError> {
        if !self.are_there() {
            return engine.risk_sums(u, None);
        }
        let peaks = self.largest(engine.risk_peaks(u))?;
        let (units, own): (Vec<f64>, Vec<i128>) = self
            .cluster
            .agree(engine.risk_sums(u, Some(&peaks)))?
            .into_iter()
            .unzip();
        Ok(units.into_iter().zip(self.cluster.total(own)).collect())
    }

    /// The sums of neurons at all points, from those at this process's.
    pub(super) fn neurons(
        &self,
        own: Result<Vec<NeuronSums>, SolveError>,
    ) -> Result<Vec<NeuronSums>, SolveError> {
        if !self.are_there() {
            return own;
        }
        let of_term = |(exponents, sums): NeuronSums| (exponents, self.cluster.total(sums));
        Ok(self.cluster.agree(own)?.into_iter().map(of_term).collect())
    }

    /// The sums of those lines that are this process's to go on with, and which these are: [a
    /// share](Cluster::share) of those asked for.
    pub(super) fn lines(
        &self,
        runs: &Runs,
        which: &[usize],
        own: Result<Vec<Vec<LineSums>>, SolveError>,
    ) -> Result<(Range<usize>, Vec<Vec<LineSums>>), SolveError> {
        if !self.are_there() {
            return Ok((0..which.len(), own?));
        }
        let own = self.cluster.agree(own)?;
        let bins = self.bins_of_all(runs, which, &own);
        let spread = |place: usize| {
            let of_term = |(term, lines): (usize, &Vec<LineSums>)| {
                placed(&lines[place], &bins_at(&bins, term, which[place]))
            };
            own.iter().enumerate().flat_map(of_term).collect::<Vec<i128>>()
        };
        let shares: Vec<Range<usize>> = (0..self.cluster.size())
            .map(|rank| self.cluster.share_of(rank, which.len()))
            .collect();
        let parts: Vec<Vec<i128>> = shares
            .iter()
            .map(|share| share.clone().flat_map(&spread).collect())
            .collect();
        let total = self.cluster.total_of_own(&parts);
        let share = shares[self.cluster.rank()].clone();
        let mut rest = total.as_slice();
        let mut lines: Vec<Vec<LineSums>> = vec![Vec::new(); own.len()];
        for place in share.clone() {
            for (term, lines) in lines.iter_mut().enumerate() {
                let line = &own[term][place];
                let bins = bins_at(&bins, term, which[place]);
                let (sums, others) = rest.split_at(bins.len() * line.size);
                lines.push(line.of_all(&bins, sums));
                rest = others;
            }
        }
        Ok((share, lines))
    }

    /// The bins where anybody has points, of these lines.
    fn bins_of_all(&self, runs: &Runs, which: &[usize], own: &[Vec<LineSums>]) -> AllBins {
        let mut kept = self.bins.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.0 != runs.id {
            *kept = (runs.id, HashMap::new());
        }
        let known = &mut kept.1;
        let missing: Vec<(usize, usize, &LineSums)> = own
            .iter()
            .enumerate()
            .flat_map(|(term, lines)| {
                which
                    .iter()
                    .zip(lines)
                    .map(move |(&line, sums)| (term, line, sums))
            })
            .filter(|(term, line, _)| !known.contains_key(&(*term, *line)))
            .collect();
        if !missing.is_empty() {
            let told: Vec<i64> = missing
                .iter()
                .flat_map(|(.., sums)| {
                    std::iter::once(sums.bins.len() as i64).chain(sums.bins.iter().copied())
                })
                .collect();
            let all = self.cluster.lists_of_all(&told);
            let mut rests: Vec<&[i64]> = all.iter().map(Vec::as_slice).collect();
            for (term, line, _) in missing {
                let mut bins: Vec<i64> = rests.iter_mut().flat_map(next_list).copied().collect();
                bins.sort_unstable();
                bins.dedup();
                known.insert((term, line), Arc::new(bins));
            }
        }
        let asked = (0..own.len()).flat_map(|term| which.iter().map(move |&line| (term, line)));
        asked.map(|key| (key, bins_at(known, key.0, key.1))).collect()
    }
}

fn bins_at(bins: &AllBins, term: usize, line: usize) -> Arc<Vec<i64>> {
    bins.get(&(term, line)).cloned().unwrap_or_default()
}

/// Takes a list with its length before it off the front.
fn next_list<'a>(rest: &mut &'a [i64]) -> &'a [i64] {
    let Some((&length, behind)) = rest.split_first() else {
        return &[];
    };
    let (list, others) = behind.split_at(length as usize);
    *rest = others;
    list
}

/// A line's sums with zeros for the bins that only others have.
fn placed(line: &LineSums, bins: &[i64]) -> Vec<i128> {
    let mut sums = vec![0; bins.len() * line.size];
    let mut place = 0;
    for (bin, own) in line.bins.iter().zip(line.whole.chunks(line.size)) {
        while bins[place] != *bin {
            place += 1;
        }
        sums[place * line.size..][..line.size].copy_from_slice(own);
    }
    sums
}
