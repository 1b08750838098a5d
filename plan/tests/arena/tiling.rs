//! Hard problems with a known answer: a square of time and memory, cut into pieces.

use plimsoll_plan::arena::{Buffer, Lifespan, Problem};

/// The steps and the bytes of the square.
pub const SIDE: u64 = 1 << 20;

/// A square, cut `pieces - 1` times at random across time or memory. Its capacity leaves no gap.
pub fn tiling(seed: u64, pieces: usize) -> Problem {
    let mut state = seed;
    // splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
    let mut random = |below: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % below
    };
    // Of each piece the steps (lower, upper) and the bytes, all in units of 1024.
    let mut cut = vec![(0, SIDE / 1024, SIDE / 1024)];
    while cut.len() < pieces {
        // The largest of three.
        let choices = [random(cut.len() as u64), random(cut.len() as u64), random(cut.len() as u64)];
        let area = |&index: &u64| (cut[index as usize].1 - cut[index as usize].0) * cut[index as usize].2;
        let index = choices.into_iter().max_by_key(area).unwrap() as usize;
        let (lower, upper, size) = cut[index];
        if random(2) == 0 && upper - lower > 1 {
            let at = lower + 1 + random(upper - lower - 1);
            cut[index] = (lower, at, size);
            cut.push((at, upper, size));
        } else if size > 1 {
            let at = 1 + random(size - 1);
            cut[index] = (lower, upper, at);
            cut.push((lower, upper, size - at));
        }
    }
    let mut buffers = Vec::new();
    for (lower, upper, size) in cut {
        let lifespan = Lifespan::new(lower as u32, upper as u32);
        let at = random(buffers.len() as u64 + 1) as usize;
        buffers.insert(at, Buffer { lifespan, size: size * 1024, alignment: 256 });
    }
    Problem { buffers, capacity: Some(SIDE) }
}
