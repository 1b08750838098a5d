//! What a kernel sees of a step: types, numbers, and its operands as slices.
//!
//! A kernel asks for each operand once, by its role: [`read`](Step::read) or [`write`](Step::write). Where two roles may
//! lie in one buffer (a layer that works in place), it asks for both together: [`pair`](Step::pair). The step keeps
//! account of what it handed out and refuses a slice that would overlap another, so that kernels are safe code.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use plimsoll_plan::schedule::{Access, Operand, Role, StepKind};
use plimsoll_plan::shape::ValueType;
use plimsoll_plan::strategy::concat_in_place::MOST_PARTS;

use super::bounds::Bounds;
use super::memory::Memory;
use super::parallel;
use super::vector::wide;
use crate::device::Arguments;
use crate::element::Element;
use crate::program::{Instruction, Program};

/// Which slices of each buffer the present step has handed out.
pub struct Claims(Vec<Cell<Claim>>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    Free,
    Read,
    Written,
}

impl Claims {
    /// No claims on so many buffers.
    pub fn new(buffers: usize) -> Claims {
        Claims((0..buffers).map(|_| Cell::new(Claim::Free)).collect())
    }
}

/// A step of a program, as its kernel sees it.
pub struct Step<'a> {
    program: &'a Program,
    instruction: &'a Instruction,
    arguments: &'a Arguments,
    claims: &'a Claims,
    bounds: Bounds,
    base: NonNull<u8>,
    length: usize,
    /// The step has the arena to itself.
    arena: PhantomData<&'a mut [u8]>,
}

