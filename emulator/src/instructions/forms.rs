//! Every form of an instruction that the kernels of `runtime/kernels` use, with its modifiers, has a row here: what it gives for
//! values whose result is known from the reference of PTX, from IEEE 754 or by hand. A form without a row fails the last test. The families'
//! own tests go further.

use std::collections::BTreeSet;

use super::testing::{Kernel, holds, narrow, run, single, wide};
use crate::ptx::{self, Statement};

/// A form, what it gave, and what it should give.
type Row = (&'static str, u64, u64);

/// On registers of 32 bits.
fn n(form: &'static str, from: &[u32], expected: u32) -> Row {
    (form, narrow(form, from).into(), expected.into())
}

/// On registers of 64 bits.
fn w(form: &'static str, from: &[u64], expected: u64) -> Row {
    (form, wide(form, from), expected)
}

/// On floats.
fn f(form: &'static str, from: &[f32], expected: f32) -> Row {
    (form, single(form, from).to_bits().into(), expected.to_bits().into())
}

/// A comparison of numbers of 32 bits.
fn p(form: &'static str, [a, b]: [u32; 2], expected: bool) -> Row {
    (form, holds(&format!("{form} %p0, %r1, %r2;"), &[0, a, b], &[]).into(), expected.into())
}

/// A comparison of floats.
fn pf(form: &'static str, from: [f32; 2], expected: bool) -> Row {
    p(form, from.map(f32::to_bits), expected)
}

/// Logic of predicates, of which `%p1` is true and `%p2` false.
fn l(form: &'static str, operands: &str, expected: bool) -> Row {
    let code = format!("setp.eq.s32 %p1, 1, 1; setp.eq.s32 %p2, 1, 2; {form} %p0, {operands};");
    (form, holds(&code, &[], &[]).into(), expected.into())
}

/// What `%r0` of the first thread holds after code in which the form stands.
fn r0(form: &'static str, code: &str, from: &[u32], expected: u32) -> Row {
    (form, run(code, from, &[5]).0[0].into(), expected.into())
}

/// What `%rd0` holds after code in which the form stands.
fn rd0(form: &'static str, code: &str, from: &[u32], expected: u64) -> Row {
    (form, run(code, from, &[]).1[0], expected)
}

/// What `%r0` holds after code that finds these bytes in global memory, at `%rd0`, and as parameters, and has 64 of shared memory.
fn m(form: &'static str, code: &str, bytes: &[u8], expected: u32) -> Row {
    let found = Kernel::new(code).global(bytes).parameters(bytes).shared(64).run();
    (form, found.unwrap_or_else(|mistake| panic!("{mistake}: {code}")).0[0].into(), expected.into())
}

fn integers() -> Vec<Row> {
    let minus = |number: i32| number.wrapping_neg() as u32;
    vec![
        n("add.s32", &[i32::MAX as u32, 1], 1 << 31),
        w("add.s64", &[u64::MAX, 2], 1),
        n("sub.s32", &[1 << 31, 1], i32::MAX as u32),
        n("mul.lo.s32", &[minus(3), 5], minus(15)),
        w("mul.lo.s64", &[1 << 40, 1 << 30], 0),
        w("mul.lo.s64", &[u64::MAX, 15], u64::MAX - 14),
        // Philox's first multiplier: 0xD2511F53 * 0x12345678 = 0xEF4B3B8096890E8.
        n("mul.hi.u32", &[0xD251_1F53, 0x1234_5678], 0x0EF4_B3B8),
        rd0("mul.wide.u32", "mul.wide.u32 %rd0, %r1, %r2;", &[0, 0xD251_1F53, 0x1234_5678], 0x0EF4_B3B8_0968_90E8),
        rd0("mul.wide.s32", "mul.wide.s32 %rd0, %r1, 4;", &[0, minus(3)], u64::MAX - 11),
        n("mad.lo.s32", &[minus(7), 6, 5], minus(37)),
        n("div.s32", &[minus(7), 2], minus(3)),
        n("div.u32", &[minus(7), 2], 0x7FFF_FFFC),
        n("rem.s32", &[minus(7), 2], minus(1)),
        n("rem.u32", &[minus(7), 4], 1),
        n("min.s32", &[minus(1), 1], minus(1)),
        n("max.s32", &[minus(1), 1], 1),
        n("max.u32", &[minus(1), 1], minus(1)),
        n("and.b32", &[0b1100, 0b1010], 0b1000),
        n("or.b32", &[0b1100, 0b1010], 0b1110),
        n("xor.b32", &[0b1100, 0b1010], 0b0110),
        n("not.b32", &[0x0F0F_0F0F], 0xF0F0_F0F0),
        w("and.b64", &[0x1FF, 252], 252),
        n("shl.b32", &[3, 31], 1 << 31),
        n("shl.b32", &[3, 32], 0),
        r0("shl.b64", "shl.b64 %rd1, %rd0, 32; mov.b64 {%r1, %r0}, %rd1;", &[], 5),
        n("shr.u32", &[1 << 31, 31], 1),
        n("bfi.b32", &[0xAB, 0xFFFF_FFFF, 8, 8], 0xFFFF_ABFF),
    ]
}

fn floats() -> Vec<Row> {
    let tiny = f32::from_bits(1);
    let above_one = 1.0 + f32::EPSILON;
    vec![
        // 2^24 + 3 lies between two floats: the even one is above.
        f("add.f32", &[16_777_216.0, 3.0], 16_777_220.0),
        f("add.rz.f32", &[16_777_216.0, 3.0], 16_777_218.0),
        f("sub.f32", &[16_777_216.0, -3.0], 16_777_220.0),
        f("mul.f32", &[above_one, above_one], 1.0 + 2.0 * f32::EPSILON),
        f("mul.rn.f32", &[above_one, above_one], 1.0 + 2.0 * f32::EPSILON),
        f("fma.rn.f32", &[above_one, above_one, -(1.0 + 2.0 * f32::EPSILON)], f32::EPSILON * f32::EPSILON),
        f("fma.rm.f32", &[1.0, 1.0, -tiny], f32::from_bits(0x3F7F_FFFF)),
        f("div.rn.f32", &[1.0, 3.0], f32::from_bits(0x3EAA_AAAB)),
        f("rcp.rn.f32", &[3.0], f32::from_bits(0x3EAA_AAAB)),
        f("rcp.approx.ftz.f32", &[4.0], 0.25),
        f("rcp.approx.ftz.f32", &[tiny], f32::INFINITY),
        f("sqrt.rn.f32", &[2.0], f32::from_bits(0x3FB5_04F3)),
        f("ex2.approx.ftz.f32", &[-3.0], 0.125),
        f("ex2.approx.ftz.f32", &[-130.0], 0.0),
        f("neg.f32", &[0.0], -0.0),
        f("abs.f32", &[-2.5], 2.5),
    ]
}

fn conversions() -> Vec<Row> {
    let bits = |x: f32| [0, x.to_bits()];
    vec![
        r0("cvt.rn.f32.s32", "cvt.rn.f32.s32 %f0, %r1;", &[0, -16_777_219i32 as u32], (-16_777_220f32).to_bits()),
        r0("cvt.rn.f32.u32", "cvt.rn.f32.u32 %f0, %r1;", &[0, u32::MAX], 4_294_967_296f32.to_bits()),
        r0("cvt.rn.f32.u16", "cvt.rn.f32.u16 %f0, %r1;", &[0, 0xABCD_FFFF], 65_535f32.to_bits()),
        r0("cvt.rzi.f32.f32", "cvt.rzi.f32.f32 %f0, %f1;", &bits(-2.9), (-2f32).to_bits()),
        r0("cvt.sat.f32.f32", "cvt.sat.f32.f32 %f0, %f1;", &bits(1.5), 1f32.to_bits()),
        r0("cvt.sat.f32.f32", "cvt.sat.f32.f32 %f0, %f1;", &bits(f32::NAN), 0),
        rd0("cvt.s64.s32", "cvt.s64.s32 %rd0, %r1;", &[0, -5i32 as u32], -5i64 as u64),
        rd0("cvt.u64.u32", "cvt.u64.u32 %rd0, %r1;", &[0, -5i32 as u32], 0xFFFF_FFFB),
        r0("cvt.u32.u64", "mov.b64 %rd1, {%r1, %r2}; cvt.u32.u64 %r0, %rd1;", &[0, 7, 9], 7),
        w("cvta.to.global.u64", &[0x10_0000_1234], 0x10_0000_1234),
    ]
}

fn moves() -> Vec<Row> {
    vec![
        n("mov.b32", &[0x3F80_0000], 0x3F80_0000),
        n("mov.u32", &[0xFFFF_0001], 0xFFFF_0001),
        r0("mov.f32", "mov.f32 %f0, 0f3F800000;", &[], 1f32.to_bits()),
        rd0("mov.b64", "mov.b64 %rd0, {%r1, %r2};", &[0, 7, 9], 9 << 32 | 7),
        w("mov.u64", &[1 << 63 | 1], 1 << 63 | 1),
        l("mov.pred", "%p1", true),
        l("mov.pred", "0", false),
        l("and.pred", "%p1, %p2", false),
        l("or.pred", "%p1, %p2", true),
        l("xor.pred", "%p1, %p1", false),
        l("not.pred", "%p2", true),
        r0("selp.b32", "setp.lt.u32 %p1, %laneid, 1; selp.b32 %r0, 7, 9, %p1;", &[], 7),
        r0("selp.f32", "setp.gt.s32 %p1, 1, 2; selp.f32 %f0, 0f3F800000, 0f40000000, %p1;", &[], 2f32.to_bits()),
    ]
}

fn comparisons() -> Vec<Row> {
    let (minus, nan) = (u32::MAX, f32::NAN);
    let eq64 = |b: u64| holds("setp.eq.s64 %p0, %rd1, %rd2;", &[], &[0, 1 << 40, b]).into();
    vec![
        p("setp.eq.b32", [minus, minus], true),
        p("setp.eq.b32", [minus, 1], false),
        p("setp.eq.s32", [5, 5], true),
        p("setp.eq.s32", [5, minus], false),
        ("setp.eq.s64", eq64(1 << 40), 1),
        ("setp.eq.s64", eq64(0), 0),
        p("setp.ne.s32", [5, 5], false),
        p("setp.ne.s32", [5, minus], true),
        p("setp.lt.s32", [minus, 1], true),
        p("setp.lt.s32", [1, 1], false),
        p("setp.le.s32", [1, 1], true),
        p("setp.le.s32", [1, minus], false),
        p("setp.gt.s32", [1, minus], true),
        p("setp.gt.s32", [1, 1], false),
        p("setp.ge.s32", [1, 1], true),
        p("setp.ge.s32", [minus, 1], false),
        p("setp.lt.u32", [minus, 1], false),
        p("setp.lt.u32", [1, minus], true),
        p("setp.ge.u32", [minus, 1], true),
        p("setp.ge.u32", [1, minus], false),
        pf("setp.eq.f32", [0.0, -0.0], true),
        pf("setp.eq.f32", [nan, nan], false),
        pf("setp.lt.f32", [1.0, 2.0], true),
        pf("setp.lt.f32", [nan, 2.0], false),
        pf("setp.ltu.f32", [1.0, 1.0], false),
        pf("setp.ltu.f32", [nan, 2.0], true),
        pf("setp.gt.f32", [2.0, 1.0], true),
        pf("setp.gt.f32", [2.0, nan], false),
        pf("setp.ge.f32", [1.0, 1.0], true),
        pf("setp.ge.f32", [nan, 1.0], false),
        pf("setp.nan.f32", [nan, 1.0], true),
        pf("setp.nan.f32", [f32::INFINITY, 1.0], false),
    ]
}

/// The bytes are the floats 1, 2, 3 and 4.
fn memory() -> Vec<Row> {
    let bytes: Vec<u8> = [1f32, 2.0, 3.0, 4.0].into_iter().flat_map(f32::to_le_bytes).collect();
    let [one, two, four] = [1f32, 2.0, 4.0].map(f32::to_bits);
    // 2.0 is 0x40000000, and 3.0 is 0x40400000.
    let high = 0x4000_0000;
    let words = "mov.u32 %r1, %laneid; cvt.rn.f32.u32 %f2, %r1; setp.lt.u32 %p0, %r1, 16; shl.b32 %r3, %r1, 2;";
    let store = format!("{words} @%p0 st.shared.f32 [%r3], %f2;");
    vec![
        m("ld.global.f32", "ld.global.f32 %f0, [%rd0+4];", &bytes, two),
        m("ld.global.u32", "ld.global.u32 %r0, [%rd0+12];", &bytes, four),
        m("ld.global.u8", "ld.global.u8 %r0, [%rd0+7];", &bytes, high >> 24),
        m("ld.param.f32", "ld.param.f32 %f0, [4];", &bytes, two),
        m("ld.param.u32", "ld.param.u32 %r0, [12];", &bytes, four),
        m("ld.param.u64", "ld.param.u64 %rd1, [0]; mov.b64 {%r1, %r0}, %rd1;", &bytes, two),
        m("st.global.f32", "st.global.f32 [%rd0+4], 0f3F800000; ld.global.u32 %r0, [%rd0+4];", &bytes, one),
        m("st.global.u32", "st.global.u32 [%rd0+8], 77; ld.global.u32 %r0, [%rd0+8];", &bytes, 77),
        m("st.global.u8", "st.global.u8 [%rd0+6], 0x1FF; ld.global.u32 %r0, [%rd0+4];", &bytes, high | 0xFF_0000),
        // Each of the first sixteen threads writes its number.
        m("st.shared.f32", &format!("{store} bar.sync 0; ld.shared.u32 %r0, [4];"), &bytes, one),
        m("ld.shared.f32", &format!("{store} bar.sync 0; ld.shared.f32 %f0, [8];"), &bytes, two),
        m(
            "ld.shared.v4.f32",
            &format!("{store} bar.sync 0; ld.shared.v4.f32 {{%f4, %f5, %f6, %f0}}, [0];"),
            &bytes,
            3f32.to_bits(),
        ),
    ]
}

fn threads() -> Vec<Row> {
    let exchange = "mov.u32 %r1, %laneid; shfl.sync.bfly.b32 %r0|%p0, %r1, 16, 31, -1;";
    let wait = |barrier: &str| {
        let code = format!("st.shared.u32 [4], 7; {barrier} ld.shared.u32 %r0, [4];");
        Kernel::new(&code).shared(8).run().map_or(0, |found| found.0[0].into())
    };
    // Without a barrier it is a race.
    assert_eq!(wait(""), 0);
    vec![
        r0("shfl.sync.bfly.b32", exchange, &[], 16),
        ("bar.sync", wait("bar.sync 0;"), 7),
        ("bar.warp.sync", wait("bar.warp.sync -1;"), 7),
        r0("bra", "setp.lt.u32 %p1, %laneid, 1; @%p1 bra $end; mov.u32 %r1, 9; $end: mov.u32 %r0, %r1;", &[0, 7], 7),
        r0("bra.uni", "bra.uni $end; mov.u32 %r1, 9; $end: mov.u32 %r0, %r1;", &[0, 7], 7),
        r0("ret", "mov.u32 %r0, 7; ret; mov.u32 %r0, 9;", &[], 7),
    ]
}

fn rows() -> Vec<Row> {
    [integers(), floats(), conversions(), moves(), comparisons(), memory(), threads()].concat()
}

#[test]
fn every_form_gives_what_is_known() {
    for (form, found, expected) in rows() {
        assert_eq!(found, expected, "{form} gives {found:#x}, not {expected:#x}");
    }
}

#[test]
fn every_form_of_the_kernels_has_a_row() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/kernels/ptx");
    let mut used = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let module = ptx::parse(&std::fs::read_to_string(file.unwrap().path()).unwrap()).unwrap();
        for statement in module.entries.into_iter().flat_map(|entry| entry.body) {
            if let Statement::Instruction { mnemonic, .. } = statement {
                used.insert(mnemonic);
            }
        }
    }
    assert!(used.len() > 80, "only {used:?} was found");
    let tested: BTreeSet<String> = rows().iter().map(|row| row.0.to_string()).collect();
    let untested: Vec<&String> = used.difference(&tested).collect();
    assert!(untested.is_empty(), "no row for {untested:?}");
    let unused: Vec<&String> = tested.difference(&used).collect();
    assert!(unused.is_empty(), "no kernel uses {unused:?} any more");
}
