//! The kernels: PTX that is committed beside its sources, loaded once.
//!
//! The PTX itself says which kernels there are and what they take, so that a launch is checked against it: as many
//! arguments, each of the size that the kernel reads.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::card::Card;
use crate::error::Error;

/// Every file of kernels, as `scripts/kernels.py` compiles it. A new file has a row here.
const FILES: &[(&str, &str)] = &[
    ("activation", include_str!("../../kernels/ptx/activation.ptx")),
    ("arithmetic", include_str!("../../kernels/ptx/arithmetic.ptx")),
    ("batchnorm", include_str!("../../kernels/ptx/batchnorm.ptx")),
    ("channels", include_str!("../../kernels/ptx/channels.ptx")),
    ("convolution", include_str!("../../kernels/ptx/convolution.ptx")),
    ("dropout", include_str!("../../kernels/ptx/dropout.ptx")),
    ("layernorm2d", include_str!("../../kernels/ptx/layernorm2d.ptx")),
    ("loss", include_str!("../../kernels/ptx/loss.ptx")),
    ("matmul", include_str!("../../kernels/ptx/matmul.ptx")),
    ("optimizer", include_str!("../../kernels/ptx/optimizer.ptx")),
    ("pool", include_str!("../../kernels/ptx/pool.ptx")),
    ("rownorm", include_str!("../../kernels/ptx/rownorm.ptx")),
    ("softmax", include_str!("../../kernels/ptx/softmax.ptx")),
];

/// The kernels, loaded.
pub struct Kernels {
    card: Arc<Card>,
    modules: Vec<sys::CUmodule>,
    kernels: HashMap<&'static str, Kernel>,
}

struct Kernel {
    function: sys::CUfunction,
    /// The bytes of each parameter.
    parameters: Vec<usize>,
}

// SAFETY: handles of the driver, which may be used from any thread.
unsafe impl Send for Kernels {}

impl Kernels {
    /// Loads all of them.
    pub fn load(card: &Arc<Card>) -> Result<Kernels, Error> {
        let mut kernels = Kernels { card: Arc::clone(card), modules: Vec::new(), kernels: HashMap::new() };
        for (file, ptx) in FILES {
            let image = CString::new(*ptx).expect("PTX is text");
            // SAFETY: a text that ends with zero; `drop` unloads the module.
            let module = unsafe { result::module::load_data(image.as_ptr().cast()) };
            let module = module.map_err(|error| card.error(&format!("loading the kernels of {file}"), error))?;
            kernels.modules.push(module);
            for (name, parameters) in entries(ptx) {
                let symbol = CString::new(name).expect("PTX is text");
                // SAFETY: the module was just loaded, and is unloaded with this table.
                let function = unsafe { result::module::get_function(module, symbol) };
                let function = function.map_err(|error| card.error(&format!("loading the kernel {name}"), error))?;
                kernels.kernels.insert(name, Kernel { function, parameters });
            }
        }
        Ok(kernels)
    }

    /// Starts a kernel. `doing` says what for, in an error.
    pub fn launch(
        &self,
        name: &str,
        grid: Grid,
        arguments: &[&dyn Argument],
        doing: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        const MOST: usize = 24;
        let kernel = self.kernels.get(name).unwrap_or_else(|| panic!("no file of kernels has `{name}`"));
        let mut pointers = [std::ptr::null_mut(); MOST];
        assert_eq!(arguments.len(), kernel.parameters.len(), "`{name}` takes another number of arguments");
        for (i, (argument, bytes)) in arguments.iter().zip(&kernel.parameters).enumerate() {
            assert_eq!(size_of_val(*argument), *bytes, "argument {i} of `{name}` is of another size");
            pointers[i] = std::ptr::from_ref(*argument).cast::<c_void>().cast_mut();
        }
        let Grid { blocks: [x, y], threads } = grid;
        // SAFETY: the arguments are those that the kernel reads, as was checked; it writes what they point to, which is
        // the arena's, in the places that the plan gives the step's operands.
        let launched = unsafe {
            result::launch_kernel(
                kernel.function,
                (x, y, 1),
                (threads, 1, 1),
                0,
                self.card.stream(),
                &mut pointers[..arguments.len()],
            )
        };
        launched.map_err(|error| self.card.error(&format!("{}: starting the kernel `{name}`", doing()), error))
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        if self.card.bind().is_ok() {
            for module in &self.modules {
                // SAFETY: loaded in `load`, and used by this table alone.
                let _ = unsafe { result::module::unload(*module) };
            }
        }
    }
}

