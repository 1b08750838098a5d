//! How many PTX instructions a second the interpreter runs on one core: `cargo bench -p plimsoll-emulator`.

use std::collections::HashMap;
use std::time::Instant;

use plimsoll_emulator::machine::{self, Launch};
use plimsoll_emulator::memory::Global;
use plimsoll_emulator::program::Program;
use plimsoll_emulator::ptx;

fn main() {
    let module = ptx::parse(include_str!("../tests/kernels/kernels.ptx")).expect("the kernels parse");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let mut global = Global::new(1 << 30);
    let mut floats = |count: usize| {
        let address = global.allocate(4 * count, false).expect("there is room");
        let values: Vec<u8> = (0..count).flat_map(|i| ((i % 97) as f32 / 97.0).to_le_bytes()).collect();
        global.find_mut(address, 1).expect("just allocated").0.write(0, &values);
        address
    };
    let (x, y, z) = (floats(1 << 20), floats(1 << 20), floats(1 << 20));
    let n = 1u32 << 20;
    let words = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    let cases = [
        ("axpy", [n / 256, 1, 1], [256, 1, 1], words(&[y, x, pair(2f32.to_bits(), n)])),
        ("scale4", [n / 1024, 1, 1], [256, 1, 1], words(&[y, x, pair(2f32.to_bits(), n / 4)])),
        ("softmax", [256, 1, 1], [256, 1, 1], words(&[y, x, 1000])),
        ("matmul", [16, 16, 1], [16, 16, 1], words(&[z, x, y, pair(256, 256), 256])),
        ("philox", [n / 1024, 1, 1], [256, 1, 1], words(&[z, 42, 0, n.into()])),
        ("functions", [64, 1, 1], [256, 1, 1], words(&[z, x, 16384])),
        ("ways", [64, 1, 1], [256, 1, 1], words(&[z, 16384])),
    ];
    // No case reads the module's variables.
    let addresses: HashMap<String, u64> = module.variables.iter().map(|variable| (variable.name.clone(), 0)).collect();
    let only = std::env::args().nth(1).filter(|name| !name.starts_with("--"));
    for (name, grid, block, parameters) in
        cases.into_iter().filter(|(name, ..)| only.as_deref().is_none_or(|only| only == *name))
    {
        let entry = module.entries.iter().find(|entry| entry.name == name).expect("the kernel is there");
        let program = Program::decode(&module, entry, &addresses);
        let program = program.expect("the kernel is decoded");
        let launch = Launch {
            program: &program,
            grid,
            block,
            parameters,
            shared_bytes: 0,
            global: &global,
            reversed: false,
            races: None,
            limit: u64::MAX,
        };
        let run = || pool.install(|| machine::run(&launch)).unwrap_or_else(|fault| panic!("{fault}"));
        run();
        let (start, before, mut instructions) = (Instant::now(), processor_seconds(), 0);
        while start.elapsed().as_secs_f64() < 1.0 {
            instructions += run();
        }
        let seconds = processor_seconds() - before;
        println!("{name:10} {:7.0} million instructions a second", instructions as f64 / seconds / 1e6);
    }
}

/// What the threads of this process took of the processors, so that other work on the machine counts for less.
fn processor_seconds() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").expect("Linux has /proc").flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() / 1e9
}
