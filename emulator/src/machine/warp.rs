//! A warp: 32 threads with a place in the program each. Those at the lowest place run, until they get to where others are; so
//! threads that part at a branch come together where its ways meet.

use super::grid::Launch;
use super::registers::{Lanes, Registers, Value, WARP, lanes};
use crate::faults::Mistake;
use crate::instructions::{Collective, Collectively, Memories, Operation, Trouble, read_predicate};
use crate::memory::{Caller, Local, Shared};
use crate::program::{Program, Special};

/// A warp of a block.
#[derive(Debug)]
pub struct Warp {
    /// The registers of its threads.
    pub registers: Registers,
    local: Local,
    /// The next instruction of each thread.
    places: Lanes<u32>,
    /// The threads that there are.
    present: u32,
    /// The threads that have not ended.
    alive: u32,
    /// The threads that wait for others of the warp.
    parked: u32,
    number: u32,
    /// Its block, where races between blocks are looked for.
    caller: Option<Caller>,
    /// How many barriers of its own it has passed.
    phase: u16,
    /// Instructions that it ran, for one thread or for many.
    issued: u64,
    /// Instructions that its threads ran, a predicate before them true or not.
    instructions: u64,
}

/// Why a warp stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// All its threads ended.
    Ended,
    /// All its threads wait at the barrier with this place in the program.
    Barrier(u32),
}

impl Warp {
    /// The warp with this number in a block.
    pub fn new(launch: &Launch, number: u32) -> Warp {
        let layout = &launch.program.layout;
        let mut registers = Registers {
            narrow: vec![[0; WARP]; layout.narrow],
            wide: vec![[0; WARP]; layout.wide],
            predicates: vec![0; layout.predicates],
        };
        layout.narrow_constants.iter().for_each(|(row, bits)| registers.narrow[usize::from(*row)] = [*bits; WARP]);
        layout.wide_constants.iter().for_each(|(row, bits)| registers.wide[usize::from(*row)] = [*bits; WARP]);
        let left = launch.threads() - number * WARP as u32;
        let present = if left >= WARP as u32 { u32::MAX } else { (1 << left) - 1 };
        let local = Local::new(layout.local_bytes);
        Warp {
            registers,
            local,
            places: [0; WARP],
            present,
            alive: 0,
            parked: 0,
            number,
            caller: None,
            phase: 0,
            issued: 0,
            instructions: 0,
        }
    }

    /// To the start of the program, in a block.
    pub fn start(&mut self, launch: &Launch, block: [u32; 3], caller: Option<Caller>) {
        self.caller = caller;
        self.places = [0; WARP];
        self.alive = self.present;
        self.parked = 0;
        (self.issued, self.instructions) = (0, 0);
        self.local.clear();
        for (row, special) in &launch.program.layout.specials {
            self.registers.narrow[usize::from(*row)] = special_values(launch, *special, block, self.number);
        }
    }

    /// The threads that have ended.
    pub fn ended(&self) -> u32 {
        self.present & !self.alive
    }

    /// The number in the block of one of its threads.
    pub fn thread(&self, lane: usize) -> u32 {
        self.number * WARP as u32 + lane as u32
    }

