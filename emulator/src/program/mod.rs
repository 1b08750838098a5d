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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx;

    fn program(variables: &str, body: &str) -> Result<Program, Error> {
        let head = ".version 8.1\n.target sm_75\n.address_size 64\n";
        let module = ptx::parse(&format!("{head}{variables}\n.entry f(.param .u32 p)\n{{\n{body}\n}}"))?;
        let addresses = HashMap::from([("table".to_owned(), 0x1234)]);
        Program::decode(&module, &module.entries[0], &addresses)
    }

    #[test]
    fn registers_have_rows_of_their_kind() {
        let layout =
            program("", ".reg .b32 %r<3>; .reg .f32 %f<2>; .reg .b64 %rd<2>; .reg .pred %p<2>; mov.u32 %r2, 7;")
                .unwrap()
                .layout;
        assert_eq!((layout.wide, layout.predicates), (2, 2));
        // Three and two of 32 bits, and one that holds the constant.
        assert_eq!((layout.narrow, layout.narrow_constants), (6, vec![(5, 7)]));
    }

    #[test]
    fn names_are_known_in_their_braces_only() {
        let outer = ".reg .b32 %r<2>;";
        assert!(program("", &format!("{outer} {{ .reg .b32 x; mov.u32 x, %r1; }}")).is_ok());
        assert!(program("", &format!("{outer} {{ .reg .b32 x; }} mov.u32 x, %r1;")).is_err());
        // The inner name hides the outer one, whose type would not fit.
        assert!(program("", &format!("{outer} .reg .b64 x; {{ .reg .b32 x; mov.u32 x, %r1; }}")).is_ok());
        assert!(program("", ".reg .b32 %r<2>; mov.u32 %r2, 1;").is_err());
        assert!(program("", ".reg .b32 %r<2>; mov.u32 %r, 1;").is_err());
    }

    #[test]
    fn shared_variables_lie_behind_one_another_and_the_launch_behind_all() {
        let variables =
            ".shared .align 16 .b8 unused[64];\n.shared .align 8 .b8 common[8];\n.extern .shared .align 16 .b8 more[];";
        let body = ".reg .b64 %rd<3>; .shared .align 4 .b8 own[20]; mov.u64 %rd1, common; mov.u64 %rd2, more;";
        let program = program(variables, body).unwrap();
        // 20 bytes, 4 to align, 8 bytes; then the next multiple of 16.
        assert_eq!((program.shared_bytes, program.dynamic_shared), (32, 32));
        let mut constants: Vec<u64> = program.layout.wide_constants.iter().map(|(_, value)| *value).collect();
        constants.sort();
        assert_eq!(constants, [24, 32]);
        assert_eq!((program.shared_bytes_with(0), program.shared_bytes_with(100)), (32, 132));
    }

    #[test]
    fn variables_of_the_module_are_their_addresses() {
        let program = program("", ".reg .b64 %rd<2>; mov.u64 %rd1, table; mov.b64 %rd1, p;").unwrap();
        let mut constants: Vec<u64> = program.layout.wide_constants.iter().map(|(_, value)| *value).collect();
        constants.sort();
        assert_eq!(constants, [0, 0x1234]);
    }

    #[test]
    fn branches_go_to_the_instruction_after_the_label() {
        let program = program("", "bra $b; $a: ret; $b: bra $a;").unwrap();
        assert!(matches!(program.instructions[0].operation, crate::instructions::Operation::Branch(2)));
        assert!(matches!(program.instructions[2].operation, crate::instructions::Operation::Branch(1)));
        assert_eq!(program.instructions.len(), 4);
    }

    #[test]
    fn what_can_not_run_is_refused_with_its_line() {
        for (body, message) in [
            ("\n\ncall f;", "calls are not supported: let the compiler inline functions"),
            ("\n\nbar.sync 1;", "of the barriers of a block, `bar.sync 0` is supported"),
            ("\n\nbar.sync 0, 64;", "of the barriers of a block, `bar.sync 0` is supported"),
            ("\n\nret 5;", "`ret` has 0 operands, and 1 are given"),
            ("\n\n@%p1 ret;", "`%p1` is not declared"),
            ("\n\nret.fast;", "`.fast` of `ret.fast` is not supported"),
        ] {
            assert_eq!(program("", body).unwrap_err(), Error::new(9, message));
        }
    }
}
