//! A schedule at a batch, placed: an offset in the arena for every buffer.

use crate::arena::{self, Effort, Lifespan, PlaceError};
use crate::schedule::{BufferId, Schedule};

/// The alignment of every buffer in bytes: what CUDA gives its own allocations, and a multiple of every cache line and
/// vector register.
pub const ALIGNMENT: u64 = 256;

/// Where the buffers of a schedule lie in the arena.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The samples of a batch.
    pub batch: u64,
    /// The bytes of each buffer.
    pub sizes: Vec<u64>,
    /// The offset of each buffer.
    pub offsets: Vec<u64>,
    /// Where the transient buffers begin; the persistent ones lie below.
    pub persistent_bytes: u64,
    /// The arena's length.
    pub length: u64,
    /// The most bytes live at one step, each buffer rounded up to [`ALIGNMENT`]. No placement is shorter.
    pub lower_bound: u64,
    /// The first step at which that many bytes are live.
    pub peak_step: usize,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The sizes pass 64 bits.
    #[error("at batch {batch}, `{name}` needs more than 2^64 bytes")]
    TooLarge {
        /// The network.
        name: String,
        /// The batch.
        batch: u64,
    },
    /// A batch of zero, or beyond [`MAX_BATCH`](crate::graph::MAX_BATCH).
    #[error("a batch must be from 1 to {max}, not {batch}", max = crate::graph::MAX_BATCH)]
    Batch {
        /// The batch.
        batch: u64,
    },
    /// A network whose parts do not fit together.
    #[error("the network does not hold together: {0}")]
    Inconsistent(String),
    /// An embedded plan that is damaged or of another version.
    #[error("the plan can't be read back: {0}")]
    Unreadable(String),
}

/// Bytes rounded up to [`ALIGNMENT`].
pub fn align_up(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(ALIGNMENT)
}

impl Placement {
    /// Places the schedule's buffers at a batch. What is [`enough`](Effort::enough) is a length of the whole arena. `None`
    /// where the sizes pass 64 bits.
    pub fn new(schedule: &Schedule, batch: u64, effort: &Effort) -> Option<Placement> {
        let (live, sizes) = Live::at(schedule, batch)?;
        let mut placement = Placement::persistent(schedule, batch, sizes, &live)?;
        let transient = schedule.persistent..schedule.buffers.len();
        let buffers = transient.map(|i| arena::Buffer {
            lifespan: Lifespan::new(schedule.buffers[i].lower, schedule.buffers[i].upper),
            size: placement.sizes[i],
            alignment: ALIGNMENT,
        });
        let problem = arena::Problem { buffers: buffers.collect(), capacity: None };
        let effort = Effort { enough: effort.enough.saturating_sub(placement.persistent_bytes), ..*effort };
        let solution = match arena::place(&problem, &effort) {
            Ok(solution) => solution,
            Err(PlaceError::TooLarge { .. }) => return None,
            Err(other) => unreachable!("the schedule makes well-formed problems: {other}"),
        };
        placement.length = placement.persistent_bytes.checked_add(align_up(solution.height)?)?;
        for offset in solution.offsets {
            placement.offsets.push(placement.persistent_bytes.checked_add(offset)?);
        }
        Some(placement)
    }

    /// Takes up a placement that was computed before: `transient` offsets, relative to the end of the persistent part.
    pub fn restore(schedule: &Schedule, batch: u64, transient: &[u64], length: u64) -> Option<Placement> {
        let (live, sizes) = Live::at(schedule, batch)?;
        let mut placement = Placement::persistent(schedule, batch, sizes, &live)?;
        placement.length = length;
        for offset in transient {
            placement.offsets.push(placement.persistent_bytes.checked_add(*offset)?);
        }
        (placement.offsets.len() == schedule.buffers.len()).then_some(placement)
    }

    /// The persistent buffers one after the other, and nothing else yet.
    fn persistent(schedule: &Schedule, batch: u64, sizes: Vec<u64>, live: &Live) -> Option<Placement> {
        let mut offsets = Vec::with_capacity(schedule.buffers.len());
        let mut end: u64 = 0;
        for size in &sizes[..schedule.persistent] {
            offsets.push(end);
            end = end.checked_add(align_up(*size)?)?;
        }
        Some(Placement {
            batch,
            sizes,
            offsets,
            persistent_bytes: end,
            length: end,
            lower_bound: live.most,
            peak_step: live.step,
        })
    }

    /// Whether no placement is shorter.
    pub fn is_exact(&self) -> bool {
        self.length == self.lower_bound
    }

    /// The bytes of a buffer.
    pub fn size(&self, buffer: BufferId) -> u64 {
        self.sizes[buffer.index()]
    }

    /// The offset of a buffer.
    pub fn offset(&self, buffer: BufferId) -> u64 {
        self.offsets[buffer.index()]
    }

    /// The bytes above the persistent part.
    pub fn transient_bytes(&self) -> u64 {
        self.length - self.persistent_bytes
    }
}

/// The bytes that are live at each step of a schedule.
pub struct Live {
    /// At each step, each buffer rounded up to [`ALIGNMENT`].
    pub steps: Vec<u64>,
    /// The most of them.
    pub most: u64,
    /// The first step with so many.
    pub step: usize,
    /// Those that are live at every step, for they persist.
    pub persistent: u64,
}

impl Live {
    /// The bytes live at a batch, and the size of each buffer. `None` where they pass 64 bits.
    pub fn at(schedule: &Schedule, batch: u64) -> Option<(Live, Vec<u64>)> {
        let steps = schedule.steps.len().max(1);
        let mut sizes = Vec::with_capacity(schedule.buffers.len());
        let mut begin = vec![0u64; steps + 1];
        let mut end = vec![0u64; steps + 1];
        let (mut total, mut persistent) = (0u64, 0);
        let (begins, ends) = (&mut begin[..], &mut end[..]);
        for buffer in &schedule.buffers {
            let bytes = buffer.size.bytes(batch)?;
            let aligned = align_up(bytes)?;
            if sizes.len() == schedule.persistent {
                persistent = total;
            }
            // With all sizes within 64 bits, so is every sum below.
            total = total.checked_add(aligned)?;
            begins[buffer.lower as usize] += aligned;
            ends[buffer.upper as usize] += aligned;
            sizes.push(bytes);
        }
        let (mut now, mut most, mut step, mut time) = (0, 0, 0, 0);
        while time < begins.len() {
            now = now + begins[time] - ends[time];
            begins[time] = now;
            if now > most {
                (most, step) = (now, time);
            }
            time += 1;
        }
        begin.truncate(steps);
        Some((Live { steps: begin, most, step, persistent }, sizes))
    }
}