impl<'a> Step<'a> {
    /// The step at `index`. It has the arena to itself while it lives.
    ///
    /// # Safety
    /// The operands of the step lie in the arena, aligned, and those in different buffers do not overlap.
    pub unsafe fn new(
        program: &'a Program,
        index: usize,
        arena: &'a mut Memory,
        claims: &'a mut Claims,
        arguments: &'a Arguments,
    ) -> Step<'a> {
        let instruction = &program.instructions[index];
        for operand in &instruction.operands {
            claims.0[operand.buffer.index()].set(Claim::Free);
        }
        let length = arena.bytes().len();
        let base = arena.base();
        Step { program, instruction, arguments, claims, bounds: Bounds::NONE, base, length, arena: PhantomData }
    }

    /// The same with its outputs clamped, for layers that can.
    pub fn within(self, bounds: Bounds) -> Step<'a> {
        Step { bounds, ..self }
    }

    /// What the step does.
    pub fn kind(&self) -> StepKind {
        self.instruction.kind
    }

    /// The whole program.
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// What changes from run to run.
    pub fn arguments(&self) -> &'a Arguments {
        self.arguments
    }

    /// Whether this is a step of training.
    pub fn is_training(&self) -> bool {
        self.program.training
    }

    /// What the outputs are to be clamped to.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Samples in this batch.
    pub fn batch(&self) -> usize {
        self.arguments.batch
    }

    /// The types of the inputs.
    pub fn inputs(&self) -> &'a [ValueType] {
        &self.instruction.inputs
    }

    /// The types of the operands that are inputs. There are more than [`inputs`](Step::inputs) where one of these is never
    /// made.
    pub fn parts(&self) -> &'a [ValueType] {
        &self.instruction.parts
    }

    /// The type of the output.
    pub fn output(&self) -> &'a ValueType {
        &self.instruction.output
    }

    /// Whether the step has an operand in that role: a gradient that is not wanted is not there.
    pub fn has(&self, role: Role) -> bool {
        self.instruction.operand(role).is_some()
    }

    /// Whether the step adds to what is there ([`Access::Update`]) rather than overwriting it.
    pub fn adds(&self, role: Role) -> bool {
        self.operand(role).access == Access::Update
    }

    /// The bytes of an operand.
    pub fn bytes(&self, role: Role) -> usize {
        self.program.region(self.operand(role).buffer).bytes(self.batch())
    }

    /// Whether two roles lie in one buffer.
    pub fn in_place(&self, from: Role, to: Role) -> bool {
        self.operand(from).buffer == self.operand(to).buffer
    }

    /// An operand that is read.
    pub fn read<T: Element>(&self, role: Role) -> &'a [T] {
        let (pointer, length) = self.claim(role, Claim::Read);
        // SAFETY: `claim` gives memory of the arena, aligned and initialized, that no written slice of this step overlaps.
        unsafe { std::slice::from_raw_parts(pointer.as_ptr(), length) }
    }

    /// All that is read of the only input.
    pub fn read_image(&self) -> Parts<'a> {
        let mut parts = Parts { tensors: [&[]; MOST_PARTS], count: self.parts().len() };
        for (tensor, i) in parts.tensors[..parts.count].iter_mut().zip(0..) {
            *tensor = self.read(Role::Input(i));
        }
        parts
    }

    /// An operand that is read, if the step has it.
    pub fn read_if<T: Element>(&self, role: Role) -> Option<&'a [T]> {
        self.has(role).then(|| self.read(role))
    }

    /// An operand that is written or changed.
    pub fn write<T: Element>(&self, role: Role) -> &'a mut [T] {
        let (pointer, length) = self.claim(role, Claim::Written);
        // SAFETY: as in `read`, and no other slice of this step overlaps it.
        unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), length) }
    }

    /// An operand that is written or changed, if the step has it.
    pub fn write_if<T: Element>(&self, role: Role) -> Option<&'a mut [T]> {
        self.has(role).then(|| self.write(role))
    }

    /// A gradient that the step computes, ready to be added to: zeroed first where it is to be overwritten.
    pub fn gradient(&self, role: Role) -> Option<&'a mut [f32]> {
        let gradient = self.write_if(role)?;
        if !self.adds(role) {
            parallel::chunks(gradient, parallel::CHUNK, |_, chunk| chunk.fill(0.0));
        }
        Some(gradient)
    }

    /// Two operands of one size, the second made of the first element by element, which may lie in one buffer.
    pub fn pair(&self, from: Role, to: Role) -> Pair<'a> {
        if self.in_place(from, to) {
            return Pair::InPlace(self.write(to));
        }
        Pair::Apart { from: self.read(from), to: self.write(to), adds: self.adds(to) }
    }

    /// The pair of the output's gradient and that of input `i`, if that is wanted.
    pub fn gradient_pair(&self, i: u32) -> Option<Pair<'a>> {
        let to = Role::InputGradient(i);
        self.has(to).then(|| self.pair(Role::OutputGradient, to))
    }

    /// The output's gradient, with that of input 0, if that is wanted.
    pub fn gradients(&self) -> Gradients<'a> {
        match self.gradient_pair(0) {
            Some(pair) => Gradients::Both(pair),
            None => Gradients::Output(self.read(Role::OutputGradient)),
        }
    }

    /// The two tensors that a normalization saves, mean and reciprocal deviation, each with the elements that belong to
    /// a chunk. They are not there in inference.
    pub fn saved_moments(&self, elements: usize) -> Option<[(&'a mut [f32], usize); 2]> {
        let saved = self.write_if(Role::Saved(0)).zip(self.write_if(Role::Saved(1)));
        saved.map(|(mean, rstd)| [(mean, elements), (rstd, elements)])
    }

    fn operand(&self, role: Role) -> Operand {
        match self.instruction.operand(role) {
            Some(operand) => operand,
            None => panic!("{:?} has no operand {role:?}", self.instruction.kind),
        }
    }

    /// Takes note that a slice of the operand is handed out.
    fn claim<T: Element>(&self, role: Role, claim: Claim) -> (NonNull<T>, usize) {
        let operand = self.operand(role);
        assert!(
            claim == Claim::Read || operand.access != Access::Read || self.is_shared_with_a_target(operand),
            "{role:?} is only to be read"
        );
        let before = self.claims.0[operand.buffer.index()].replace(claim);
        assert!(
            before == Claim::Free || (before, claim) == (Claim::Read, Claim::Read),
            "{role:?} lies in a buffer that is in use"
        );
        let region = self.program.region(operand.buffer);
        let (offset, bytes) = (region.offset as usize, region.bytes(self.batch()));
        assert!(offset + bytes <= self.length, "{role:?} ends outside of the arena");
        assert!(bytes.is_multiple_of(size_of::<T>()), "{role:?} is no whole number of elements");
        // SAFETY: within the arena, as was just checked.
        let pointer = unsafe { self.base.add(offset) }.cast::<T>();
        assert!(pointer.is_aligned(), "{role:?} is not aligned");
        // Different buffers do not overlap, as `new` was promised, and a buffer has one claim for all of its roles. The
        // slice may be kept for `'a`, until the step is over.
        (pointer, bytes / size_of::<T>())
    }

    /// Whether another operand writes the same buffer, so that the step works in place.
    fn is_shared_with_a_target(&self, operand: Operand) -> bool {
        self.instruction.operands.iter().any(|other| other.buffer == operand.buffer && other.access != Access::Read)
    }
}

