//! The special registers that tell a thread who it is.

/// A special register. The numbers are 0 for x, 1 for y and 2 for z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// The thread in its block.
    Thread(usize),
    /// The threads of a block.
    BlockSize(usize),
    /// The block in the grid.
    Block(usize),
    /// The blocks of the grid.
    GridSize(usize),
    /// The thread in its warp.
    Lane,
    /// The warp in its block.
    Warp,
    /// The warps of a block.
    Warps,
    /// 32.
    WarpSize,
    /// The threads of the warp that stand before, after or at this one.
    LaneMask {
        /// Whether those before count.
        before: bool,
        /// Whether this one counts.
        this: bool,
        /// Whether those after count.
        after: bool,
    },
    /// The bytes of shared memory that the launch gives.
    DynamicShared,
}

impl Special {
    /// The register of a name with its percent sign.
    pub fn named(name: &str) -> Option<Special> {
        let mask = |before, this, after| Special::LaneMask { before, this, after };
        Some(match name {
            "%laneid" => Special::Lane,
            "%warpid" => Special::Warp,
            "%nwarpid" => Special::Warps,
            "WARP_SZ" => Special::WarpSize,
            "%lanemask_eq" => mask(false, true, false),
            "%lanemask_le" => mask(true, true, false),
            "%lanemask_lt" => mask(true, false, false),
            "%lanemask_ge" => mask(false, true, true),
            "%lanemask_gt" => mask(false, false, true),
            "%dynamic_smem_size" => Special::DynamicShared,
            _ => {
                let (register, axis) = name.split_once('.')?;
                let axis = ["x", "y", "z"].iter().position(|name| *name == axis)?;
                match register {
                    "%tid" => Special::Thread(axis),
                    "%ntid" => Special::BlockSize(axis),
                    "%ctaid" => Special::Block(axis),
                    "%nctaid" => Special::GridSize(axis),
                    _ => return None,
                }
            }
        })
    }
}
