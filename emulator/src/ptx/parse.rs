//! Tokens to syntax tree.

use super::{
    Entry, Error, Guard, Location, Module, Operand, Parameter, Registers, Space, Statement, Token, Type, Variable,
    tokens,
};

/// Parses a module.
pub fn parse(source: &str) -> Result<Module, Error> {
    let tokens = tokens(source)?;
    Parser { tokens: &tokens, at: 0, source: None }.module()
}

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// The file and line of the last `.loc`.
    source: Option<(u32, u32)>,
}

impl<'a> Parser<'a> {
    fn module(&mut self) -> Result<Module, Error> {
        let mut module = Module::default();
        while let Some(token) = self.peek() {
            match token {
                ".version" => {
                    self.at += 1;
                    let text = self.word()?;
                    module.version =
                        version(text).ok_or_else(|| self.error(format!("`{text}` is no version of PTX")))?;
                }
                ".target" => {
                    self.at += 1;
                    let text = self.word()?;
                    module.target = text
                        .strip_prefix("sm_")
                        .and_then(|number| number.trim_end_matches(char::is_alphabetic).parse().ok())
                        .ok_or_else(|| self.error(format!("`{text}` is no architecture")))?;
                    while self.skip(",") {
                        self.at += 1;
                    }
                }
                ".address_size" => {
                    self.at += 1;
                    if self.word()? != "64" {
                        return Err(self.error("addresses have 64 bits here"));
                    }
                }
                ".file" => module.files.push(self.file()?),
                ".loc" => self.loc()?,
                ".section" => self.section()?,
                ".visible" | ".weak" | ".extern" => self.at += 1,
                ".entry" => module.entries.push(self.entry()?),
                ".func" => self.function()?,
                ".global" | ".const" | ".shared" => module.variables.extend(self.variable()?),
                _ => return Err(Error::new(self.line(), format!("`{token}` is not known here"))),
            }
        }
        if module.version == (0, 0) {
            return Err(Error::new(1, "`.version` is missing: this is no PTX"));
        }
        Ok(module)
    }

    /// `.file 1 "kernels.cu"`, to the end of the line.
    fn file(&mut self) -> Result<(u32, String), Error> {
        let line = self.line();
        self.at += 1;
        let number = self.number()?;
        let name = self.word()?.trim_start_matches('"').to_owned();
        self.skip_line(line);
        Ok((number, name))
    }

    /// `.loc 1 5 34`, and at times where it was inlined, to the end of the line.
    fn loc(&mut self) -> Result<(), Error> {
        let line = self.line();
        self.at += 1;
        self.source = Some((self.number()?, self.number()?));
        self.skip_line(line);
        Ok(())
    }

    /// `.section name { ... }`, which only debuggers read.
    fn section(&mut self) -> Result<(), Error> {
        self.at += 2;
        self.expect("{")?;
        while !self.skip("}") {
            self.word()?;
        }
        Ok(())
    }

    /// A function that is declared and not defined. Nothing may call it, so it is passed over; one with a body is an error.
    fn function(&mut self) -> Result<(), Error> {
        let line = self.line();
        loop {
            match self.word()? {
                ";" => return Ok(()),
                "{" => return Err(Error::new(line, "functions are not supported: let the compiler inline them")),
                _ => {}
            }
        }
    }

    fn entry(&mut self) -> Result<Entry, Error> {
        self.at += 1;
        let name = self.word()?.to_owned();
        let mut parameters = Vec::new();
        let mut offset: usize = 0;
        if self.skip("(") {
            while !self.skip(")") {
                self.expect(".param")?;
                let (alignment, ty) = self.aligned_type()?;
                let name = self.word()?.to_owned();
                let count =
                    self.dimensions()?.unwrap_or(Some(1)).ok_or_else(|| self.error("a parameter has a size"))?;
                let size = self.bytes(ty, count)?;
                offset = offset.next_multiple_of(alignment);
                parameters.push(Parameter { name, offset, size });
                offset += size;
                self.skip(",");
            }
        }
        let mut max_threads = None;
        while self.peek().is_some_and(|token| token != "{") {
            let directive = self.word()?;
            let mut values = vec![self.number()?];
            while self.skip(",") {
                values.push(self.number()?);
            }
            match directive {
                ".maxntid" | ".reqntid" => max_threads = values.into_iter().try_fold(1, u32::checked_mul),
                ".minnctapersm" | ".maxnreg" => {}
                _ => return Err(self.error(format!("`{directive}` is not known for a kernel"))),
            }
        }
        self.expect("{")?;
        self.source = None;
        Ok(Entry { name, parameters, max_threads, body: self.body()? })
    }

