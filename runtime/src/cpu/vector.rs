//! Loops that the compiler makes vectors of, and sums over slices in several lanes, whose order is fixed.

/// A loop to be compiled for wide vectors. Its `run` is `#[inline(always)]`: only what is inlined has them, and closures of some
/// length are not.
pub trait Wide {
    /// What it gives.
    type Output;

    /// Runs it.
    fn run(self) -> Self::Output;
}

/// Runs a loop compiled for the widest vectors that this processor has. The results are the same as without: each operation
/// is rounded as it stands.
#[inline(always)]
pub fn run_wide<W: Wide>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
        {
            // SAFETY: the processor has the instructions.
            return unsafe { run_avx512(work) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { run_avx2(work) };
        }
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
fn run_avx512<W: Wide>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2<W: Wide>(work: W) -> W::Output {
    work.run()
}

/// As [`run_wide`], for a closure that is short enough to be inlined.
#[inline(always)]
pub fn wide<R>(run: impl FnOnce() -> R) -> R {
    run_wide(Call(run))
}

struct Call<F>(F);

impl<R, F: FnOnce() -> R> Wide for Call<F> {
    type Output = R;

    #[inline(always)]
    fn run(self) -> R {
        (self.0)()
    }
}

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
