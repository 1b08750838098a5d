//! Stages for tests and measurements.

use plimsoll_plan::chain::Stage;

/// A stage with nothing within it: no bytes but those that must be there at once.
pub fn stage(forward_cost: u64, output: u64, saved: u64) -> Stage {
    Stage {
        forward_cost,
        backward_cost: 2 * forward_cost,
        output,
        output_gradient: output,
        saved,
        forward_peak: output,
        saving_peak: saved + output,
        backward_peak: saved + 2 * output,
        parameter_gradients: 0,
    }
}

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