    /// Instructions that its threads ran since the start.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Runs until all threads ended or wait for the block. A mistake comes with the place of its instruction.
    pub fn run(&mut self, launch: &Launch, shared: &mut Shared) -> Result<Stop, (Trouble, u32)> {
        let program = launch.program;
        let mut memories = Memories {
            global: launch.global,
            shared,
            local: &mut self.local,
            parameters: &launch.parameters,
            first_thread: (self.number * WARP as u32) as u16,
            warp_phase: self.phase,
            reversed: launch.reversed,
            caller: self.caller,
        };
        let registers = &mut self.registers;
        loop {
            let ready = self.alive & !self.parked;
            let Some((mut place, mut group, next)) = lowest(&self.places, self.alive, ready) else {
                if self.alive == 0 {
                    return Ok(Stop::Ended);
                }
                let lane = self.parked.trailing_zeros() as usize;
                return Err((Trouble { lane, mistake: apart(self.parked) }, self.places[lane]));
            };
            self.parked &= !group;
            let (threads, mut issued) = (u64::from(group.count_ones()), 0);
            while place < next {
                let at = place;
                let fail = move |trouble: Trouble| (trouble, at);
                let instruction = &program.instructions[place as usize];
                let mask = match instruction.guard {
                    None => group,
                    Some((predicate, negated)) => group & read_predicate(registers, predicate, negated),
                };
                issued += 1;
                place += 1;
                if mask == 0 {
                    continue;
                }
                match &instruction.operation {
                    Operation::Compute(compute) => compute.execute(registers, mask),
                    Operation::Load(load) => load.execute(registers, mask, &mut memories).map_err(fail)?,
                    Operation::Store(store) => store.execute(registers, mask, &mut memories).map_err(fail)?,
                    Operation::Atomic(atomic) => atomic.execute(registers, mask, &mut memories).map_err(fail)?,
                    Operation::Branch(_) | Operation::Exit if self.issued + issued > launch.limit => {
                        let lane = mask.trailing_zeros() as usize;
                        return Err((Trouble { lane, mistake: Mistake::TooLong(launch.limit) }, at));
                    }
                    Operation::Branch(target) => {
                        if mask != group {
                            lanes(mask).for_each(|lane| self.places[lane] = *target);
                            group &= !mask;
                            break;
                        }
                        place = *target;
                    }
                    Operation::Exit => {
                        self.alive &= !mask;
                        group &= !mask;
                        // Nobody waits for threads that have ended: those that wait look again.
                        self.parked = 0;
                        // Those for whom the predicate is false go on, as a smaller group.
                        break;
                    }
                    Operation::Barrier => {
                        if mask != self.alive {
                            let lane = mask.trailing_zeros() as usize;
                            return Err((Trouble { lane, mistake: split(mask, self.alive & !mask) }, at));
                        }
                        lanes(mask).for_each(|lane| self.places[lane] = place);
                        self.phase = memories.warp_phase;
                        self.issued += issued;
                        self.instructions += issued * threads;
                        return Ok(Stop::Barrier(at));
                    }
                    Operation::Collective(collective) => {
                        match missing(collective, registers, mask, self.alive).map_err(fail)? {
                            0 => {
                                if matches!(collective.kind, Collectively::Barrier) {
                                    memories.warp_phase = memories.warp_phase.wrapping_add(1);
                                }
                                collective.execute(registers, mask).map_err(fail)?;
                            }
                            _ => {
                                // The others of the group, for whom the predicate is false, go on.
                                lanes(mask).for_each(|lane| self.places[lane] = at);
                                self.parked |= mask;
                                group &= !mask;
                                break;
                            }
                        }
                    }
                    Operation::Trap => {
                        let lane = mask.trailing_zeros() as usize;
                        return Err((Trouble { lane, mistake: Mistake::Trap }, at));
                    }
                    Operation::Nothing => {}
                }
            }
            lanes(group).for_each(|lane| self.places[lane] = place);
            self.phase = memories.warp_phase;
            self.issued += issued;
            self.instructions += issued * threads;
        }
    }
}

/// The lowest place of those that are ready, all threads there, and the next place where others are ready.
#[inline]
fn lowest(places: &Lanes<u32>, alive: u32, ready: u32) -> Option<(u32, u32, u32)> {
    let place = lanes(ready).map(|lane| places[lane]).min()?;
    let group = lanes(alive).filter(|lane| places[*lane] == place).fold(0, |group, lane| group | 1 << lane);
    let next = lanes(ready & !group).map(|lane| places[lane]).min().unwrap_or(u32::MAX);
    Some((place, group, next))
}

/// The threads that a collective instruction names and that are not there yet.
fn missing(collective: &Collective, registers: &Registers, mask: u32, alive: u32) -> Result<u32, Trouble> {
    let Some(members) = collective.members else { return Ok(0) };
    let members = u32::read(registers, members);
    let mut missing = 0;
    for lane in lanes(mask) {
        if members[lane] >> lane & 1 == 0 {
            let how = format!("the thread is not in its own mask {:#010x}", members[lane]);
            return Err(Trouble { lane, mistake: Mistake::DivergentWarp(how) });
        }
        missing |= members[lane] & alive & !mask;
    }
    Ok(missing)
}

fn apart(parked: u32) -> Mistake {
    Mistake::DivergentWarp(format!("threads {parked:#010x} of the warp wait for threads that do not come"))
}

