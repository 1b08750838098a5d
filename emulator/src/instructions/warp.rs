//! Instructions in which the threads of a warp work together: shuffles, votes, and the barrier of a warp.

use super::compare;
use super::reach::Trouble;
use crate::faults::Mistake;
use crate::machine::{Register, Registers, Value, WARP, lanes};
use crate::program::{Decoder, Form};
use crate::ptx::{Error, Operand, Type};

/// An instruction of a whole warp.
#[derive(Debug, Clone)]
pub struct Collective {
    /// The threads that come together: a row of masks. Without one, whoever comes.
    pub members: Option<Register>,
    /// What they do.
    pub kind: Collectively,
}

/// What the threads of a warp do together.
#[derive(Debug, Clone)]
pub enum Collectively {
    /// Each reads another's register.
    Shuffle {
        /// Whose.
        pattern: Pattern,
        /// Where the value goes.
        to: Register,
        /// Where it goes whether the other exists.
        exists: Option<Register>,
        /// The value, the distance or lane, and the bounds.
        from: [Register; 3],
    },
    /// All learn something of a predicate of each.
    Vote {
        /// What they learn.
        question: Question,
        /// Where the answer goes.
        to: Register,
        /// The predicate, and whether it is negated.
        from: (Register, bool),
    },
    /// All learn who is there.
    ActiveMask {
        /// Where the mask goes.
        to: Register,
    },
    /// Memory accesses before are ordered before those after.
    Barrier,
}

/// Whose register a shuffle reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Pattern {
    Up,
    Down,
    Butterfly,
    Index,
}

/// What a vote asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Question {
    All,
    Any,
    Uniform,
    Ballot,
}

impl Collective {
    /// `shfl.sync`, `vote.sync`, `activemask` and `bar.warp.sync`.
    pub fn decode(form: &mut Form, operands: &[Operand], decoder: &mut Decoder) -> Result<Collective, Error> {
        if form.base() == "activemask" {
            form.ty()?;
            form.operands(operands, 1)?;
            let kind = Collectively::ActiveMask { to: decoder.target(&operands[0], Type::B32)? };
            return Ok(Collective { members: None, kind });
        }
        if !form.take("sync") {
            return Err(form.unsupported());
        }
        let (kind, members) = match form.base() {
            "shfl" => {
                form.operands(operands, 5)?;
                let pattern = match () {
                    () if form.take("up") => Pattern::Up,
                    () if form.take("down") => Pattern::Down,
                    () if form.take("bfly") => Pattern::Butterfly,
                    () if form.take("idx") => Pattern::Index,
                    () => return Err(form.unsupported()),
                };
                if form.ty()? != Type::B32 {
                    return Err(form.unsupported());
                }
                let (to, exists) = match &operands[0] {
                    Operand::Pair(to, exists) => (Operand::Name(to.clone()), Some(decoder.predicate_named(exists)?)),
                    to => (to.clone(), None),
                };
                let to = decoder.target(&to, Type::B32)?;
                let mut from = [0; 3];
                for (place, operand) in operands[1..4].iter().enumerate() {
                    from[place] = decoder.source(operand, Type::B32)?;
                }
                (Collectively::Shuffle { pattern, to, exists, from }, &operands[4])
            }
            "vote" => {
                form.operands(operands, 3)?;
                let question = match () {
                    () if form.take("all") => Question::All,
                    () if form.take("any") => Question::Any,
                    () if form.take("uni") => Question::Uniform,
                    () if form.take("ballot") => Question::Ballot,
                    () => return Err(form.unsupported()),
                };
                let to = match (form.ty()?, question) {
                    (Type::B32, Question::Ballot) => decoder.target(&operands[0], Type::B32)?,
                    (Type::Predicate, Question::All | Question::Any | Question::Uniform) => match &operands[0] {
                        Operand::Name(to) => decoder.predicate_named(to)?,
                        _ => return Err(form.unsupported()),
                    },
                    _ => return Err(form.unsupported()),
                };
                (Collectively::Vote { question, to, from: decoder.predicate(&operands[1])? }, &operands[2])
            }
            _ => {
                form.operands(operands, 1)?;
                (Collectively::Barrier, &operands[0])
            }
        };
        Ok(Collective { members: Some(decoder.source(members, Type::B32)?), kind })
    }

