//! Measurements, to be run by hand: `cargo test -p plimsoll-plan --test chain timing -- --ignored --nocapture`, and with
//! `--release` for `loss`.

use crate::stage;
use plimsoll_plan::chain::{Effort, Stage, Tradeoff};
use std::time::Instant;

/// Sizes and costs in the manner of a convolutional network: outputs become smaller, and vary by a generator of
/// remainders.
pub fn varied(count: usize) -> Vec<Stage> {
    let mut random = 12_345u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let stages = (0..count).map(|index| {
        let scale = 1_000_000 * (8 >> (index * 4 / count));
        let output = scale + next(scale);
        Stage { backward_peak: 5 * output, ..stage(100 + next(900), output, output + next(scale)) }
    });
    stages.collect()
}

#[test]
#[ignore = "prints times"]
fn timing() {
    println!("{:>8}{:>8}{:>10}{:>12}{:>16}{:>12}", "stages", "slots", "memory", "solutions", "least", "ms");
    for count in [16, 32, 64, 128, 1000] {
        let stages = varied(count);
        let all = Tradeoff::new(&stages, u64::MAX, Effort { slots: 1, ..Effort::EXPANSION }).unwrap();
        let all = all.solutions().last().unwrap().peak;
        for slots in [200, 500] {
            for percent in [15, 50, 100] {
                let effort = Effort { slots, ..Effort::EXPANSION };
                let start = Instant::now();
                let tradeoff = Tradeoff::new(&stages, all / 100 * percent, effort).unwrap();
                let time = start.elapsed().as_secs_f64() * 1e3;
                println!(
                    "{count:>8}{slots:>8}{percent:>9}%{:>12}{:>16}{time:>12.1}",
                    tradeoff.solutions().len(),
                    tradeoff.least_memory(),
                );
            }
        }
    }
}

/// The cost of coarse solutions beside that of fine ones, over limits from 5 to 60 % of the memory that keeps everything.
#[test]
#[ignore = "prints losses"]
fn loss() {
    println!("{:>8}{:>8}{:>8}{:>10}{:>10}", "stages", "slots", "merged", "mean", "worst");
    for (count, finest) in [(96, Effort { slots: 4000, stages: 96 }), (1000, Effort { slots: 2000, stages: 250 })] {
        let stages = varied(count);
        let fine = Tradeoff::new(&stages, u64::MAX, finest).unwrap();
        let all = fine.solutions().last().unwrap().peak;
        for (slots, merged) in [(200, 32), (200, 64), (500, 64), (500, 128)] {
            let mut losses = Vec::new();
            for percent in (5..=60).step_by(5) {
                let limit = all / 100 * percent;
                let coarse = Tradeoff::new(&stages, limit, Effort { slots, stages: merged }).unwrap();
                if let (Some(coarse), Some(fine)) = (coarse.within(limit), fine.within(limit)) {
                    losses.push(100.0 * coarse.cost as f64 / fine.cost as f64 - 100.0);
                }
            }
            let mean = losses.iter().sum::<f64>() / losses.len() as f64;
            let worst = losses.iter().copied().fold(0.0, f64::max);
            println!("{count:>8}{slots:>8}{merged:>8}{mean:>9.2}%{worst:>9.2}%");
        }
    }
}
