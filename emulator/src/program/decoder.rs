//! Names to places: which row a register is, which address a variable has, which instruction a label stands before.

use std::collections::HashMap;

use super::special::Special;
use crate::machine::Register;
use crate::ptx::{Error, Operand, Parameter, Registers, Space, Type, Variable};

/// What a name stands for.
#[derive(Debug, Clone, Copy)]
enum Symbol {
    /// Registers from a row on; `None` is one without a number.
    Narrow(Register, Option<u32>),
    Wide(Register, Option<u32>),
    Predicate(Register, Option<u32>),
    /// A variable's address in its space.
    Address(u64),
}

/// Where an address comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Only the offset counts.
    None,
    /// A register of 32 bits.
    Narrow(Register),
    /// A register of 64 bits.
    Wide(Register),
}

/// The address of a memory access.
#[derive(Debug, Clone, Copy)]
pub struct Address {
    /// What the offset is added to.
    pub base: Base,
    /// The offset, in which variables are already resolved.
    pub offset: u64,
}

/// Resolves the names of one kernel.
#[derive(Debug, Default)]
pub struct Decoder {
    line: u32,
    scopes: Vec<HashMap<String, Symbol>>,
    labels: HashMap<String, u32>,
    narrow_constants: HashMap<u32, Register>,
    wide_constants: HashMap<u64, Register>,
    specials: HashMap<Special, Register>,
    narrow: usize,
    wide: usize,
    predicates: usize,
    /// The predicate that is never set.
    never: Option<Register>,
    local_bytes: usize,
}

impl Decoder {
    /// A decoder that knows a module's variables, a kernel's parameters and its labels.
    pub fn new(variables: HashMap<String, u64>, parameters: &[Parameter], labels: HashMap<String, u32>) -> Decoder {
        let mut known: HashMap<_, _> =
            variables.into_iter().map(|(name, address)| (name, Symbol::Address(address))).collect();
        known.extend(
            parameters.iter().map(|parameter| (parameter.name.clone(), Symbol::Address(parameter.offset as u64))),
        );
        Decoder { scopes: vec![known], labels, ..Decoder::default() }
    }

    /// Instructions from here on stand on this line.
    pub fn at_line(&mut self, line: u32) {
        self.line = line;
    }

