//! The pass over the points that fills tables.
//!
//! Many points go in groups, and the sums of groups are added in their order: processes that share the pass take
//! groups in turn, and what each of them had does not show in the sums. Nor does it show where a pass was interrupted:
//! whole numbers become sums at the end of a group, never on the way.

use super::MomentTables;
use super::block::Block;
use super::file::TableStore;
use super::tables::{PASS_BLOCK, PairSums, Roles};
use crate::cluster::Cluster;
use crate::error::SolveError;
use crate::loss::Term;
use crate::points::Fractions;
use std::ops::{ControlFlow, Range};

/// Sees how many points are done, of how many, and may end the pass.
pub type PassObserver<'o> = dyn FnMut(usize, usize) -> ControlFlow<()> + 'o;

/// The sums of a pass are saved at most this many times on the way.
const MAX_SAVINGS: usize = 8;
/// Points of a group unless others are asked for: to add up tables takes as long as some 100,000 points.
pub(super) const POINTS_PER_GROUP: usize = 1 << 22;
/// So many groups at most: processes take them in turn.
const MAX_GROUPS: usize = 1 << 16;

/// Runs of points whose sums are added in order; how many depends on their number alone.
pub(super) fn groups(points: usize, per_group: usize) -> Vec<Range<usize>> {
    let count = (points / per_group.max(1)).clamp(1, MAX_GROUPS);
    let bound = |group: usize| (points as u128 * group as u128 / count as u128) as usize;
    (0..count).map(|group| bound(group)..bound(group + 1)).collect()
}

/// What a pass is made with.
pub(super) struct Pass<'a> {
    pub(super) term: &'a Term,
    pub(super) roles: Roles,
    pub(super) block: Block,
    pub(super) fractions: Option<Fractions>,
    pub(super) device: Option<Box<dyn PairSums>>,
}

impl Pass<'_> {
    /// All points, one after the other.
    pub(super) fn whole(
        &mut self,
        mut tables: MomentTables,
        store: Option<&TableStore>,
        observer: &mut PassObserver,
    ) -> Result<MomentTables, SolveError> {
        let count = self.term.points.len();
        let store = store.filter(|_| self.device.is_none());
        let mut done = store.and_then(|store| store.load(&mut tables)).unwrap_or(0);
        let mut saved = done;
        while done < count {
            done = self.add_block(&mut tables, done..count)?;
            let interrupted = observer(done, count).is_break();
            if let Some(store) = store
                && (interrupted || is_due(store, done - saved, count))
            {
                save(store, &mut tables, done)?;
                saved = done;
            }
            if interrupted {
                return Err(SolveError::Interrupted);
            }
        }
        self.drain(&mut tables)?;
        Ok(tables)
    }

    /// Takes the sums that a device has.
    fn drain(&mut self, tables: &mut MomentTables) -> Result<(), SolveError> {
        match &mut self.device {
            Some(device) => device.drain(&mut tables.pairs),
            None => Ok(()),
        }
    }

    /// Group by group. Only whole groups are saved.
    pub(super) fn by_groups(
        &mut self,
        mut total: MomentTables,
        groups: &[Range<usize>],
        store: Option<&TableStore>,
        observer: &mut PassObserver,
    ) -> Result<MomentTables, SolveError> {
        let count = self.term.points.len();
        let mut own = MomentTables::empty(total.power, total.axes.clone());
        let loaded = store.and_then(|store| store.load(&mut total)).unwrap_or(0);
        let (first, mut saved) = match groups.iter().position(|group| group.start == loaded) {
            _ if loaded == count => (groups.len(), loaded),
            Some(first) => (first, loaded),
            // Sums of an earlier version, which had no groups.
            None => {
                total.clear();
                (0, 0)
            }
        };
        for group in &groups[first..] {
            own.clear();
            let mut done = group.start;
            while done < group.end {
                done = self.add_block(&mut own, done..group.end)?;
                if observer(done, count).is_break() {
                    if let Some(store) = store.filter(|_| saved < group.start) {
                        save(store, &mut total, group.start)?;
                    }
                    return Err(SolveError::Interrupted);
                }
            }
            self.drain(&mut own)?;
            total.add(&mut own);
            if let Some(store) = store.filter(|store| is_due(store, group.end - saved, count)) {
                save(store, &mut total, group.end)?;
                saved = group.end;
            }
        }
        Ok(total)
    }

    /// Group by group, a round of groups at a time, one for each process. Each adds up its share of every table, the groups of
    /// the round in their order; the first one saves them.
    pub(super) fn shared(
        &mut self,
        empty: MomentTables,
        groups: &[Range<usize>],
        (cluster, store): (&Cluster, Option<&TableStore>),
        observer: &mut PassObserver,
    ) -> Result<MomentTables, SolveError> {
        let count = self.term.points.len();
        let store = store.filter(|_| cluster.is_first());
        let mut tables = SharedTables::new(empty, cluster);
        let mut saved = tables.resume(groups, store);
        let first = groups.iter().take_while(|group| group.end <= saved).count();
        for round in groups[first..].chunks(cluster.size()) {
            let summed = match round.get(cluster.rank()) {
                Some(group) => self.add_group(tables.for_group(), group.clone()),
                None => Ok(()),
            };
            cluster.agree(summed)?;
            tables.add_round(round.len());
            let done = round.last().map_or(count, |group| group.end);
            let interrupted = observer(done, count).is_break();
            let is_due = store.is_some_and(|store| interrupted || is_due(store, done - saved, count));
            if done < count && cluster.any(is_due) {
                tables.tell();
                saved = done;
                cluster.agree(store.map_or(Ok(()), |store| save(store, &mut tables.table, done)))?;
            }
            if interrupted {
                return Err(SolveError::Interrupted);
            }
        }
        tables.tell();
        Ok(tables.table)
    }

    fn add_group(&mut self, tables: &mut MomentTables, group: Range<usize>) -> Result<(), SolveError> {
        let mut done = group.start;
        while done < group.end {
            done = self.add_block(tables, done..group.end)?;
        }
        Ok(())
    }

    /// The next block of some points; where it ends.
    fn add_block(&mut self, tables: &mut MomentTables, left: Range<usize>) -> Result<usize, SolveError> {
        let length = match &self.device {
            Some(device) => device.block_length().min(PASS_BLOCK),
            None => PASS_BLOCK,
        };
        let range = left.start..(left.start + length).min(left.end);
        let end = range.end;
        let value = self.roles.value;
        let block = &mut self.block;
        block.fill(self.term, range, &tables.axes, self.fractions.as_ref())?;
        match &mut self.device {
            Some(device) => device.add(block, value, &mut tables.pairs)?,
            None => {
                block.sort(&tables.axes, value);
                tables.add_pairs(block);
            }
        }
        tables.add_axes(&self.block, &self.roles);
        Ok(end)
    }
}