    fn body(&mut self) -> Result<Vec<Statement>, Error> {
        let mut body = Vec::new();
        let mut depth = 0;
        loop {
            let token = self.peek().ok_or_else(|| self.error("a kernel does not end"))?;
            match token {
                "{" => {
                    self.at += 1;
                    depth += 1;
                    body.push(Statement::Open);
                }
                "}" => {
                    self.at += 1;
                    if depth == 0 {
                        return Ok(body);
                    }
                    depth -= 1;
                    body.push(Statement::Close);
                }
                ";" => self.at += 1,
                ".loc" => self.loc()?,
                ".pragma" => {
                    self.at += 2;
                    self.expect(";")?;
                }
                ".reg" => body.extend(self.registers()?.into_iter().map(Statement::Registers)),
                ".shared" | ".local" | ".param" => body.extend(self.variable()?.into_iter().map(Statement::Variable)),
                _ if token.starts_with('.') => {
                    return Err(Error::new(self.line(), format!("`{token}` is not known in a kernel")));
                }
                _ if self.tokens.get(self.at + 1).is_some_and(|next| next.text == ":") => {
                    self.at += 2;
                    body.push(Statement::Label(token.to_owned()));
                }
                _ => body.push(self.instruction()?),
            }
        }
    }

    fn instruction(&mut self) -> Result<Statement, Error> {
        let guard = if self.skip("@") {
            let negated = self.skip("!");
            Some(Guard { predicate: self.word()?.to_owned(), negated })
        } else {
            None
        };
        let location = Location { line: self.line(), source: self.source };
        let mnemonic = self.word()?.to_owned();
        let mut operands = Vec::new();
        while !self.skip(";") {
            operands.push(self.operand()?);
            if self.peek() != Some(";") {
                self.expect(",")?;
            }
        }
        Ok(Statement::Instruction { location, guard, mnemonic, operands })
    }

