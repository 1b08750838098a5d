//! What compiled kernels compute, against values computed here: forwards, and with the threads of a block in reverse.
#![cfg(target_os = "linux")]

mod common;

use common::{Gpu, KERNELS, blocks};
use cudarc::driver::LaunchConfig;

/// Runs the test in each order, and the results must be the same to the bit. No kernel here has blocks that race.
fn both_ways<T: PartialEq + std::fmt::Debug>(test: impl Fn(&Gpu) -> Vec<T>) -> Vec<T> {
    let [forwards, backwards] = [false, true].map(|reversed| {
        let gpu = Gpu::new(KERNELS);
        gpu.session.set_reversed(reversed);
        gpu.session.set_races(reversed);
        let result = test(&gpu);
        assert_eq!(gpu.session.reports(), Vec::<String>::new());
        result
    });
    assert_eq!(forwards, backwards);
    forwards
}

/// Values between -1 and 1.
fn values(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 % 2003) as f32 - 1001.0) / 1001.0).collect()
}

fn near(found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        assert!(error <= tolerance * expected.abs().max(1.0), "element {i}: {found} for {expected}");
    }
}

#[test]
fn elementwise() {
    let (x, n) = (values(1000), 1000i32);
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&x).unwrap();
        let mut to = gpu.stream.clone_htod(&vec![1f32; 1000]).unwrap();
        launch!(gpu, "axpy", LaunchConfig::for_num_elems(1000), &mut to, &from, &2f32, &n).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    assert!(y.iter().zip(&x).all(|(y, x)| *y == x.mul_add(2.0, 1.0)));
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&x).unwrap();
        let mut to = unsafe { gpu.stream.alloc::<f32>(1000) }.unwrap();
        launch!(gpu, "scale4", blocks(2, 128, 0), &mut to, &from, &3f32, &250i32).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    assert!(y.iter().zip(&x).all(|(y, x)| *y == 3.0 * x));
}

#[test]
fn bytes_and_halves() {
    let bytes: Vec<u8> = (0..=255).collect();
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&bytes).unwrap();
        let mut to = unsafe { gpu.stream.alloc::<f32>(256) }.unwrap();
        launch!(gpu, "normalize", blocks(3, 32, 0), &mut to, &from, &0.5f32, &0.25f32, &256i32).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    assert!(y.iter().zip(&bytes).all(|(y, x)| *y == (f32::from(*x) / 255.0 - 0.5) / 0.25));
    // 1/3 in half precision is 0.333251953125; 65504 is the largest half.
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&[1.0f32 / 3.0, 65504.0, 1e6, -2.0, 1e-9]).unwrap();
        let mut to = unsafe { gpu.stream.alloc::<f32>(5) }.unwrap();
        launch!(gpu, "halves", blocks(1, 32, 0), &mut to, &from, &5i32).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    assert_eq!(y, [0.333_251_95, 65504.0, f32::INFINITY, -2.0, 0.0]);
}

#[test]
fn softmax_of_rows() {
    let (rows, n) = (5, 77);
    let x: Vec<f32> = values(rows * n).iter().map(|x| 9.0 * x).collect();
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&x).unwrap();
        let mut to = unsafe { gpu.stream.alloc::<f32>(rows * n) }.unwrap();
        launch!(gpu, "softmax", blocks(rows as u32, 64, 0), &mut to, &from, &(n as i32)).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    let expected: Vec<f64> = x
        .chunks(n)
        .flat_map(|row| {
            let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
            row.iter().map(move |x| f64::from(*x).exp() / sum)
        })
        .collect();
    near(&y, &expected, 1e-6);
}

