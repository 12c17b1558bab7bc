//! A coefficient at the points of a tile.

use crate::points::TILE;
use std::ops::Deref;
use std::sync::Arc;

/// The numbers of a coefficient at the points of a tile. One that is the same everywhere is held once for all
/// tiles.
#[derive(Debug, Clone)]
pub(super) enum Column {
    /// At every point its own.
    Varying(Vec<f64>),
    /// So many of a column that all tiles share.
    Constant(Constant, usize),
}

/// A number as often as a tile has points.
#[derive(Debug, Clone)]
pub(super) struct Constant(Arc<[f64]>);

impl Constant {
    pub(super) fn new(number: f64) -> Self {
        Self(vec![number; TILE].into())
    }
}

impl Column {
    /// Makes it hold a constant at so many points.
    pub(super) fn set_constant(&mut self, constant: &Constant, count: usize) {
        *self = match count <= TILE {
            true => Column::Constant(constant.clone(), count),
            false => Column::Varying(vec![constant.0[0]; count]),
        };
    }

    /// Room for so many numbers, in memory that it has already if it can.
    pub(super) fn varying(&mut self, count: usize) -> &mut [f64] {
        if let Column::Constant(..) = self {
            *self = Column::default();
        }
        match self {
            Column::Varying(numbers) => {
                numbers.resize(count, 0.0);
                numbers
            }
            Column::Constant(..) => unreachable!("it was replaced just now"),
        }
    }
}

impl Default for Column {
    fn default() -> Self {
        Column::Varying(Vec::new())
    }
}

impl Deref for Column {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        match self {
            Column::Varying(numbers) => numbers,
            Column::Constant(Constant(shared), count) => &shared[..*count],
        }
    }
}

impl<'a> IntoIterator for &'a Column {
    type Item = &'a f64;
    type IntoIter = std::slice::Iter<'a, f64>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