/// The tables of one of several processes.
struct SharedTables<'a> {
    cluster: &'a Cluster,
    /// The sums of a group, or those of all.
    table: MomentTables,
    /// Whether there is anything in it; to clear new memory takes its time.
    used: bool,
    /// The sums so far, of this process's share of each column.
    parts: Vec<Vec<f64>>,
}

impl<'a> SharedTables<'a> {
    fn new(mut empty: MomentTables, cluster: &'a Cluster) -> Self {
        let columns = empty.columns();
        let parts = columns
            .iter()
            .map(|column| vec![0.0; cluster.share(column.len()).len()]);
        Self {
            parts: parts.collect(),
            cluster,
            table: empty,
            used: false,
        }
    }

    /// Takes up what the first process finds; how many points that is, as everybody is told.
    fn resume(&mut self, groups: &[Range<usize>], store: Option<&TableStore>) -> usize {
        let loaded = store.and_then(|store| store.load(&mut self.table));
        self.used = loaded.is_some();
        // Sums of an earlier version had no groups.
        let loaded = loaded.filter(|loaded| groups.iter().any(|group| group.end == *loaded));
        let loaded = self.cluster.from_first(vec![loaded.unwrap_or(0) as u64])[0] as usize;
        if loaded > 0 {
            self.used = true;
            for (column, part) in self.table.columns().into_iter().zip(&mut self.parts) {
                self.cluster.tell_all(0, column);
                part.copy_from_slice(&column[self.cluster.share(column.len())]);
            }
        }
        loaded
    }

    /// Where the sums of a group go.
    fn for_group(&mut self) -> &mut MomentTables {
        if self.used {
            self.table.clear();
        }
        self.used = true;
        &mut self.table
    }

    /// Adds the groups of a round, which the first so many processes have.
    fn add_round(&mut self, groups: usize) {
        for (column, part) in self.table.columns().into_iter().zip(&mut self.parts) {
            self.cluster.add_in_order(groups, column, part);
        }
    }

    /// The sums so far, everywhere.
    fn tell(&mut self) {
        for (column, part) in self.table.columns().into_iter().zip(&self.parts) {
            self.cluster.tell_parts(part, column);
        }
    }
}

fn is_due(store: &TableStore, since: usize, count: usize) -> bool {
    since >= store.every.max(count / MAX_SAVINGS)
}

fn save(store: &TableStore, tables: &mut MomentTables, done: usize) -> Result<(), SolveError> {
    store
        .save(tables, done)
        .map_err(|error| SolveError::Tables(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_cover_the_points_whoever_asks() {
        for points in [1, 1000, 1999, 2000, 20_000, 100_007] {
            let groups = groups(points, 1000);
            assert_eq!((groups[0].start, groups[groups.len() - 1].end), (0, points));
            assert!(groups.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert!(groups.len() <= MAX_GROUPS);
        }
        assert_eq!(groups(1999, 1000).len(), 1);
    }
}
