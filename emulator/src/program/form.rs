//! An instruction's mnemonic, taken apart: the base, and modifiers that are taken one by one. What nobody takes is an error.

use crate::ptx::{Error, Operand, Type};

/// A mnemonic.
#[derive(Debug)]
pub struct Form<'a> {
    line: u32,
    mnemonic: &'a str,
    base: &'a str,
    modifiers: Vec<&'a str>,
}

impl<'a> Form<'a> {
    /// Takes a mnemonic apart.
    pub fn new(line: u32, mnemonic: &'a str) -> Form<'a> {
        let mut parts = mnemonic.split('.');
        let base = parts.next().unwrap_or_default();
        Form { line, mnemonic, base, modifiers: parts.collect() }
    }

    /// What stands before the first dot.
    pub fn base(&self) -> &'a str {
        self.base
    }

    /// The line of the instruction.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Whether a modifier is there and not yet taken.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.contains(&modifier)
    }

    /// Takes a modifier, if it is there.
    pub fn take(&mut self, modifier: &str) -> bool {
        let place = self.modifiers.iter().position(|found| *found == modifier);
        place.map(|place| self.modifiers.remove(place)).is_some()
    }

    /// Takes whichever of these modifiers are there.
    pub fn take_all(&mut self, modifiers: &[&str]) {
        self.modifiers.retain(|found| !modifiers.contains(found));
    }

    /// Whether one of the types is a float.
    pub fn is_float(&self) -> bool {
        self.modifiers.iter().filter_map(|name| Type::named(name)).any(Type::is_float)
    }

    /// Whether the first type is of predicates.
    pub fn is_predicate(&self) -> bool {
        self.modifiers.contains(&"pred")
    }

    /// Takes the first type.
    pub fn ty(&mut self) -> Result<Type, Error> {
        let place = self.modifiers.iter().position(|name| Type::named(name).is_some());
        let name = place.map(|place| self.modifiers.remove(place));
        name.and_then(Type::named).ok_or_else(|| self.unsupported())
    }

    /// Takes the first type, which is an integer of 16 bits or more.
    pub fn integer_type(&mut self) -> Result<Type, Error> {
        use Type::{S16, S32, S64, U16, U32, U64};
        match self.ty()? {
            ty @ (U16 | U32 | U64 | S16 | S32 | S64) => Ok(ty),
            _ => Err(self.unsupported()),
        }
    }

    /// The instruction has this many operands.
    pub fn operands(&self, operands: &[Operand], count: usize) -> Result<(), Error> {
        match operands.len() == count {
            true => Ok(()),
            false => {
                let message = format!("`{}` has {count} operands, and {} are given", self.mnemonic, operands.len());
                Err(Error::new(self.line, message))
            }
        }
    }

    /// All modifiers were taken.
    pub fn finish(&self) -> Result<(), Error> {
        match self.modifiers.first() {
            None => Ok(()),
            Some(modifier) => {
                let message = format!("`.{modifier}` of `{}` is not supported", self.mnemonic);
                Err(Error::new(self.line, message))
            }
        }
    }

    /// The error of an instruction that is not known.
    pub fn unsupported(&self) -> Error {
        Error::new(self.line, format!("`{}` is not supported", self.mnemonic))
    }
}