fn split(here: u32, elsewhere: u32) -> Mistake {
    Mistake::DivergentBarrier(format!(
        "threads {here:#010x} of the warp are here, and threads {elsewhere:#010x} are elsewhere"
    ))
}

fn special_values(launch: &Launch, special: Special, block: [u32; 3], warp: u32) -> Lanes<u32> {
    let [x, y, _] = launch.block;
    std::array::from_fn(|lane| {
        let thread = warp * WARP as u32 + lane as u32;
        let bit = 1u32 << lane;
        match special {
            Special::Thread(axis) => [thread % x, thread / x % y, thread / x / y][axis],
            Special::BlockSize(axis) => launch.block[axis],
            Special::Block(axis) => block[axis],
            Special::GridSize(axis) => launch.grid[axis],
            Special::Lane => lane as u32,
            Special::Warp => warp,
            Special::Warps => launch.threads().div_ceil(WARP as u32),
            Special::WarpSize => WARP as u32,
            Special::LaneMask { before, this, after } => {
                let part = |wanted: bool, mask: u32| if wanted { mask } else { 0 };
                part(before, bit - 1) | part(this, bit) | part(after, !(bit - 1) & !bit)
            }
            Special::DynamicShared => launch.shared_bytes,
        }
    })
}

/// Where a thread of the block is along each axis.
pub fn coordinates(launch: &Launch, thread: u32) -> [u32; 3] {
    let [x, y, _] = launch.block;
    [thread % x, thread / x % y, thread / x / y]
}

impl Program {
    /// The bytes of shared memory that a block has.
    pub fn shared_bytes_with(&self, dynamic: u32) -> usize {
        if dynamic == 0 { self.shared_bytes } else { self.dynamic_shared + dynamic as usize }
    }
}

#[cfg(test)]
mod tests {
    use crate::faults::Mistake;
    use crate::instructions::testing::Kernel;

    const HALF: &str = "setp.lt.u32 %p1, %laneid, 16;";

    #[test]
    fn ways_that_part_meet_at_the_first_place_that_they_share() {
        // The second half jumps over the first, and waits for it before the barrier.
        let code = format!("{HALF} @%p1 bra $first; bra $end; $first: add.u32 %r0, %r0, 1; $end: bar.sync 0;");
        let rows = Kernel::new(&code).registers(&[5], &[]).run().unwrap().2;
        assert_eq!((rows[0][0], rows[0][15], rows[0][16], rows[0][31]), (6, 6, 5, 5));
        // A loop that each thread leaves when it wants to.
        let code =
            "mov.u32 %r0, 0; $loop: add.u32 %r0, %r0, 1; setp.le.u32 %p1, %r0, %laneid; @%p1 bra $loop; bar.sync 0;";
        let rows = Kernel::new(code).run().unwrap().2;
        assert_eq!(rows[0], std::array::from_fn(|lane| lane as u32 + 1));
    }

    #[test]
    fn a_predicate_keeps_threads_from_an_instruction() {
        let rows = Kernel::new(&format!("{HALF} @%p1 mov.u32 %r0, 7; @!%p1 mov.u32 %r1, 8;")).run().unwrap().2;
        assert_eq!((rows[0][15], rows[0][16], rows[1][15], rows[1][16]), (7, 0, 0, 8));
        let rows = Kernel::new(&format!("{HALF} @%p1 ret; mov.u32 %r0, 7;")).run().unwrap().2;
        assert_eq!((rows[0][15], rows[0][16]), (0, 7));
    }

    #[test]
    fn a_barrier_needs_all_threads_of_the_warp() {
        let divergent =
            |code: &str| matches!(Kernel::new(&format!("{HALF} {code}")).run(), Err(Mistake::DivergentBarrier(_)));
        assert!(divergent("@%p1 bar.sync 0;"));
        assert!(divergent("@%p1 bra $far; bar.sync 0; ret; $far: bar.sync 0;"));
        assert!(divergent("@%p1 ret; bar.sync 0;"));
        assert!(!divergent("bar.sync 0; @%p1 ret;"));
    }

    #[test]
    fn a_loop_without_end_is_ended() {
        assert_eq!(Kernel::new("$loop: bra $loop;").run(), Err(Mistake::TooLong(1 << 20)));
        assert_eq!(Kernel::new("trap;").run(), Err(Mistake::Trap));
    }
}