/// The parts of an image, or all of it.
pub struct Parts<'a> {
    tensors: [&'a [f32]; MOST_PARTS],
    count: usize,
}

impl Parts<'_> {
    /// The image that they make up.
    pub fn image(&self) -> Image<'_> {
        match &self.tensors[..self.count] {
            [whole] => Image::Whole(whole),
            parts => Image::Parts(parts),
        }
    }
}

/// A tensor with channels.
#[derive(Clone, Copy)]
pub enum Image<'a> {
    /// As a whole.
    Whole(&'a [f32]),
    /// In tensors with some of the channels each, the first ones first.
    Parts(&'a [&'a [f32]]),
}

impl<'a> Image<'a> {
    /// The plane of that number, of `size` elements, where each sample has one for each of the `channels`.
    pub fn plane(self, number: usize, channels: usize, size: usize) -> &'a [f32] {
        let parts = match self {
            Image::Whole(whole) => return &whole[number * size..][..size],
            Image::Parts(parts) => parts,
        };
        let samples = parts.iter().map(|part| part.len()).sum::<usize>() / (channels * size);
        let (sample, mut channel) = (number / channels, number % channels);
        for part in parts {
            let own = part.len() / (samples * size);
            if channel < own {
                return &part[(sample * own + channel) * size..][..size];
            }
            channel -= own;
        }
        unreachable!("the parts have all channels")
    }
}

impl<'a> From<&'a [f32]> for Image<'a> {
    fn from(whole: &'a [f32]) -> Self {
        Image::Whole(whole)
    }
}

/// The gradients of a layer with parameters: the parameters' come first, while the output's is whole.
pub enum Gradients<'a> {
    /// The output's gradient alone.
    Output(&'a [f32]),
    /// The gradients of the output and of the input.
    Both(Pair<'a>),
}

impl<'a> Gradients<'a> {
    /// The output's.
    pub fn output(&self) -> &[f32] {
        match self {
            Gradients::Output(gradient) => gradient,
            Gradients::Both(pair) => pair.from(),
        }
    }

    /// The input's, to be made of the output's.
    pub fn input(self) -> Option<Pair<'a>> {
        match self {
            Gradients::Output(_) => None,
            Gradients::Both(pair) => Some(pair),
        }
    }
}

/// Two tensors of one size, the second made of the first, element by element: one buffer or two.
pub enum Pair<'a> {
    /// One buffer: what is written takes the place of what was read.
    InPlace(&'a mut [f32]),
    /// Two buffers.
    Apart {
        /// What is read.
        from: &'a [f32],
        /// What is written.
        to: &'a mut [f32],
        /// Whether results are added to what is there rather than overwriting it.
        adds: bool,
    },
}

impl<'a> Pair<'a> {
    /// Elements of either.
    pub fn len(&self) -> usize {
        self.from().len()
    }