    /// Names declared from here on are known until `close`.
    pub fn open(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// Forgets the names since the last `open`.
    pub fn close(&mut self) {
        self.scopes.pop();
    }

    /// Declares registers.
    pub fn registers(&mut self, group: &Registers) -> Result<(), Error> {
        self.line = group.line;
        let count = group.count.unwrap_or(1);
        let rows = match (group.ty, group.ty.size()) {
            (Type::Predicate, _) => &mut self.predicates,
            (_, 8) => &mut self.wide,
            _ => &mut self.narrow,
        };
        let first = *rows as Register;
        *rows += count as usize;
        if count > 1 << 15 || *rows > 1 << 15 {
            return Err(self.error("there are too many registers"));
        }
        let symbol = match (group.ty, group.ty.size()) {
            (Type::Predicate, _) => Symbol::Predicate(first, group.count),
            (_, 8) => Symbol::Wide(first, group.count),
            _ => Symbol::Narrow(first, group.count),
        };
        self.declare(&group.name, symbol);
        Ok(())
    }

    /// Declares a variable of the kernel; shared ones have their address already.
    pub fn variable(&mut self, variable: &Variable) -> Result<(), Error> {
        self.line = variable.line;
        match variable.space {
            Space::Local => {
                let size = variable.size.ok_or_else(|| self.error("a local variable has a size"))?;
                let address = self.local_bytes.next_multiple_of(variable.alignment);
                self.local_bytes = address + size;
                self.declare(&variable.name, Symbol::Address(address as u64));
            }
            Space::Shared => {}
            // A parameter of a call, which is an error by itself.
            _ => self.declare(&variable.name, Symbol::Address(0)),
        }
        Ok(())
    }

    fn declare(&mut self, name: &str, symbol: Symbol) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), symbol);
        }
    }

    fn resolve(&self, name: &str) -> Result<Symbol, Error> {
        let find = |name: &str| self.scopes.iter().rev().find_map(|scope| scope.get(name)).copied();
        let plain = |symbol: &Symbol| {
            !matches!(symbol, Symbol::Narrow(_, Some(_)) | Symbol::Wide(_, Some(_)) | Symbol::Predicate(_, Some(_)))
        };
        if let Some(symbol) = find(name).filter(plain) {
            return Ok(symbol);
        }
        let group = name.trim_end_matches(|last: char| last.is_ascii_digit());
        let number: Option<u32> = name[group.len()..].parse().ok();
        let of_group = |first: Register, count: Option<u32>| {
            number.filter(|number| Some(*number) < count).map(|number| first + number as Register)
        };
        match find(group) {
            Some(Symbol::Narrow(first, count)) => of_group(first, count).map(|row| Symbol::Narrow(row, None)),
            Some(Symbol::Wide(first, count)) => of_group(first, count).map(|row| Symbol::Wide(row, None)),
            Some(Symbol::Predicate(first, count)) => of_group(first, count).map(|row| Symbol::Predicate(row, None)),
            _ => None,
        }
        .ok_or_else(|| self.error(format!("`{name}` is not declared")))
    }

    /// The register that an instruction writes a type to.
    pub fn target(&mut self, operand: &Operand, ty: Type) -> Result<Register, Error> {
        let Operand::Name(name) = operand else { return Err(self.error("the first operand is a register")) };
        if name == "_" {
            return Ok(self.scratch(ty.size() == 8));
        }
        match (self.resolve(name)?, ty.size()) {
            (Symbol::Wide(row, _), 8) | (Symbol::Narrow(row, _), 1..=4) => Ok(row),
            _ => Err(self.error(format!("`{name}` does not have the type of the instruction"))),
        }
    }

    /// A register that nobody reads.
    fn scratch(&mut self, wide: bool) -> Register {
        let rows = if wide { &mut self.wide } else { &mut self.narrow };
        *rows += 1;
        (*rows - 1) as Register
    }

    /// The register that an instruction reads a type from; constants have registers too.
    pub fn source(&mut self, operand: &Operand, ty: Type) -> Result<Register, Error> {
        let wide = ty.size() == 8;
        match operand {
            Operand::Name(name) => {
                if let Some(special) = Special::named(name) {
                    return match wide {
                        false => Ok(self.special(special)),
                        true => Err(self.error(format!("`{name}` has 32 bits"))),
                    };
                }
                match self.resolve(name)? {
                    Symbol::Wide(row, _) if wide => Ok(row),
                    Symbol::Narrow(row, _) if !wide && ty != Type::Predicate => Ok(row),
                    Symbol::Address(address) => Ok(self.constant(address, wide)),
                    _ => Err(self.error(format!("`{name}` does not have the type of the instruction"))),
                }
            }
            Operand::Integer(value) if !ty.is_float() => Ok(self.constant(*value as u64, wide)),
            Operand::Single(bits) if ty.size() == 4 => Ok(self.constant((*bits).into(), false)),
            Operand::Double(bits) if wide => Ok(self.constant(*bits, true)),
            _ => Err(self.error("an operand does not have the type of the instruction")),
        }
    }

    /// As `target`, but the register may be wider than the type. Tells whether it has 64 bits.
    pub fn target_at_least(&mut self, operand: &Operand, ty: Type) -> Result<(Register, bool), Error> {
        match operand {
            Operand::Name(name) if name != "_" && ty.size() < 8 => match self.resolve(name)? {
                Symbol::Wide(row, _) if !ty.is_float() => Ok((row, true)),
                _ => Ok((self.target(operand, ty)?, false)),
            },
            _ => Ok((self.target(operand, ty)?, ty.size() == 8)),
        }
    }

    /// As `source`, but the register may be wider than the type. Tells whether it has 64 bits.
    pub fn source_at_least(&mut self, operand: &Operand, ty: Type) -> Result<(Register, bool), Error> {
        if let Operand::Name(name) = operand
            && Special::named(name).is_none()
            && !ty.is_float()
            && let Symbol::Wide(row, _) = self.resolve(name)?
        {
            return Ok((row, true));
        }
        Ok((self.source(operand, ty)?, ty.size() == 8))
    }

    /// A predicate, and whether it is negated.
    pub fn predicate(&mut self, operand: &Operand) -> Result<(Register, bool), Error> {
        match operand {
            Operand::Name(name) => Ok((self.predicate_named(name)?, false)),
            Operand::Not(name) => Ok((self.predicate_named(name)?, true)),
            // A constant is a predicate that nobody sets, or its negation.
            Operand::Integer(value) => {
                let predicates = &mut self.predicates;
                let never = *self.never.get_or_insert_with(|| next(predicates));
                Ok((never, *value != 0))
            }
            _ => Err(self.error("an operand is not a predicate")),
        }
    }

    /// A predicate by its name.
    pub fn predicate_named(&mut self, name: &str) -> Result<Register, Error> {
        if name == "_" {
            self.predicates += 1;
            return Ok((self.predicates - 1) as Register);
        }
        match self.resolve(name)? {
            Symbol::Predicate(row, _) => Ok(row),
            _ => Err(self.error(format!("`{name}` is not a predicate"))),
        }
    }

    /// The address of a memory access.
    pub fn address(&mut self, operand: &Operand) -> Result<Address, Error> {
        let Operand::Address(name, offset) = operand else { return Err(self.error("an operand is not an address")) };
        let offset = *offset as u64;
        let Some(name) = name else { return Ok(Address { base: Base::None, offset }) };
        Ok(match self.resolve(name)? {
            Symbol::Wide(row, _) => Address { base: Base::Wide(row), offset },
            Symbol::Narrow(row, _) => Address { base: Base::Narrow(row), offset },
            Symbol::Address(address) => Address { base: Base::None, offset: address.wrapping_add(offset) },
            Symbol::Predicate(..) => return Err(self.error(format!("`{name}` is not an address"))),
        })
    }

    /// The instruction after a label.
    pub fn label(&self, operand: &Operand) -> Result<u32, Error> {
        let Operand::Name(name) = operand else { return Err(self.error("a branch needs a label")) };
        self.labels.get(name).copied().ok_or_else(|| self.error(format!("the label `{name}` does not exist")))
    }

    fn constant(&mut self, bits: u64, wide: bool) -> Register {
        match wide {
            true => *self.wide_constants.entry(bits).or_insert_with(|| next(&mut self.wide)),
            false => *self.narrow_constants.entry(bits as u32).or_insert_with(|| next(&mut self.narrow)),
        }
    }

    fn special(&mut self, special: Special) -> Register {
        *self.specials.entry(special).or_insert_with(|| next(&mut self.narrow))
    }

    /// An error on the line of the instruction.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::new(self.line, message)
    }

    /// What a warp's registers are made from: the counts, the constants and the special registers.
    pub fn layout(self) -> Layout {
        Layout {
            narrow: self.narrow,
            wide: self.wide,
            predicates: self.predicates,
            narrow_constants: self.narrow_constants.into_iter().map(|(bits, row)| (row, bits)).collect(),
            wide_constants: self.wide_constants.into_iter().map(|(bits, row)| (row, bits)).collect(),
            specials: self.specials.into_iter().map(|(special, row)| (row, special)).collect(),
            local_bytes: self.local_bytes,
        }
    }
}

fn next(rows: &mut usize) -> Register {
    *rows += 1;
    (*rows - 1) as Register
}

/// The registers and the local memory of a kernel.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// How many registers of 32 bits.
    pub narrow: usize,
    /// How many registers of 64 bits.
    pub wide: usize,
    /// How many predicates.
    pub predicates: usize,
    /// Rows that hold a constant.
    pub narrow_constants: Vec<(Register, u32)>,
    /// Rows that hold a constant.
    pub wide_constants: Vec<(Register, u64)>,
    /// Rows that hold a special register.
    pub specials: Vec<(Register, Special)>,
    /// The local bytes of a thread.
    pub local_bytes: usize,
}
