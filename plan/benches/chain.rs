//! Recomputation in chains: how long the solver takes, and what it loses by being coarse.
//!
//! ```text
//! cargo bench -p plimsoll-plan --bench chain --profile dev -- times
//! cargo bench -p plimsoll-plan --bench chain -- losses
//! ```
//!
//! The first without optimization, as in a macro.

#[path = "../tests/chain/stages.rs"]
mod stages;

use std::time::Instant;

use plimsoll_plan::chain::{Effort, Tradeoff};
use stages::varied;

fn main() {
    // Cargo passes flags of its own.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if is_wanted("times") {
        times();
    }
    if is_wanted("losses") {
        losses();
    }
}

/// How long it takes to find the solutions for all limits.
fn times() {
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
fn losses() {
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