    /// A part of both.
    pub fn part(&mut self, range: Range<usize>) -> Pair<'_> {
        match self {
            Pair::InPlace(values) => Pair::InPlace(&mut values[range]),
            Pair::Apart { from, to, adds } => {
                Pair::Apart { from: &from[range.clone()], to: &mut to[range], adds: *adds }
            }
        }
    }

    /// What is written, with a copy of what is read in it.
    pub fn copied(self) -> &'a mut [f32] {
        match self {
            Pair::InPlace(values) => values,
            Pair::Apart { from, to, .. } => {
                to.copy_from_slice(from);
                to
            }
        }
    }

    /// What is written.
    pub fn to(&mut self) -> &mut [f32] {
        match self {
            Pair::InPlace(values) => values,
            Pair::Apart { to, .. } => to,
        }
    }

    /// What is read.
    pub fn from(&self) -> &[f32] {
        match self {
            Pair::InPlace(values) => values,
            Pair::Apart { from, .. } => from,
        }
    }

    /// Puts `f(i, x)` in place of every `x`, on this thread.
    #[inline(always)]
    pub fn map(&mut self, f: impl Fn(usize, f32) -> f32) {
        match self {
            Pair::InPlace(values) => values.iter_mut().enumerate().for_each(|(i, x)| *x = f(i, *x)),
            Pair::Apart { from, to, adds: false } => {
                to.iter_mut().zip(from.iter()).enumerate().for_each(|(i, (y, x))| *y = f(i, *x));
            }
            Pair::Apart { from, to, adds: true } => {
                to.iter_mut().zip(from.iter()).enumerate().for_each(|(i, (y, x))| *y += f(i, *x));
            }
        }
    }

    /// Puts `f(x, o)` in place of every `x`, where `o` is the element of `other` at its place, on this thread.
    #[inline(always)]
    pub fn zip(&mut self, other: &[f32], f: impl Fn(f32, f32) -> f32) {
        match self {
            Pair::InPlace(values) => values.iter_mut().zip(other).for_each(|(x, o)| *x = f(*x, *o)),
            Pair::Apart { from, to, adds: false } => {
                to.iter_mut().zip(from.iter()).zip(other).for_each(|((y, x), o)| *y = f(*x, *o));
            }
            Pair::Apart { from, to, adds: true } => {
                to.iter_mut().zip(from.iter()).zip(other).for_each(|((y, x), o)| *y += f(*x, *o));
            }
        }
    }

    /// Calls `work` with every chunk of `size` elements and its number, on several threads.
    pub fn chunks(self, size: usize, work: impl Fn(usize, Pair<'_>) + Sync + Send) {
        let size = size.max(1);
        match self {
            Pair::InPlace(values) => parallel::chunks(values, size, |i, chunk| work(i, Pair::InPlace(chunk))),
            Pair::Apart { from, to, adds } => parallel::chunks(to, size, |i, to| {
                let from = &from[i * size..i * size + to.len()];
                work(i, Pair::Apart { from, to, adds });
            }),
        }
    }

    /// As [`chunks`](Pair::chunks), with the chunks of two more tensors beside, if there are any: what a layer saves of
    /// each chunk.
    pub fn chunks_saving(
        self,
        size: usize,
        saved: Option<[(&mut [f32], usize); 2]>,
        work: impl Fn(usize, Pair<'_>, Option<[&mut [f32]; 2]>) + Sync + Send,
    ) {
        let Some([first, second]) = saved else {
            return self.chunks(size, |i, pair| work(i, pair, None));
        };
        match self {
            Pair::InPlace(values) => parallel::chunks3((values, size), first, second, |i, chunk, first, second| {
                work(i, Pair::InPlace(chunk), Some([first, second]));
            }),
            Pair::Apart { from, to, adds } => {
                parallel::chunks3((to, size), first, second, |i, to, first, second| {
                    let from = &from[i * size..i * size + to.len()];
                    work(i, Pair::Apart { from, to, adds }, Some([first, second]));
                });
            }
        }
    }

    /// As [`chunks`](Pair::chunks), and adds up what `work` gives for the chunks, in their order. There may be no more of
    /// them than [`parallel::PARTS`].
    pub fn sum_chunks(self, size: usize, work: impl Fn(usize, Pair<'_>) -> f64 + Sync + Send) -> f64 {
        let size = size.max(1);
        let mut sums = [0.0; parallel::PARTS];
        let parts = &mut sums[..self.from().len().div_ceil(size)];
        match self {
            Pair::InPlace(values) => {
                parallel::chunks2((values, size), (parts, 1), |i, chunk, sum| sum[0] = work(i, Pair::InPlace(chunk)));
            }
            Pair::Apart { from, to, adds } => parallel::chunks2((to, size), (parts, 1), |i, to, sum| {
                let from = &from[i * size..i * size + to.len()];
                sum[0] = work(i, Pair::Apart { from, to, adds });
            }),
        }
        sums.iter().sum()
    }

    /// [`map`](Pair::map) without the index, on several threads.
    pub fn par_map(self, f: impl Fn(f32) -> f32 + Sync + Send) {
        self.chunks(parallel::CHUNK, |_, mut chunk| wide(|| chunk.map(|_, x| f(x))));
    }

    /// [`zip`](Pair::zip) on several threads.
    pub fn par_zip(self, other: &[f32], f: impl Fn(f32, f32) -> f32 + Sync + Send) {
        self.chunks(parallel::CHUNK, |i, mut chunk| wide(|| chunk.zip(&other[i * parallel::CHUNK..], &f)));
    }
}
