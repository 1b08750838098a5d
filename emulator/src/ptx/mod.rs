//! PTX as text: tokens, and the syntax tree made of them. Nothing here knows what an instruction does.

mod lex;
mod parse;
mod syntax;

pub use lex::{Token, tokens};
pub use parse::parse;
pub use syntax::{Entry, Guard, Location, Module, Operand, Parameter, Registers, Space, Statement, Type, Variable};

/// Why a module can't be loaded, with the line of its PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The line of the PTX, counted from one.
    pub line: u32,
    /// What is wrong there.
    pub message: String,
}

impl Error {
    /// An error at a line.
    pub fn new(line: u32, message: impl Into<String>) -> Error {
        Error { line, message: message.into() }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PTX line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for Error {}