    fn operand(&mut self) -> Result<Operand, Error> {
        let token = self.word()?;
        Ok(match token {
            "{" => Operand::Vector(self.operands_until("}")?),
            "(" => Operand::List(self.operands_until(")")?),
            "[" => {
                let name = match self.peek() {
                    Some(next) if !next.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
                        Some(self.word()?.to_owned())
                    }
                    _ => None,
                };
                let offset = match self.peek() {
                    Some("+") => {
                        self.at += 1;
                        self.integer()?
                    }
                    Some("]") => 0,
                    _ => self.integer()?,
                };
                self.expect("]")?;
                Operand::Address(name, offset)
            }
            "!" => Operand::Not(self.word()?.to_owned()),
            "-" => {
                self.at -= 1;
                Operand::Integer(self.integer()?)
            }
            _ if token.starts_with("0f") || token.starts_with("0F") => {
                Operand::Single(u32::from_str_radix(&token[2..], 16).map_err(|_| self.not_a_number(token))?)
            }
            _ if token.starts_with("0d") || token.starts_with("0D") => {
                Operand::Double(u64::from_str_radix(&token[2..], 16).map_err(|_| self.not_a_number(token))?)
            }
            _ if token.starts_with(|first: char| first.is_ascii_digit()) => {
                self.at -= 1;
                Operand::Integer(self.integer()?)
            }
            _ if is_name(token) => {
                if self.skip("|") {
                    Operand::Pair(token.to_owned(), self.word()?.to_owned())
                } else {
                    Operand::Name(token.to_owned())
                }
            }
            _ => return Err(self.error(format!("`{token}` is no operand"))),
        })
    }

    fn operands_until(&mut self, end: &str) -> Result<Vec<Operand>, Error> {
        let mut operands = Vec::new();
        while !self.skip(end) {
            operands.push(self.operand()?);
            if self.peek() != Some(end) {
                self.expect(",")?;
            }
        }
        Ok(operands)
    }

    /// `.reg .b32 %r<6>, x;`
    fn registers(&mut self) -> Result<Vec<Registers>, Error> {
        let line = self.line();
        self.at += 1;
        let ty = self.type_name()?;
        let mut groups = Vec::new();
        loop {
            let name = self.word()?.to_owned();
            let count = if self.skip("<") {
                let count = self.number()?;
                self.expect(">")?;
                Some(count)
            } else {
                None
            };
            groups.push(Registers { line, ty, name, count });
            if self.skip(";") {
                return Ok(groups);
            }
            self.expect(",")?;
        }
    }

    /// `.global .align 4 .b8 table[24] = {65, 144};`
    fn variable(&mut self) -> Result<Vec<Variable>, Error> {
        let line = self.line();
        let space = match self.word()? {
            ".global" => Space::Global,
            ".const" => Space::Constant,
            ".shared" => Space::Shared,
            ".local" => Space::Local,
            _ => Space::Parameter,
        };
        let (alignment, ty) = self.aligned_type()?;
        let mut variables = Vec::new();
        loop {
            let name = self.word()?.to_owned();
            let count = self.dimensions()?.unwrap_or(Some(1));
            let size = count.map(|count| self.bytes(ty, count)).transpose()?;
            let initial = if self.skip("=") { self.initial(ty)? } else { Vec::new() };
            if size.is_some_and(|size| initial.len() > size) {
                return Err(Error::new(line, format!("`{name}` has more values than elements")));
            }
            variables.push(Variable { line, space, name, alignment, size, initial });
            if self.skip(";") {
                return Ok(variables);
            }
            self.expect(",")?;
        }
    }

    fn initial(&mut self, ty: Type) -> Result<Vec<u8>, Error> {
        let values = match self.operand()? {
            Operand::Vector(values) => values,
            value => vec![value],
        };
        let mut bytes = Vec::new();
        for value in values {
            let bits = match value {
                Operand::Integer(value) => value as u64,
                Operand::Single(bits) => u64::from(bits),
                Operand::Double(bits) => bits,
                _ => return Err(self.error("a variable starts with numbers")),
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..ty.size()]);
        }
        Ok(bytes)
    }

    /// `.align 16 .b8`, or just a type, whose size is its alignment. Attributes of pointers are passed over.
    fn aligned_type(&mut self) -> Result<(usize, Type), Error> {
        let mut alignment = None;
        if self.skip(".align") {
            alignment = Some(self.alignment()?);
        }
        let ty = self.type_name()?;
        if self.skip(".ptr") {
            for space in [".global", ".const", ".shared", ".local"] {
                self.skip(space);
            }
            if self.skip(".align") {
                self.alignment()?;
            }
        }
        Ok((alignment.unwrap_or(ty.size()), ty))
    }

    fn alignment(&mut self) -> Result<usize, Error> {
        let alignment = self.number()? as usize;
        if !alignment.is_power_of_two() || alignment > 256 {
            return Err(self.error(format!("{alignment} is no alignment")));
        }
        Ok(alignment)
    }

    fn type_name(&mut self) -> Result<Type, Error> {
        let token = self.word()?;
        token
            .strip_prefix('.')
            .and_then(Type::named)
            .ok_or_else(|| self.error(format!("`{token}` is not a type that is supported")))
    }

    /// The elements of `[4][16]`; `Some(None)` is `[]`, and `None` a scalar.
    fn dimensions(&mut self) -> Result<Option<Option<usize>>, Error> {
        let mut count = None;
        while self.skip("[") {
            if self.skip("]") {
                return Ok(Some(None));
            }
            let length = self.number()? as usize;
            self.expect("]")?;
            let product = count.unwrap_or(1usize).checked_mul(length);
            count = Some(product.ok_or_else(|| self.error("the size overflows"))?);
        }
        Ok(count.map(Some))
    }

    fn bytes(&self, ty: Type, count: usize) -> Result<usize, Error> {
        ty.size().checked_mul(count).filter(|size| *size < 1 << 40).ok_or_else(|| self.error("the size overflows"))
    }

    fn integer(&mut self) -> Result<i64, Error> {
        let negative = self.skip("-");
        let token = self.word()?;
        let digits = token.strip_suffix('U').unwrap_or(token);
        let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
            None => digits.parse::<u64>(),
        }
        .map_err(|_| self.not_a_number(token))? as i64;
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    fn number(&mut self) -> Result<u32, Error> {
        let value = self.integer()?;
        u32::try_from(value).map_err(|_| self.error(format!("{value} is out of range")))
    }

    fn not_a_number(&self, token: &str) -> Error {
        self.error(format!("`{token}` is no number"))
    }

    fn word(&mut self) -> Result<&'a str, Error> {
        let token = self.tokens.get(self.at).ok_or_else(|| self.error("the module ends too early"))?;
        self.at += 1;
        Ok(token.text)
    }

    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|token| token.text)
    }

    fn skip(&mut self, text: &str) -> bool {
        let found = self.peek() == Some(text);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) -> Result<(), Error> {
        if self.skip(text) {
            return Ok(());
        }
        let found = self.peek().unwrap_or("the end");
        Err(Error::new(self.line(), format!("`{text}` was expected, and `{found}` found")))
    }

    fn skip_line(&mut self, line: u32) {
        while self.peek().is_some() && self.line() == line {
            self.at += 1;
        }
    }

    /// The line of the next token.
    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |token| token.line)
    }

    /// An error at the token that was just read.
    fn error(&self, message: impl Into<String>) -> Error {
        let token = self.tokens.get(self.at.saturating_sub(1)).or(self.tokens.last());
        Error::new(token.map_or(1, |token| token.line), message)
    }
}

fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$' | '%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.1\n.target sm_75\n.address_size 64\n";

    fn module(rest: &str) -> Result<Module, Error> {
        parse(&format!("{HEAD}{rest}"))
    }

    #[test]
    fn a_kernel_has_parameters_registers_and_instructions() {
        let module = module(
            ".visible .entry f(\n .param .u32 a,\n .param .u64 b,\n .param .align 4 .b8 c[12]\n)\n.maxntid 16, 16, 1\n{\n\
             .reg .pred %p<2>;\n.shared .align 16 .b8 s[64];\n$L:\n@!%p1 bra $L;\nld.global.v2.f32 {%f1, %f2}, [%rd1+-8];\nret;\n}",
        )
        .unwrap();
        assert_eq!((module.version, module.target), ((8, 1), 75));
        let entry = &module.entries[0];
        let places: Vec<_> = entry.parameters.iter().map(|p| (p.offset, p.size)).collect();
        assert_eq!(places, [(0, 4), (8, 8), (16, 12)]);
        assert_eq!(entry.max_threads, Some(256));
        assert!(matches!(&entry.body[0], Statement::Registers(r) if r.count == Some(2) && r.ty == Type::Predicate));
        assert!(matches!(&entry.body[1], Statement::Variable(v) if v.size == Some(64) && v.alignment == 16));
        assert!(matches!(&entry.body[2], Statement::Label(name) if name == "$L"));
        let Statement::Instruction { location, guard, mnemonic, .. } = &entry.body[3] else { panic!() };
        assert_eq!((location.line, mnemonic.as_str()), (14, "bra"));
        assert_eq!(guard.as_ref().unwrap(), &Guard { predicate: "%p1".into(), negated: true });
        let Statement::Instruction { operands, .. } = &entry.body[4] else { panic!() };
        assert_eq!(operands[1], Operand::Address(Some("%rd1".into()), -8));
    }

    #[test]
    fn numbers_come_in_every_notation() {
        let module = module(".entry f()\n{\nx 0f3F800000, 0d3FF0000000000000, 0xFF, -5, 7;\n}").unwrap();
        let Statement::Instruction { operands, .. } = &module.entries[0].body[0] else { panic!() };
        let expected = [
            Operand::Single(1f32.to_bits()),
            Operand::Double(1f64.to_bits()),
            Operand::Integer(255),
            Operand::Integer(-5),
            Operand::Integer(7),
        ];
        assert_eq!(operands[..], expected);
    }

    #[test]
    fn variables_keep_what_they_start_with() {
        let module =
            module(".global .align 4 .b8 t[4] = {1, 2};\n.const .u32 c = 258;\n.extern .shared .align 16 .b8 s[];")
                .unwrap();
        assert_eq!(module.variables[0].initial, [1, 2]);
        assert_eq!(module.variables[1].initial, [2, 1, 0, 0]);
        assert_eq!(module.variables[2].size, None);
    }

    #[test]
    fn loc_names_the_source_of_what_follows() {
        let module = module(
            ".file 1 \"a.cu\"\n.entry f()\n{\n.loc 1 7 3, function_name $L, inlined_at 1 9 2\nret;\n}\n.section .debug_str\n{\n.b8 1,2\n}",
        )
        .unwrap();
        assert_eq!(module.files, [(1, "a.cu".to_owned())]);
        let Statement::Instruction { location, .. } = &module.entries[0].body[0] else { panic!() };
        assert_eq!(*location, Location { line: 8, source: Some((1, 7)) });
    }

    #[test]
    fn mistakes_name_their_line() {
        assert_eq!(parse("").unwrap_err().message, "`.version` is missing: this is no PTX");
        assert_eq!(module(".entry f()\n{\nret").unwrap_err().line, 6);
        assert_eq!(module(".entry f()\n{\n.foo 1;\n}").unwrap_err().line, 6);
        assert_eq!(module(".func f()\n{\n}").unwrap_err().line, 4);
        assert_eq!(module(".global .align 3 .b8 t[4];").unwrap_err().line, 4);
        assert!(module(".global .f128 t;").is_err());
    }
}
