//! The one loop that walks over pieces of work in parallel.

use rayon::prelude::*;

/// Does each piece of work, in parallel where there is more than a handful, each thread with scratch memory of
/// its own. The results come in the order of the pieces; of several errors the first in that order is
/// returned, whichever thread met one first.
pub fn in_parallel<Piece: Send, Scratch: Default, T: Send, E: Send>(
    pieces: impl IntoParallelIterator<Item = Piece, Iter: IndexedParallelIterator>,
    work: impl Fn(&mut Scratch, Piece) -> Result<T, E> + Sync + Send,
) -> Result<Vec<T>, E> {
    let done: Vec<Result<T, E>> = pieces.into_par_iter().map_init(Scratch::default, work).collect();
    done.into_iter().collect()
}
