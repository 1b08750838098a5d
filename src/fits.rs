//! `assert_fits!`: several networks on one card.

/// Fails the build when the sum of some sizes exceeds a budget, so that networks which share a card are planned together.
///
/// The budget is a number with a unit: `KB`, `MB`, `GB` (powers of 1000) or `KiB`, `MiB`, `GiB` (powers of 1024). The sizes
/// are constants in bytes, joined by `+`.
///
/// ```
/// use plimsoll::{assert_fits, network};
///
/// network! {
///     #[infer(batch = 8)]
///     struct Teacher(image: f32[3, 32, 32]) { flatten, linear(512), relu, linear(10) }
/// }
///
/// network! {
///     #[train(batch = 8, optimizer = adam, loss = cross_entropy)]
///     struct Student(image: f32[3, 32, 32]) { flatten, linear(64), relu, linear(10) }
/// }
///
/// assert_fits!(10 MB: Teacher::INFERENCE_BYTES + Student::PEAK_BYTES);
/// ```
///
/// Past the budget, the message has the numbers:
///
/// ```compile_fail
/// plimsoll::assert_fits!(1 MB: 600_000 + 600_000);
/// ```
#[macro_export]
macro_rules! assert_fits {
    ($amount:literal $unit:ident : $($sizes:tt)+) => {
        const _: () = {
            // Not consts of their own, each of which would repeat the error.
            let need: u64 = $($sizes)+;
            let budget = match $crate::fits::amount($amount as f64, stringify!($unit)) {
                ::core::option::Option::Some(budget) => budget,
                ::core::option::Option::None => ::core::panic!(
                    "unknown unit: write B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB or TiB (powers of 1024)"
                ),
            };
            if need > budget {
                let message = $crate::fits::Message::new(
                    concat!("`", stringify!($($sizes)+), "` does not fit ", stringify!($amount), " ", stringify!($unit)),
                    need,
                    budget,
                );
                ::core::panic!("{}", message.text());
            }
        };
    };
    ($($other:tt)*) => {
        ::core::compile_error!("assert_fits! takes a budget, a colon and sizes in bytes: assert_fits!(24 GiB: Net::PEAK_BYTES);");
    };
}

/// The bytes of an amount of a unit; `None` where the unit is unknown.
#[doc(hidden)]
pub const fn amount(number: f64, unit: &str) -> Option<u64> {
    let units = plimsoll_plan::units::UNITS;
    let mut i = 0;
    while i < units.len() {
        if same(units[i].0, unit) {
            // A cast from floating point stays within the integer's range.
            return Some((number * units[i].1 as f64) as u64);
        }
        i += 1;
    }
    None
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// A message put together while compiling, where `format!` can't be called.
#[doc(hidden)]
pub struct Message {
    bytes: [u8; Message::CAPACITY],
    len: usize,
}

impl Message {
    const CAPACITY: usize = 512;

    /// "... does not fit ...: they need N bytes, M over its B".
    pub const fn new(subject: &str, need: u64, budget: u64) -> Message {
        let message = Message { bytes: [0; Message::CAPACITY], len: 0 };
        let message = message.push(subject).push(": ").push_number(need).push(" bytes are needed, ");
        message.push_number(need.saturating_sub(budget)).push(" over its ").push_number(budget)
    }

    /// The message.
    pub const fn text(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "the sizes do not fit the budget",
        }
    }

    /// What does not fit the capacity is left out, whole characters or not: `text` then says it in general.
    const fn push(mut self, text: &str) -> Message {
        let bytes = text.as_bytes();
        let mut i = 0;
        while i < bytes.len() && self.len < Message::CAPACITY {
            self.bytes[self.len] = bytes[i];
            self.len += 1;
            i += 1;
        }
        self
    }

    /// A number with its thousands apart.
    const fn push_number(mut self, number: u64) -> Message {
        let mut digits = [0u8; 20];
        let mut count = 0;
        let mut rest = number;
        loop {
            digits[count] = b'0' + (rest % 10) as u8;
            count += 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        while count > 0 {
            count -= 1;
            if self.len < Message::CAPACITY {
                self.bytes[self.len] = digits[count];
                self.len += 1;
            }
            if count > 0 && count % 3 == 0 && self.len < Message::CAPACITY {
                self.bytes[self.len] = b',';
                self.len += 1;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        assert_eq!(amount(24.0, "GiB"), Some(24 << 30));
        assert_eq!(amount(1.5, "GB"), Some(1_500_000_000));
        assert_eq!(amount(1.0, "KB"), Some(1000));
        assert_eq!(amount(1.0, "kb"), None);
    }

    #[test]
    fn messages_have_the_numbers() {
        let message = Message::new("`A` does not fit 1 MB", 1_234_567, 1_000_000);
        assert_eq!(message.text(), "`A` does not fit 1 MB: 1,234,567 bytes are needed, 234,567 over its 1,000,000");
    }
}
