//! A kernel in the form that it runs in: instructions with their registers, addresses and targets resolved.

mod decoder;
mod form;
mod special;

use std::collections::{HashMap, HashSet};

pub use decoder::{Address, Base, Decoder, Layout};
pub use form::Form;
pub use special::Special;

use crate::instructions::Instruction;
use crate::machine::Register;
use crate::ptx::{Entry, Error, Location, Module, Operand, Parameter, Space, Statement, Variable};

/// A kernel, ready to run.
#[derive(Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its instructions; the last one ends the thread.
    pub instructions: Vec<Instruction>,
    /// Where each instruction stands.
    pub locations: Vec<Location>,
    /// The source files that locations speak of.
    pub files: Vec<(u32, String)>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Its registers and local memory.
    pub layout: Layout,
    /// Bytes of shared memory that the kernel declares.
    pub shared_bytes: usize,
    /// Where shared memory of the launch begins.
    pub dynamic_shared: usize,
    /// The most threads of a block that the kernel says it runs with.
    pub max_threads: Option<u32>,
}

/// The predicate of an instruction, and whether it is negated.
pub type Guard = Option<(Register, bool)>;

impl Program {
    /// Decodes a kernel. The addresses are those of the module's global and constant variables.
    pub fn decode(module: &Module, entry: &Entry, addresses: &HashMap<String, u64>) -> Result<Program, Error> {
        let mut addresses = addresses.clone();
        let (shared_bytes, dynamic_shared) = place_shared(module, entry, &mut addresses)?;
        let mut decoder = Decoder::new(addresses, &entry.parameters, labels(entry)?);
        let (mut instructions, mut locations) = (Vec::new(), Vec::new());
        for statement in &entry.body {
            match statement {
                Statement::Open => decoder.open(),
                Statement::Close => decoder.close(),
                Statement::Registers(group) => decoder.registers(group)?,
                Statement::Variable(variable) => decoder.variable(variable)?,
                Statement::Label(_) => {}
                Statement::Instruction { location, guard, mnemonic, operands } => {
                    decoder.at_line(location.line);
                    let guard = match guard {
                        Some(guard) => Some((decoder.predicate_named(&guard.predicate)?, guard.negated)),
                        None => None,
                    };
                    let mut form = Form::new(location.line, mnemonic);
                    instructions.push(Instruction::decode(&mut form, guard, operands, &mut decoder)?);
                    form.finish()?;
                    locations.push(*location);
                }
            }
        }
        instructions.push(Instruction::exit());
        locations.push(locations.last().copied().unwrap_or_default());
        Ok(Program {
            name: entry.name.clone(),
            instructions,
            locations,
            files: module.files.clone(),
            parameters: entry.parameters.clone(),
            layout: decoder.layout(),
            shared_bytes,
            dynamic_shared,
            max_threads: entry.max_threads,
        })
    }

    /// The file and line of the source that an instruction was compiled from.
    pub fn source(&self, instruction: usize) -> Option<(String, u32)> {
        let (file, line) = self.locations[instruction].source?;
        let (_, name) = self.files.iter().find(|(number, _)| *number == file)?;
        Some((name.clone(), line))
    }
}

/// The number of the instruction that follows each label.
fn labels(entry: &Entry) -> Result<HashMap<String, u32>, Error> {
    let mut labels = HashMap::new();
    let mut count = 0;
    for statement in &entry.body {
        match statement {
            Statement::Instruction { .. } => count += 1,
            Statement::Label(name) => {
                labels.insert(name.clone(), count);
            }
            _ => {}
        }
    }
    Ok(labels)
}

/// Gives shared variables their offsets: the kernel's own, then those of the module that it names, then the launch's.
fn place_shared(module: &Module, entry: &Entry, addresses: &mut HashMap<String, u64>) -> Result<(usize, usize), Error> {
    let own = entry.body.iter().filter_map(|statement| match statement {
        Statement::Variable(variable) => Some(variable),
        _ => None,
    });
    let names = names(entry);
    let of_module = module.variables.iter().filter(|variable| names.contains(variable.name.as_str()));
    let shared: Vec<&Variable> = own.chain(of_module).filter(|variable| variable.space == Space::Shared).collect();
    let mut bytes = 0usize;
    for variable in shared.iter().filter(|variable| variable.size.is_some()) {
        let address = bytes.next_multiple_of(variable.alignment);
        addresses.insert(variable.name.clone(), address as u64);
        bytes = address + variable.size.unwrap_or_default();
    }
    let alignment = shared.iter().filter(|variable| variable.size.is_none()).map(|variable| variable.alignment).max();
    let dynamic = bytes.next_multiple_of(alignment.unwrap_or(1));
    for variable in shared.iter().filter(|variable| variable.size.is_none()) {
        addresses.insert(variable.name.clone(), dynamic as u64);
    }
    Ok((bytes, dynamic))
}

/// Every name that the kernel's operands have.
fn names(entry: &Entry) -> HashSet<&str> {
    let mut names = HashSet::new();
    for statement in &entry.body {
        if let Statement::Instruction { operands, .. } = statement {
            names.extend(operands.iter().filter_map(|operand| match operand {
                Operand::Name(name) | Operand::Address(Some(name), _) => Some(name.as_str()),
                _ => None,
            }));
        }
    }
    names
}
