//! A block: its warps run one after another, each until it waits; a barrier opens when all wait at it.

use super::grid::Launch;
use super::registers::{WARP, lanes};
use super::warp::{Stop, Warp, coordinates};
use crate::faults::{Fault, Mistake};
use crate::memory::{Caller, Shared};

/// A block of a launch. It can run again as another one.
#[derive(Debug)]
pub struct Block<'a> {
    launch: &'a Launch<'a>,
    /// Its warps.
    pub warps: Vec<Warp>,
    shared: Shared,
}

impl<'a> Block<'a> {
    /// Room for a block.
    pub fn new(launch: &'a Launch<'a>) -> Block<'a> {
        let warps = (0..launch.threads().div_ceil(WARP as u32)).map(|number| Warp::new(launch, number)).collect();
        Block { launch, warps, shared: Shared::new(launch.program.shared_bytes_with(launch.shared_bytes)) }
    }

    /// Runs the block with this number. Gives the instructions that its threads ran.
    pub fn run(&mut self, number: u64) -> Result<u64, Box<Fault>> {
        let [x, y, _] = self.launch.grid.map(u64::from);
        let block = [number % x, number / x % y, number / x / y].map(|place| place as u32);
        self.shared.clear();
        let caller = self.launch.races.map(|launch| Caller { launch, block: number as u32 });
        self.warps.iter_mut().for_each(|warp| warp.start(self.launch, block, caller));
        let count = self.warps.len();
        let order: Vec<usize> = if self.launch.reversed { (0..count).rev().collect() } else { (0..count).collect() };
        loop {
            let mut barrier: Option<(u32, u32)> = None;
            let mut ended = None;
            for place in &order {
                let warp = &mut self.warps[*place];
                let stop = warp.run(self.launch, &mut self.shared);
                let first = warp.thread(0);
                match stop {
                    Err((trouble, at)) => {
                        return Err(self.fault(trouble.mistake, at, first + trouble.lane as u32, block));
                    }
                    Ok(Stop::Ended) => ended = ended.or(Some(first)),
                    Ok(Stop::Barrier(at)) => {
                        if let Some(lane) = lanes(warp.ended()).next() {
                            ended = ended.or(Some(first + lane as u32));
                        }
                        match barrier {
                            None => barrier = Some((at, first)),
                            Some((other, thread)) if other != at => {
                                let line = self.launch.program.locations[other as usize].line;
                                let how =
                                    format!("thread {thread} of the block waits at another one, on PTX line {line}");
                                return Err(self.fault(Mistake::DivergentBarrier(how), at, first, block));
                            }
                            Some(_) => {}
                        }
                    }
                }
            }
            match (barrier, ended) {
                (None, _) => return Ok(self.warps.iter().map(Warp::instructions).sum()),
                (Some((at, thread)), Some(gone)) => {
                    let how = format!("thread {gone} of the block has ended");
                    return Err(self.fault(Mistake::DivergentBarrier(how), at, thread, block));
                }
                (Some(_), None) => self.shared.barrier(),
            }
        }
    }

    fn fault(&self, mistake: Mistake, at: u32, thread: u32, block: [u32; 3]) -> Box<Fault> {
        let program = self.launch.program;
        Box::new(Fault {
            mistake,
            kernel: program.name.clone(),
            line: program.locations[at as usize].line,
            source: program.source(at as usize),
            block,
            thread: coordinates(self.launch, thread),
        })
    }
}