    /// Runs it for the threads in `mask`, who are all that come.
    pub fn execute(&self, registers: &mut Registers, mask: u32) -> Result<(), Trouble> {
        match &self.kind {
            Collectively::Shuffle { pattern, to, exists, from } => {
                shuffle(registers, mask, *pattern, *to, *exists, *from)
            }
            Collectively::Vote { question, to, from } => {
                let (yes, to) = (compare::read(registers, from.0, from.1) & mask, *to);
                match question {
                    Question::Ballot => u32::write(registers, to, &[yes; WARP], mask),
                    Question::All => compare::write(registers, to, all(yes == mask), mask),
                    Question::Any => compare::write(registers, to, all(yes != 0), mask),
                    Question::Uniform => compare::write(registers, to, all(yes == mask || yes == 0), mask),
                }
                Ok(())
            }
            Collectively::ActiveMask { to } => {
                u32::write(registers, *to, &[mask; WARP], mask);
                Ok(())
            }
            Collectively::Barrier => Ok(()),
        }
    }
}

fn all(yes: bool) -> u32 {
    if yes { u32::MAX } else { 0 }
}

/// The rules of the reference of PTX. The bounds hold a mask that cuts the warp into segments, and a limit within a segment.
fn shuffle(
    registers: &mut Registers,
    mask: u32,
    pattern: Pattern,
    to: Register,
    exists: Option<Register>,
    from: [Register; 3],
) -> Result<(), Trouble> {
    let [values, by, bounds] = from.map(|register| u32::read(registers, register));
    let mut result = values;
    let mut found = 0u32;
    for lane in lanes(mask) {
        let this = lane as u32;
        let (by, segment, limit) = (by[lane] & 31, bounds[lane] >> 8 & 31, bounds[lane] & 31);
        let first = this & segment;
        let last = first | limit & !segment;
        let (other, there) = match pattern {
            Pattern::Up => (this.wrapping_sub(by), this as i64 - i64::from(by) >= i64::from(last)),
            Pattern::Down => (this + by, this + by <= last),
            Pattern::Butterfly => (this ^ by, this ^ by <= last),
            Pattern::Index => (first | by & !segment, first | by & !segment <= last),
        };
        let other = if there { other } else { this };
        found |= u32::from(there) << lane;
        if mask >> other & 1 == 0 {
            let how = format!("the shuffle reads thread {other} of the warp, which takes no part");
            return Err(Trouble { lane, mistake: Mistake::DivergentWarp(how) });
        }
        result[lane] = values[other as usize];
    }
    u32::write(registers, to, &result, mask);
    if let Some(exists) = exists {
        compare::write(registers, exists, found, mask);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::faults::Mistake;
    use crate::instructions::testing::{Kernel, refused, run};

    /// What each thread gets when it offers its own number.
    fn shuffle(form: &str, by: u32, bounds: u32) -> [u32; 32] {
        run(&format!("mov.u32 %r1, %laneid; shfl.sync.{form}.b32 %r0|%p0, %r1, {by}, {bounds}, -1;"), &[], &[]).2[0]
    }

    #[test]
    fn shuffles_read_the_thread_that_the_reference_names() {
        assert_eq!(shuffle("bfly", 16, 31), std::array::from_fn(|lane| lane as u32 ^ 16));
        assert_eq!(shuffle("bfly", 1, 31), std::array::from_fn(|lane| lane as u32 ^ 1));
        assert_eq!(
            shuffle("down", 3, 31),
            std::array::from_fn(|lane| if lane + 3 < 32 { lane as u32 + 3 } else { lane as u32 })
        );
        assert_eq!(
            shuffle("up", 3, 0),
            std::array::from_fn(|lane| if lane >= 3 { lane as u32 - 3 } else { lane as u32 })
        );
        assert_eq!(shuffle("idx", 5, 31), [5; 32]);
    }

    #[test]
    fn a_width_cuts_the_warp_into_segments() {
        // The compiler gives `((32 - width) << 8) | 31` as bounds, and for `up` the same without the 31: width 8 is 0x181F.
        assert_eq!(shuffle("idx", 5, 0x181f), std::array::from_fn(|lane| lane as u32 / 8 * 8 + 5));
        assert_eq!(
            shuffle("down", 3, 0x181f),
            std::array::from_fn(|lane| if lane % 8 + 3 < 8 { lane as u32 + 3 } else { lane as u32 })
        );
        assert_eq!(
            shuffle("up", 3, 0x1800),
            std::array::from_fn(|lane| if lane % 8 >= 3 { lane as u32 - 3 } else { lane as u32 })
        );
        assert_eq!(shuffle("bfly", 4, 0x181f), std::array::from_fn(|lane| lane as u32 ^ 4));
    }

    #[test]
    fn a_shuffle_tells_whether_the_other_exists() {
        let code = "shfl.sync.down.b32 %r1|%p1, %laneid, 30, 31, -1; selp.b32 %r0, 1, 0, %p1;";
        assert_eq!(run(code, &[], &[]).2[0][..4], [1, 1, 0, 0]);
    }

    #[test]
    fn votes_count_the_threads_that_come() {
        let vote = |form: &str, limit: u32| {
            run(
                &format!(
                    "setp.lt.u32 %p1, %laneid, {limit}; vote.sync.{form}.pred %p0, %p1, -1; selp.b32 %r0, 1, 0, %p0;"
                ),
                &[],
                &[],
            )
            .0[0]
        };
        assert_eq!([vote("all", 32), vote("all", 31), vote("any", 1), vote("any", 0)], [1, 0, 1, 0]);
        assert_eq!([vote("uni", 32), vote("uni", 0), vote("uni", 3)], [1, 1, 0]);
        assert_eq!(run("setp.lt.u32 %p1, %laneid, 5; vote.sync.ballot.b32 %r0, !%p1, -1;", &[], &[]).0[0], !31);
        let code =
            "setp.lt.u32 %p1, %laneid, 5; @!%p1 bra $end; activemask.b32 %r0; vote.sync.ballot.b32 %r1, %p1, 31; $end:";
        assert_eq!(run(code, &[], &[]).0[..2], [31, 31]);
    }

    #[test]
    fn threads_that_do_not_come_are_reported() {
        let half = "setp.lt.u32 %p1, %laneid, 16; @!%p1 bra $end;";
        for code in ["shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1;", "vote.sync.any.pred %p0, %p1, -1;", "bar.warp.sync -1;"]
        {
            // The others have gone on to a place where they wait for the block.
            let result =
                Kernel::new(&format!("{half} {code} ret; $end: shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1;")).run();
            assert!(matches!(result, Err(Mistake::DivergentWarp(_))), "{code}");
        }
        // Threads that have ended are not waited for.
        let ended = Kernel::new(&format!("{half} shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1; $end: ret;"));
        assert!(ended.run().is_ok());
        let outside = Kernel::new(&format!("{half} shfl.sync.bfly.b32 %r0, %r1, 16, 31, 0xffff; $end:")).run();
        assert!(matches!(outside, Err(Mistake::DivergentWarp(_))));
        let stranger = Kernel::new("shfl.sync.bfly.b32 %r0, %r1, 1, 31, 0xffff;").run();
        assert!(matches!(stranger, Err(Mistake::DivergentWarp(_))));
        assert!(Kernel::new(&format!("{half} shfl.sync.bfly.b32 %r0, %r1, 8, 31, 0xffff; $end:")).run().is_ok());
    }

    #[test]
    fn forms_without_a_mask_are_refused() {
        refused("shfl.bfly.b32 %r0, %r1, 1, 31;");
        refused("vote.any.pred %p0, %p1;");
        refused("shfl.sync.bfly.b64 %rd0, %rd1, 1, 31, -1;");
    }
}
