//! A cluster of threads in one process: what a cluster does can be tested anywhere.

use super::{Cluster, Wire};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Barrier, Mutex, PoisonError};

/// Does some work as each process of a cluster of so many, in threads; what they return, in order.
pub fn in_threads<T: Send>(size: usize, work: impl Fn(Cluster) -> T + Sync) -> Vec<T> {
    let mut wires: Vec<Threads> = wires(size);
    std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = wires
            .drain(..)
            .map(|wire| scope.spawn(move || work(Cluster::new(Box::new(wire)))))
            .collect();
        let ended = running.into_iter().map(|thread| thread.join());
        ended
            .map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// One thread's ends of the channels to all others.
struct Threads {
    rank: usize,
    to: Vec<Mutex<Sender<Vec<u64>>>>,
    from: Vec<Mutex<Receiver<Vec<u64>>>>,
    all: Arc<Barrier>,
}

fn wires(size: usize) -> Vec<Threads> {
    let all = Arc::new(Barrier::new(size));
    let mut from: Vec<Vec<Mutex<Receiver<Vec<u64>>>>> = (0..size).map(|_| Vec::new()).collect();
    let mut wires = Vec::new();
    for rank in 0..size {
        let to = from.iter_mut().map(|receivers| {
            let (sender, receiver) = channel();
            receivers.push(Mutex::new(receiver));
            Mutex::new(sender)
        });
        wires.push(Threads {
            rank,
            to: to.collect(),
            from: Vec::new(),
            all: Arc::clone(&all),
        });
    }
    for (wire, from) in wires.iter_mut().zip(from) {
        wire.from = from;
    }
    wires
}

impl Wire for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.to.len()
    }

    fn send(&self, to: usize, words: &[u64]) {
        let sender = self.to[to].lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever is gone has panicked, which its thread tells.
        let _ = sender.send(words.to_vec());
    }

    fn receive(&self, from: usize, words: &mut [u64]) {
        let receiver = self.from[from].lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(sent) = receiver.recv() {
            assert_eq!(sent.len(), words.len(), "processes took different ways");
            words.copy_from_slice(&sent);
        }
    }

    fn broadcast(&self, from: usize, words: &mut [u64]) {
        match self.rank == from {
            true => (0..self.size())
                .filter(|&to| to != from)
                .for_each(|to| self.send(to, words)),
            false => self.receive(from, words),
        }
    }

    fn gather(&self, own: &[u64], lengths: &[usize]) -> Vec<u64> {
        assert_eq!(own.len(), lengths[self.rank], "processes took different ways");
        (0..self.size())
            .filter(|&to| to != self.rank)
            .for_each(|to| self.send(to, own));
        let mut all = Vec::with_capacity(lengths.iter().sum());
        for (rank, &length) in lengths.iter().enumerate() {
            if rank == self.rank {
                all.extend(own);
                continue;
            }
            let start = all.len();
            all.resize(start + length, 0);
            self.receive(rank, &mut all[start..]);
        }
        all
    }

    fn all_end(&self, _: f64) -> bool {
        self.all.wait();
        true
    }

    fn leave(&self) {}

    fn end_all(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}