/// The names of a text's kernels, each with the bytes of its parameters.
fn entries(ptx: &'static str) -> impl Iterator<Item = (&'static str, Vec<usize>)> {
    ptx.split(".visible .entry ").skip(1).map(|entry| {
        let (name, rest) = entry.split_once('(').expect("a kernel has parameters");
        let (parameters, _) = rest.split_once(')').expect("that end");
        (name, parameters.lines().filter(|line| line.contains(".param")).map(bytes).collect())
    })
}

/// The bytes of a parameter: `.param .u64 name` or `.param .align 4 .b8 name[60]`.
fn bytes(parameter: &str) -> usize {
    if let Some((_, length)) = parameter.split_once('[') {
        return length.trim_end_matches([',', ']']).parse().expect("a length");
    }
    let bits = parameter.split_whitespace().nth(1).map(|of| of.trim_start_matches(['.', 'u', 's', 'f', 'b']));
    bits.and_then(|bits| bits.parse::<usize>().ok()).expect("a type with its bits") / 8
}

/// What a kernel takes by value.
///
/// # Safety
/// The bytes of the value are what the kernel's parameter of that size reads.
pub unsafe trait Argument {}

// SAFETY: numbers are the same on both sides.
unsafe impl Argument for u32 {}
// SAFETY: as above.
unsafe impl Argument for i32 {}
// SAFETY: as above.
unsafe impl Argument for f32 {}

/// An address on the card; zero stands for an operand that a step does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Pointer(pub u64);

// SAFETY: pointers on the card are 64 bits wide.
unsafe impl Argument for Pointer {}

impl Pointer {
    /// No operand.
    pub const NONE: Pointer = Pointer(0);

    /// So many floats further.
    pub fn after(self, floats: usize) -> Pointer {
        Pointer(self.0 + 4 * floats as u64)
    }
}

/// How many threads a kernel is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    blocks: [u32; 2],
    threads: u32,
}

impl Grid {
    /// The most threads of a block: `THREADS` in `common.cuh`.
    pub const THREADS: u32 = 256;
    const WARP: u32 = 32;
    /// Beyond so many blocks, threads take several elements each.
    const MOST_BLOCKS: u32 = 1 << 16;

    /// A thread for each element.
    pub fn each(elements: u32) -> Grid {
        Grid::blocks(elements.div_ceil(Grid::THREADS), Self::MOST_BLOCKS)
    }

    /// Blocks of the full size, but no more than `most`.
    pub fn blocks(blocks: u32, most: u32) -> Grid {
        Grid { blocks: [blocks.clamp(1, most), 1], threads: Self::THREADS }
    }

    /// A block for each group of so many elements.
    pub fn groups(groups: u32, elements: u32) -> Grid {
        let threads = elements.checked_next_power_of_two().unwrap_or(Self::THREADS);
        Grid { blocks: [groups, 1], threads: threads.clamp(Self::WARP, Self::THREADS) }
    }

    /// The same for each of several batches.
    pub fn times(self, batches: u32) -> Grid {
        // More than this the second axis can't have; blocks then take several batches each.
        Grid { blocks: [self.blocks[0], batches.min(65_535)], ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_says_what_it_takes() {
        for (file, ptx) in FILES {
            assert!(entries(ptx).count() > 0, "{file} has no kernels");
        }
        let of = |name: &str| FILES.iter().flat_map(|(_, ptx)| entries(ptx)).find(|entry| entry.0 == name).unwrap().1;
        assert_eq!(of("affine"), [8, 8, 4, 4, 4, 4]);
        assert_eq!(of("columns"), [8, 8, 4, 4, 4, 60]);
    }

    #[test]
    fn grids_cover_their_elements() {
        assert_eq!(Grid::each(1), Grid { blocks: [1, 1], threads: 256 });
        assert_eq!(Grid::each(257), Grid { blocks: [2, 1], threads: 256 });
        assert_eq!(Grid::each(u32::MAX / 2), Grid { blocks: [1 << 16, 1], threads: 256 });
        assert_eq!(Grid::groups(3, 40), Grid { blocks: [3, 1], threads: 64 });
        assert_eq!(Grid::groups(3, u32::MAX), Grid { blocks: [3, 1], threads: 256 });
        assert_eq!(Grid::each(1).times(70_000), Grid { blocks: [1, 65_535], threads: 256 });
    }
}
