//! Time, cut into sections.
//!
//! Of all steps only those matter at which the live buffers are as many as they get: where a birth is followed by a
//! death. Every other step's live buffers are among those of such a *section* (in terms of graphs: the sections are the
//! maximal cliques of the interval graph). Two buffers are live at the same time just if they share a section, and
//! thus the sections may stand in for time, of which there is then never more than there are buffers.

use super::{PlaceError, Problem};

/// A checked problem in terms of sections; buffers of no bytes are left out. Every field is a flat list, for they are
/// walked by code which must be quick without optimization as well.
pub(super) struct Sections {
    /// The index in the problem of each buffer.
    pub id: Vec<usize>,
    /// The first section of each buffer.
    pub lower: Vec<usize>,
    /// One past the last section of each buffer.
    pub upper: Vec<usize>,
    /// The size of each buffer, rounded up to its alignment.
    pub size: Vec<u64>,
    /// The alignment of each buffer.
    pub alignment: Vec<u64>,
    /// The bytes live in each section.
    pub total: Vec<u64>,
}

impl Sections {
    /// Checks the problem and cuts its time.
    pub fn new(problem: &Problem) -> Result<Sections, PlaceError> {
        let mut sections = Sections {
            id: Vec::new(),
            lower: Vec::new(),
            upper: Vec::new(),
            size: Vec::new(),
            alignment: Vec::new(),
            total: Vec::new(),
        };
        // Each placement wastes less than one alignment, so that with this sum no offset overflows later.
        let mut sum = 0u64;
        for (id, buffer) in problem.buffers.iter().enumerate() {
            if buffer.lifespan.lower >= buffer.lifespan.upper {
                return Err(PlaceError::EmptyLifespan { buffer: id, lifespan: buffer.lifespan });
            }
            if buffer.alignment == 0 {
                return Err(PlaceError::ZeroAlignment { buffer: id });
            }
            let too_large = PlaceError::TooLarge { buffer: id, size: buffer.size, alignment: buffer.alignment };
            let Some(size) = buffer.padded_size() else {
                return Err(too_large);
            };
            if size == 0 {
                continue;
            }
            match sum.checked_add(size).and_then(|sum| sum.checked_add(buffer.alignment)) {
                Some(next) => sum = next,
                None => return Err(too_large),
            }
            sections.id.push(id);
            sections.size.push(size);
            sections.alignment.push(buffer.alignment);
        }
        sections.cut(problem);
        Ok(sections)
    }

    /// Walks births and deaths in order of time. The first death after a birth ends a section.
    fn cut(&mut self, problem: &Problem) {
        let count = self.id.len();
        let mut births = Vec::with_capacity(count);
        let mut deaths = Vec::with_capacity(count);
        for (buffer, &id) in self.id.iter().enumerate() {
            let lifespan = problem.buffers[id].lifespan;
            births.push((lifespan.lower, buffer));
            deaths.push((lifespan.upper, buffer));
        }
        births.sort_by_key(|birth| birth.0);
        deaths.sort_by_key(|death| death.0);
        self.lower = vec![0; count];
        self.upper = vec![0; count];
        let (mut birth, mut death, mut live, mut born) = (0, 0, 0u64, false);
        while death < count {
            // Of a death and a birth at the same step the death comes first, lifespans being half-open.
            if birth < count && births[birth].0 < deaths[death].0 {
                let buffer = births[birth].1;
                self.lower[buffer] = self.total.len();
                live += self.size[buffer];
                born = true;
                birth += 1;
            } else {
                if born {
                    self.total.push(live);
                    born = false;
                }
                let buffer = deaths[death].1;
                self.upper[buffer] = self.total.len();
                live -= self.size[buffer];
                death += 1;
            }
        }
    }

    /// How many buffers there are.
    pub fn len(&self) -> usize {
        self.id.len()
    }

    /// The most bytes live at any one time.
    pub fn lower_bound(&self) -> u64 {
        self.total.iter().copied().max().unwrap_or(0)
    }

    /// How many sections a buffer lives through.
    pub fn length(&self, buffer: usize) -> usize {
        self.upper[buffer] - self.lower[buffer]
    }

    /// The sections a buffer lives through, times its size.
    pub fn area(&self, buffer: usize) -> u128 {
        self.length(buffer) as u128 * u128::from(self.size[buffer])
    }

    /// The most bytes live in any section of the buffer.
    pub fn peak(&self, buffer: usize) -> u64 {
        self.highest(buffer, &self.total)
    }

    /// The highest of some figures of the sections, among those of the buffer.
    pub fn highest(&self, buffer: usize, figures: &[u64]) -> u64 {
        let figures = &figures[self.lower[buffer]..self.upper[buffer]];
        let (mut highest, mut index) = (0, 0);
        while index < figures.len() {
            if figures[index] > highest {
                highest = figures[index];
            }
            index += 1;
        }
        highest
    }
}
