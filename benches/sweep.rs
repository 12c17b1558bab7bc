//! The argmax over all offsets of a direction: its cost against the number of points and of offsets.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use greedy_pde::candidates::Knots;
use greedy_pde::ridge::{Ladder, Sweep, SweepScratch};
use std::hint::black_box;

fn points(count: usize) -> (Vec<f64>, Vec<Vec<f64>>) {
    let t: Vec<f64> = (0..count)
        .map(|i| (i as f64 * 0.618_033_988_75).fract())
        .collect();
    let channels = vec![
        t.iter().map(|t| t.sin()).collect(),
        t.iter().map(|t| t.cos()).collect(),
    ];
    (t, channels)
}

fn scores(offsets: usize, t: &[f64], channels: &[Vec<f64>]) -> Vec<f64> {
    let knots = Knots {
        first: 0.0,
        step: 1.0 / offsets as f64,
        count: offsets,
    };
    let ladder = Ladder::Even(knots);
    let mut sweep = Sweep::new(2, offsets);
    sweep.add(&ladder, t, channels, &mut SweepScratch::default());
    let mut scores = vec![0.0; offsets];
    sweep.scores(&knots, &mut scores);
    scores
}

fn against_offsets(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sweep of 100,000 points against the number of offsets");
    let (t, channels) = points(100_000);
    for offsets in [16, 64, 256, 1024, 4096, 16384] {
        group.bench_with_input(
            BenchmarkId::from_parameter(offsets),
            &offsets,
            |bencher, &offsets| {
                bencher.iter(|| black_box(scores(offsets, &t, &channels)));
            },
        );
    }
    group.finish();
}

fn against_points(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sweep with 256 offsets against the number of points");
    for count in [10_000, 100_000, 1_000_000] {
        let (t, channels) = points(count);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_with_input(BenchmarkId::from_parameter(count), &count, |bencher, _| {
            bencher.iter(|| black_box(scores(256, &t, &channels)));
        });
    }
    group.finish();
}

criterion_group!(benches, against_offsets, against_points);
criterion_main!(benches);
