//! Sums over slices in several lanes, which the compiler makes vectors of. The order of additions is fixed.

const LANES: usize = 16;

/// The sum of all elements.
pub fn sum(x: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let chunks = x.chunks_exact(LANES);
    let rest: f32 = chunks.remainder().iter().sum();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| *lane += x);
    }
    lanes.iter().sum::<f32>() + rest
}

/// The sum of the products of elements at the same place.
pub fn dot(x: &[f32], y: &[f32]) -> f32 {
    let mut lanes = [0.0; LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let rest: f32 = xs.remainder().iter().zip(ys.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in xs.zip(ys) {
        lanes.iter_mut().zip(x.iter().zip(y)).for_each(|(lane, (x, y))| *lane += x * y);
    }
    lanes.iter().sum::<f32>() + rest
}
