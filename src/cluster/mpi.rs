//! The processes that `mpirun` or `srun` started.

use super::{Cluster, Wire};
use ::mpi::Threading;
use ::mpi::datatype::PartitionMut;
use ::mpi::environment::Universe;
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::{AsRaw, Communicator, CommunicatorCollectives, Destination, Root, Source};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Variables by which launchers tell a process that it has companions.
const LAUNCHED: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"];

/// Joins the processes that were started together; alone where there are no others. Once, from the main thread, from
/// which all messages go.
pub fn join() -> Cluster {
    // To begin without companions takes MPI a moment that a small run does not have.
    if LAUNCHED.iter().all(|name| std::env::var_os(name).is_none()) {
        return Cluster::alone();
    }
    match ::mpi::initialize_with_threading(Threading::Funneled) {
        Some((universe, _)) => {
            let world = universe.world();
            Cluster::new(Box::new(Mpi {
                rank: world.rank() as usize,
                size: world.size() as usize,
                universe: Mutex::new(Some(universe)),
            }))
        }
        None => Cluster::alone(),
    }
}

struct Mpi {
    rank: usize,
    size: usize,
    /// MPI ends with it.
    universe: Mutex<Option<Universe>>,
}

fn world() -> SimpleCommunicator {
    SimpleCommunicator::world()
}

/// Messages are counted in 32 bits.
const LONGEST: usize = 1 << 30;

impl Wire for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, words: &[u64]) {
        let to = to as i32;
        words
            .chunks(LONGEST)
            .for_each(|words| world().process_at_rank(to).send(words));
    }

    fn receive(&self, from: usize, words: &mut [u64]) {
        let from = from as i32;
        words.chunks_mut(LONGEST).for_each(|words| {
            world().process_at_rank(from).receive_into(words);
        });
    }

    fn exchange(&self, other: usize, outgoing: &[u64], incoming: &mut [u64]) {
        // Both ways at once: where memory is shared each copies what it gets.
        let world = world();
        let other = world.process_at_rank(other as i32);
        ::mpi::point_to_point::send_receive_into(outgoing, &other, incoming, &other);
    }

    fn broadcast(&self, from: usize, words: &mut [u64]) {
        let from = from as i32;
        words
            .chunks_mut(LONGEST)
            .for_each(|words| world().process_at_rank(from).broadcast_into(words));
    }

    fn gather(&self, own: &[u64], lengths: &[usize]) -> Vec<u64> {
        let total: usize = lengths.iter().sum();
        let counts: Vec<i32> = lengths.iter().map(|&length| length as i32).collect();
        let starts = counts.iter().scan(0, |next, count| {
            *next += count;
            Some(*next - count)
        });
        let starts: Vec<i32> = starts.collect();
        let mut all = vec![0u64; total];
        let mut places = PartitionMut::new(&mut all[..], counts, &starts[..]);
        world().all_gather_varcount_into(own, &mut places);
        all
    }

    fn all_end(&self, seconds: f64) -> bool {
        let started = Instant::now();
        let mut request = std::mem::MaybeUninit::uninit();
        // SAFETY: the request is made by the first call and given to the second, from the thread that initialised MPI.
        unsafe {
            ::mpi::ffi::MPI_Ibarrier(world().as_raw(), request.as_mut_ptr());
            let mut request = request.assume_init();
            loop {
                let (mut done, mut status) = (0, std::mem::MaybeUninit::uninit());
                ::mpi::ffi::MPI_Test(&mut request, &mut done, status.as_mut_ptr());
                if done != 0 {
                    return true;
                }
                if started.elapsed().as_secs_f64() > seconds {
                    return false;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn leave(&self) {
        drop(
            self.universe
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    fn end_all(&self, code: i32) -> ! {
        world().abort(code)
    }
}
