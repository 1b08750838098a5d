//! Bytes for people: decimal (GB = 10^9) or binary (GiB = 2^30), whichever the budget was declared in.

use serde::{Deserialize, Serialize};

/// A family of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Units {
    /// KB = 10^3, MB = 10^6, GB = 10^9 bytes.
    #[default]
    Decimal,
    /// KiB = 2^10, MiB = 2^20, GiB = 2^30 bytes.
    Binary,
}

/// Every unit of the language: its name, its bytes and its family.
pub const UNITS: &[(&str, u64, Units)] = &[
    ("B", 1, Units::Decimal),
    ("KB", 1_000, Units::Decimal),
    ("MB", 1_000_000, Units::Decimal),
    ("GB", 1_000_000_000, Units::Decimal),
    ("TB", 1_000_000_000_000, Units::Decimal),
    ("KiB", 1 << 10, Units::Binary),
    ("MiB", 1 << 20, Units::Binary),
    ("GiB", 1 << 30, Units::Binary),
    ("TiB", 1 << 40, Units::Binary),
];

impl Units {
    /// `bytes` in three significant digits: `982 MB`, `3.98 GB`, `1.51 MiB`. Below the smallest unit, whole bytes.
    ///
    /// ```
    /// use plimsoll_plan::units::Units;
    /// assert_eq!(Units::Decimal.format(3_981_234_567), "3.98 GB");
    /// assert_eq!(Units::Binary.format(1_578_536), "1.51 MiB");
    /// assert_eq!(Units::Decimal.format(999_999), "1.00 MB");
    /// assert_eq!(Units::Decimal.format(17), "17 B");
    /// ```
    pub fn format(self, bytes: u64) -> String {
        let (base, names) = match self {
            Units::Decimal => (1000u128, ["B", "KB", "MB", "GB", "TB", "PB", "EB"]),
            Units::Binary => (1024u128, ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]),
        };
        if u128::from(bytes) < base {
            return format!("{bytes} B");
        }
        let mut unit = base;
        let mut name = 1;
        // 999.5 of a unit already reads as 1.00 of the next.
        while u128::from(bytes) * 2 >= unit * (base * 2 - 1) && name < 6 {
            unit *= base;
            name += 1;
        }
        // Three significant digits, in integers: two, one or no decimals.
        for (decimals, scale) in [(2u32, 100u128), (1, 10), (0, 1)] {
            let scaled = (u128::from(bytes) * scale * 2 + unit) / (unit * 2);
            if scaled < 1000 || decimals == 0 {
                let whole = scaled / scale;
                let part = scaled % scale;
                return match decimals {
                    0 => format!("{whole} {}", names[name]),
                    _ => format!("{whole}.{part:0width$} {}", names[name], width = decimals as usize),
                };
            }
        }
        unreachable!("the last round always returns")
    }
}

impl Units {
    /// A declared amount exactly, in the largest unit that takes no more than three decimals: `3 GB`, `1.25 GiB`,
    /// `1234.567 KB`.
    ///
    /// ```
    /// use plimsoll_plan::units::Units;
    /// assert_eq!(Units::Decimal.format_declared(3_000_000_000), "3 GB");
    /// assert_eq!(Units::Decimal.format_declared(1_234_567), "1234.567 KB");
    /// assert_eq!(Units::Binary.format_declared(1_342_177_280), "1.25 GiB");
    /// assert_eq!(Units::Binary.format_declared(1_000_001), "1000001 B");
    /// ```
    pub fn format_declared(self, bytes: u64) -> String {
        let family = UNITS.iter().rev().filter(|(_, unit, family)| *family == self && *unit > 1 && *unit <= bytes);
        for (name, unit, _) in family {
            let thousandths = u128::from(bytes) * 1000;
            if thousandths.is_multiple_of(u128::from(*unit)) {
                let thousandths = thousandths / u128::from(*unit);
                let number = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
                return format!("{} {name}", number.trim_end_matches('0').trim_end_matches('.'));
            }
        }
        format!("{bytes} B")
    }
}

/// `n` with thousands separated: `138,357,544`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
