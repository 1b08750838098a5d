//! Places the buffers of a CSV file: `cargo run --release -p plimsoll-plan --example place -- A.1048576.csv`.
//!
//! The file's first line names its columns: `id,lower,upper,size` in any order, and optionally `alignment`. Others are
//! ignored. Lifespans are half-open.

use plimsoll_plan::arena::{Buffer, Effort, Lifespan, Problem, place, validate};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

const USAGE: &str = "usage: place FILE.csv [--capacity BYTES | --minimize] [--nodes NODES] [--output OFFSETS.csv]

The capacity is BYTES, or else the number in a file name like A.1048576.csv, or else the arena is made as low as can be.";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut path, mut output, mut capacity, mut minimize) = (None, None, None, false);
    let mut effort = Effort::THOROUGH;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value\n{USAGE}"));
        match argument.as_str() {
            "--capacity" => capacity = Some(number(&value()?, "--capacity")?),
            "--nodes" => effort.nodes = number(&value()?, "--nodes")?,
            "--output" => output = Some(value()?),
            "--minimize" => minimize = true,
            _ if argument.starts_with('-') => {
                return Err(format!("unknown option {argument}\n{USAGE}"));
            }
            _ => path = Some(argument),
        }
    }
    let path = path.ok_or(USAGE)?;
    if !minimize {
        capacity = capacity.or_else(|| capacity_of_name(&path));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
    let (ids, buffers) = parse(&text).map_err(|message| format!("{path}, {message}"))?;
    let problem = Problem { buffers, capacity };

    let start = Instant::now();
    let solution = place(&problem, &effort).map_err(|error| format!("{path}: {error}"))?;
    let time = start.elapsed();
    validate(&problem, &solution).map_err(|fault| format!("the placement is wrong, which is a bug: {fault}"))?;
    println!("buffers      {}", problem.buffers.len());
    println!("height       {}{}", solution.height, if solution.optimal { " (optimal)" } else { "" });
    println!("lower bound  {}", solution.lower_bound);
    println!("ratio        {:.6}", solution.ratio());
    println!("method       {:?}", solution.method);
    println!("nodes        {}", solution.nodes);
    println!("time         {:.3} s", time.as_secs_f64());
    if let Some(output) = output {
        let mut rows = String::from("id,lower,upper,size,alignment,offset\n");
        for ((id, buffer), offset) in ids.iter().zip(&problem.buffers).zip(&solution.offsets) {
            let Buffer { lifespan: Lifespan { lower, upper }, size, alignment } = buffer;
            rows += &format!("{id},{lower},{upper},{size},{alignment},{offset}\n");
        }
        std::fs::write(&output, rows).map_err(|error| format!("cannot write {output}: {error}"))?;
    }
    Ok(())
}

/// The number in a name like `A.1048576.csv`.
fn capacity_of_name(path: &str) -> Option<u64> {
    Path::new(path).file_stem()?.to_str()?.rsplit_once('.')?.1.parse().ok()
}

fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, String> {
    let error = || format!("{what} is `{text}`: write a whole number, not negative, that is not too large");
    text.trim().parse().map_err(|_| error())
}

/// The ids and the buffers of a file.
fn parse(text: &str) -> Result<(Vec<String>, Vec<Buffer>), String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next().ok_or("line 1: the file is empty: its first line must be `id,lower,upper,size`")?;
    let names: Vec<&str> = header.split(',').map(str::trim).collect();
    let column = |name: &str| names.iter().position(|&other| other == name);
    let need = |name: &str| column(name).ok_or(format!("line 1: no column `{name}` in `{header}`: name it there"));
    let (id, lower, upper, size) = (need("id")?, need("lower")?, need("upper")?, need("size")?);
    let alignment = column("alignment");

    let (mut ids, mut buffers) = (Vec::new(), Vec::new());
    for (index, line) in lines {
        let line_number = index + 1;
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != names.len() {
            let (is, must) = (fields.len(), names.len());
            return Err(format!(
                "line {line_number}: {is} values in `{line}`: there must be {must}, as in the first line"
            ));
        }
        let what = |column: usize| format!("line {line_number}: {}", names[column]);
        let lifespan = Lifespan::new(number(fields[lower], &what(lower))?, number(fields[upper], &what(upper))?);
        if lifespan.lower >= lifespan.upper {
            return Err(format!("line {line_number}: the lifespan {lifespan} is empty: upper must be above lower"));
        }
        let alignment = match alignment {
            Some(column) => number(fields[column], &what(column))?,
            None => 1,
        };
        ids.push(fields[id].trim().to_string());
        buffers.push(Buffer { lifespan, size: number(fields[size], &what(size))?, alignment });
    }
    Ok((ids, buffers))
}
