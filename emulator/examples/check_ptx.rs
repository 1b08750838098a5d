//! Says of PTX files whether the emulator runs all that is in them: `cargo run -p plimsoll-emulator --example check_ptx -- file...`

use std::collections::HashMap;
use std::process::ExitCode;

use plimsoll_emulator::program::Program;
use plimsoll_emulator::ptx::{self, Space};

fn main() -> ExitCode {
    let mut ok = true;
    for path in std::env::args().skip(1) {
        match check(&path) {
            Ok(kernels) => println!("{path}: {kernels} kernels"),
            Err(error) => {
                println!("{path}: {error}");
                ok = false;
            }
        }
    }
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(path: &str) -> Result<usize, Box<dyn std::error::Error>> {
    let module = ptx::parse(&std::fs::read_to_string(path)?)?;
    let variables = module.variables.iter().filter(|variable| variable.space != Space::Shared);
    let addresses: HashMap<String, u64> = variables.map(|variable| (variable.name.clone(), 0)).collect();
    for entry in &module.entries {
        Program::decode(&module, entry, &addresses)?;
    }
    Ok(module.entries.len())
}