#[test]
fn a_product_of_matrices() {
    let (m, n, k) = (33usize, 20usize, 50usize);
    let (a, b) = (values(m * k), values(k * n));
    let c = both_ways(|gpu| {
        let [left, right] = [&a, &b].map(|values| gpu.stream.clone_htod(values).unwrap());
        let mut to = unsafe { gpu.stream.alloc::<f32>(m * n) }.unwrap();
        let config = LaunchConfig { grid_dim: (2, 3, 1), block_dim: (16, 16, 1), shared_mem_bytes: 0 };
        launch!(gpu, "matmul", config, &mut to, &left, &right, &(m as i32), &(n as i32), &(k as i32)).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    let expected: Vec<f64> =
        (0..m * n).map(|i| (0..k).map(|j| f64::from(a[i / n * k + j]) * f64::from(b[j * n + i % n])).sum()).collect();
    near(&c, &expected, 1e-6);
}

#[test]
fn random_numbers_are_the_published_ones() {
    // The known answers of Random123 for philox4x32-10 with counter and key zero, and all ones.
    let y = both_ways(|gpu| {
        let mut to = unsafe { gpu.stream.alloc::<u32>(6) }.unwrap();
        launch!(gpu, "philox", blocks(1, 32, 0), &mut to, &0u64, &0u64, &6i32).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    assert_eq!(y[..4], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
}

#[test]
fn windows_and_their_largest() {
    #[rustfmt::skip]
    let x = [
        1f32, 5.0, 2.0, 0.0,
        3.0, 4.0, 9.0, 1.0,
        7.0, 2.0, 6.0, 8.0,
    ];
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&x).unwrap();
        let mut to = unsafe { gpu.stream.alloc::<i32>(4) }.unwrap();
        let [height, width, kernel, stride, rows, columns] = [3i32, 4, 2, 2, 2, 2];
        launch!(
            gpu,
            "argmax_pool",
            blocks(1, 32, 0),
            &mut to,
            &from,
            &height,
            &width,
            &kernel,
            &stride,
            &rows,
            &columns
        )
        .unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    assert_eq!(y, [1, 6, 8, 11]);
}

#[test]
fn functions_are_close_to_those_of_mathematics() {
    let x: Vec<f32> = values(200).iter().map(|x| 5.0 * x).filter(|x| *x != 0.0).collect();
    let n = x.len();
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&x).unwrap();
        let mut to = unsafe { gpu.stream.alloc::<f32>(16 * n) }.unwrap();
        launch!(gpu, "functions", blocks(4, 64, 0), &mut to, &from, &(n as i32)).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    for (x, y) in x.iter().zip(y.chunks(16)) {
        let v = f64::from(*x);
        let a = v.abs();
        // Abramowitz and Stegun 7.1.26, good to 1.5e-7.
        let t = 1.0 / (1.0 + 0.3275911 * a);
        let series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
        let erf = (1.0 - series * (-a * a).exp()).copysign(v);
        let expected = [
            v.exp(),
            a.ln(),
            v.tanh(),
            erf,
            a.sqrt(),
            1.0 / a.sqrt(),
            v.sin(),
            a.powf(1.5),
            a.ln_1p(),
            v.exp_m1(),
            v.floor(),
            v.round_ties_even(),
            v.trunc(),
            v.round(),
            v % 0.75,
            1.0 / (1.0 + (-v).exp()),
        ];
        near(y, &expected, 1e-6);
    }
}

#[test]
fn arrays_of_threads() {
    let x: Vec<i32> = (0..64 * 20).map(|i| i * 31 % 11).collect();
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&x).unwrap();
        let mut to = unsafe { gpu.stream.alloc::<i32>(64 * 8) }.unwrap();
        launch!(gpu, "histogram", blocks(2, 32, 0), &mut to, &from, &20i32).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    for (thread, counts) in y.chunks(8).enumerate() {
        let own = &x[thread * 20..][..20];
        assert!((0..8).all(|bin| counts[bin] as usize == own.iter().filter(|x| (**x & 7) as usize == bin).count()));
    }
}

#[test]
fn sums_over_all_blocks() {
    // Whole numbers, whose sums are exact in any order.
    let x: Vec<f32> = (0..1000).map(|i| (i % 7) as f32 - 3.0).collect();
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&x).unwrap();
        let (mut sum, mut positive) =
            (gpu.stream.alloc_zeros::<f32>(1).unwrap(), gpu.stream.alloc_zeros::<i32>(1).unwrap());
        launch!(gpu, "count", blocks(8, 128, 0), &mut sum, &mut positive, &from, &1000i32).unwrap();
        vec![gpu.stream.clone_dtoh(&sum).unwrap()[0], gpu.stream.clone_dtoh(&positive).unwrap()[0] as f32]
    });
    let positive = x.iter().filter(|x| **x > 0.0).count();
    assert_eq!(y, [x.iter().sum::<f32>(), positive as f32]);
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&x).unwrap();
        let mut to = gpu.stream.alloc_zeros::<f64>(1).unwrap();
        launch!(gpu, "sum_double", blocks(1, 128, 1024), &mut to, &from, &1000i32).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    assert_eq!(y, [x.iter().map(|x| f64::from(*x)).sum::<f64>()]);
}

#[test]
fn threads_that_part_meet_again() {
    let y = both_ways(|gpu| {
        let mut to = unsafe { gpu.stream.alloc::<i32>(50) }.unwrap();
        launch!(gpu, "ways", blocks(1, 64, 0), &mut to, &50i32).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    // The Collatz steps of 1, 2, 3, 7 and 27.
    assert_eq!([y[0], y[1], y[2], y[6], y[26]], [0, 1, 7, 16, 111]);
}

#[test]
fn memory_of_the_module() {
    let y = both_ways(|gpu| {
        let from = gpu.stream.clone_htod(&[1f32, 2.0, 4.0, 8.0]).unwrap();
        let mut to = gpu.stream.alloc_zeros::<f32>(4).unwrap();
        launch!(gpu, "smooth", blocks(1, 32, 0), &mut to, &from, &4i32).unwrap();
        assert_eq!(gpu.session.accounting().live_bytes, 32, "a module's variables are not in the accounts");
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    assert_eq!(y, [0.0, 2.25, 4.5, 0.0]);
}

#[test]
fn threads_know_who_they_are() {
    let [grid_dim, block_dim] = [(2, 3, 4), (5, 3, 2)];
    let y = both_ways(|gpu| {
        let mut to = unsafe { gpu.stream.alloc::<i32>(24 * 30) }.unwrap();
        launch!(gpu, "places", LaunchConfig { grid_dim, block_dim, shared_mem_bytes: 0 }, &mut to).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    for (i, found) in y.into_iter().enumerate() {
        let (block, thread) = (i / 30, i % 30);
        let digits = [block % 2, block / 2 % 3, block / 6, thread % 5, thread / 5 % 3, thread / 15];
        assert_eq!(found, digits.into_iter().fold(0, |number, digit| 10 * number + digit as i32));
    }
}

#[test]
fn barriers_hold_the_warps_of_a_block_together() {
    let y = both_ways(|gpu| {
        let mut to = unsafe { gpu.stream.alloc::<i32>(96) }.unwrap();
        launch!(gpu, "relay", blocks(1, 96, 0), &mut to, &3i32).unwrap();
        gpu.stream.clone_dtoh(&to).unwrap()
    });
    let expected = (0..9).fold(1, |value, turn| 2 * value + turn % 3);
    assert_eq!(y, [expected; 96]);
}
