//! The registers of a warp: each is a row of 32 values, one a thread, so that an instruction works on a row at once.

/// The threads of a warp.
pub const WARP: usize = 32;

/// All threads of a warp.
pub const ALL: u32 = u32::MAX;

/// One value for each thread of a warp.
pub type Lanes<T> = [T; WARP];

/// A register's row among those of its kind; the instruction knows the kind.
pub type Register = u16;

/// The registers of a warp.
#[derive(Debug, Clone, Default)]
pub struct Registers {
    /// Registers of 32 bits or fewer. What lies above a 16-bit register's bits has no meaning.
    pub narrow: Vec<Lanes<u32>>,
    /// Registers of 64 bits.
    pub wide: Vec<Lanes<u64>>,
    /// Predicates, one bit a thread.
    pub predicates: Vec<u32>,
}

/// A type that a register can hold.
pub trait Value: Copy + Default {
    /// The row of a register.
    fn read(registers: &Registers, register: Register) -> Lanes<Self>;
    /// Replaces the values of the threads in `mask`.
    fn write(registers: &mut Registers, register: Register, values: &Lanes<Self>, mask: u32);
}

macro_rules! value {
    ($rows:ident, $bits:ty: $($name:ty, $from:expr, $to:expr;)*) => {$(
        impl Value for $name {
            #[inline(always)]
            fn read(registers: &Registers, register: Register) -> Lanes<Self> {
                map(&registers.$rows[register as usize], $from)
            }
            #[inline(always)]
            fn write(registers: &mut Registers, register: Register, values: &Lanes<Self>, mask: u32) {
                let to = $to;
                let row = &mut registers.$rows[register as usize];
                if mask == ALL {
                    *row = map(values, to);
                } else {
                    for lane in lanes(mask) {
                        row[lane] = to(values[lane]);
                    }
                }
            }
        }
    )*};
}

value! { narrow, u32:
    u8, |bits: u32| bits as u8, u32::from;
    i8, |bits: u32| bits as i8, |value: i8| value as u32;
    u16, |bits: u32| bits as u16, u32::from;
    i16, |bits: u32| bits as i16, |value: i16| value as u32;
    u32, |bits: u32| bits, |value: u32| value;
    i32, |bits: u32| bits as i32, |value: i32| value as u32;
    f32, f32::from_bits, f32::to_bits;
}

value! { wide, u64:
    u64, |bits: u64| bits, |value: u64| value;
    i64, |bits: u64| bits as i64, |value: i64| value as u64;
    f64, f64::from_bits, f64::to_bits;
}

/// The threads in a mask, from the first on.
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        let lane = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (lane < WARP).then_some(lane)
    })
}

/// A function of each value of a row. (The method of arrays is not made into vector instructions.)
#[inline(always)]
pub fn map<A: Copy, R: Copy + Default>(row: &Lanes<A>, f: impl Fn(A) -> R) -> Lanes<R> {
    let mut values = [R::default(); WARP];
    for lane in 0..WARP {
        values[lane] = f(row[lane]);
    }
    values
}

/// `to = f(a)` for the threads in `mask`.
#[inline(always)]
pub fn unary<A: Value, R: Value>(registers: &mut Registers, mask: u32, to: Register, a: Register, f: impl Fn(A) -> R) {
    let values = map(&A::read(registers, a), f);
    R::write(registers, to, &values, mask);
}

/// `to = f(a, b)` for the threads in `mask`.
#[inline(always)]
pub fn binary<A: Value, B: Value, R: Value>(
    registers: &mut Registers,
    mask: u32,
    to: Register,
    [a, b]: [Register; 2],
    f: impl Fn(A, B) -> R,
) {
    let (a, b) = (A::read(registers, a), B::read(registers, b));
    let mut values = [R::default(); WARP];
    for lane in 0..WARP {
        values[lane] = f(a[lane], b[lane]);
    }
    R::write(registers, to, &values, mask);
}

/// `to = f(a, b, c)` for the threads in `mask`.
#[inline(always)]
pub fn ternary<A: Value, B: Value, C: Value, R: Value>(
    registers: &mut Registers,
    mask: u32,
    to: Register,
    [a, b, c]: [Register; 3],
    f: impl Fn(A, B, C) -> R,
) {
    let (a, b, c) = (A::read(registers, a), B::read(registers, b), C::read(registers, c));
    let mut values = [R::default(); WARP];
    for lane in 0..WARP {
        values[lane] = f(a[lane], b[lane], c[lane]);
    }
    R::write(registers, to, &values, mask);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_outside_the_mask_keep_their_values() {
        let mut registers = Registers { narrow: vec![[7; WARP]; 2], ..Registers::default() };
        unary(&mut registers, 0b101, 0, 1, |value: u32| value + 1);
        assert_eq!(registers.narrow[0][..4], [8, 7, 8, 7]);
        binary(&mut registers, ALL, 1, [0, 1], |a: u32, b: u32| a * b);
        assert_eq!(registers.narrow[1][..4], [56, 49, 56, 49]);
    }

    #[test]
    fn narrow_values_extend_by_their_sign() {
        let mut registers = Registers { narrow: vec![[0; WARP]], ..Registers::default() };
        i8::write(&mut registers, 0, &[-2; WARP], ALL);
        assert_eq!(registers.narrow[0][0], 0xffff_fffe);
        assert_eq!(i16::read(&registers, 0)[0], -2);
        assert_eq!(u8::read(&registers, 0)[0], 0xfe);
    }

    #[test]
    fn a_mask_lists_its_threads() {
        assert_eq!(lanes(0x8000_0005).collect::<Vec<_>>(), [0, 2, 31]);
        assert_eq!(lanes(0).count(), 0);
    }
}
