//! Says of PTX files whether the emulator runs all that is in them: `cargo run -p plimsoll-emulator --example check_ptx -- file...`

use std::collections::HashMap;
use std::process::ExitCode;

use plimsoll_emulator::program::Program;
use plimsoll_emulator::ptx::{self, Space};

fn main() -> ExitCode {
    let mut ok = true;
    for path in std::env::args().skip(1) {
        match check(&path) {
            Ok((right, wrong)) => {
                println!("{path}: {right} kernels");
                wrong.iter().for_each(|error| println!("{path}: {error}"));
                ok &= wrong.is_empty();
            }
            Err(error) => {
                println!("{path}: {error}");
                ok = false;
            }
        }
    }
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many kernels of a module can run, and why the others can't.
fn check(path: &str) -> Result<(usize, Vec<String>), Box<dyn std::error::Error>> {
    let module = ptx::parse(&std::fs::read_to_string(path)?)?;
    let variables = module.variables.iter().filter(|variable| variable.space != Space::Shared);
    let addresses: HashMap<String, u64> = variables.map(|variable| (variable.name.clone(), 0)).collect();
    let decoded = module.entries.iter().map(|entry| {
        Program::decode(&module, entry, &addresses).map_err(|error| format!("kernel `{}`: {error}", entry.name))
    });
    let (right, wrong): (Vec<_>, Vec<_>) = decoded.partition(Result::is_ok);
    Ok((right.len(), wrong.into_iter().filter_map(Result::err).collect()))
}
