//! Windows that slide over two axes: the geometry that convolutions and pooling share.

use serde::{Deserialize, Serialize};

use crate::arguments::MAX_INTEGER;

/// A sliding window over (height, width). One-dimensional layers use a height of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Extent of the window in taps.
    pub kernel: [u64; 2],
    /// Distance between neighbouring windows.
    pub stride: [u64; 2],
    /// Zeros (or, for pooling, nothing) added on either side.
    pub padding: [u64; 2],
    /// Distance between neighbouring taps.
    pub dilation: [u64; 2],
}

/// Names of the two axes in messages.
const AXES: [&str; 2] = ["height", "width"];

impl Window {
    /// How many elements the window covers along an axis, gaps included: `dilation * (kernel - 1) + 1`.
    pub fn reach(&self, axis: usize) -> u64 {
        self.dilation[axis] * (self.kernel[axis] - 1) + 1
    }

    /// Checks that the numbers are ones that the language accepts, so that no product of two passes 64 bits.
    ///
    /// # Errors
    /// A zero, or a number beyond [`MAX_INTEGER`].
    pub fn check(&self) -> Result<(), String> {
        let allowed = 1..=MAX_INTEGER.unsigned_abs();
        let sizes = self.kernel.iter().chain(&self.stride).chain(&self.dilation).all(|size| allowed.contains(size));
        if sizes && self.padding.iter().all(|padding| padding <= allowed.end()) {
            return Ok(());
        }
        Err(format!("kernel, stride and dilation must be from 1 to {MAX_INTEGER}, and padding no larger"))
    }

    /// Windows along both axes over an input of `extent`: `(input + 2 padding - reach) / stride + 1`, rounded down.
    ///
    /// # Errors
    /// Where the window is larger than the padded input.
    pub fn output(&self, extent: [u64; 2]) -> Result<[u64; 2], String> {
        self.check()?;
        let mut output = [0; 2];
        for axis in 0..2 {
            let padded = extent[axis] + 2 * self.padding[axis];
            let reach = self.reach(axis);
            if reach > padded {
                let dilated = if self.dilation[axis] > 1 { format!(" (dilated to {reach})") } else { String::new() };
                return Err(format!(
                    "the kernel's {name} {kernel}{dilated} is larger than its input's {name} {input} with padding {padding} on either side\n\
                     help: use a smaller kernel, `padding` of at least {needed}, or smaller strides before it (shapes are [channels, height, width])",
                    name = AXES[axis],
                    kernel = self.kernel[axis],
                    input = extent[axis],
                    padding = self.padding[axis],
                    needed = (reach - extent[axis]).div_ceil(2),
                ));
            }
            output[axis] = (padded - reach) / self.stride[axis] + 1;
        }
        Ok(output)
    }

    /// As [`output`](Window::output), but rounded up, where the last window starts inside the input or its left padding
    /// (PyTorch's `ceil_mode`).
    ///
    /// # Errors
    /// Where the window is larger than the padded input.
    pub fn output_ceil(&self, extent: [u64; 2]) -> Result<[u64; 2], String> {
        let mut output = self.output(extent)?;
        for axis in 0..2 {
            let (stride, padding) = (self.stride[axis], self.padding[axis]);
            let span = extent[axis] + 2 * padding - self.reach(axis);
            let rounded_up = span.div_ceil(stride) + 1;
            let starts_inside = (rounded_up - 1) * stride < extent[axis] + padding;
            output[axis] = if starts_inside { rounded_up } else { rounded_up - 1 };
        }
        Ok(output)
    }

    /// Taps of the window.
    pub fn taps(&self) -> u64 {
        self.kernel[0] * self.kernel[1]
    }
}
