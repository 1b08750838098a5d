//! The sums of a network, added up once more by rustc: `network!` writes a call of [`check_sums`] into a constant, so that
//! a plan whose parts do not make its whole does not compile.

use crate::layer_table::LayerRow;

/// The numbers that must add up, in bytes.
#[allow(missing_docs)] // The network's constants of these names.
pub struct Totals {
    pub parameters: u64,
    pub buffers: u64,
    pub gradients: u64,
    pub optimizer: u64,
    pub activations: u64,
    pub saved: u64,
    pub input: u64,
    pub textbook: u64,
    pub peak: u64,
    pub lower_bound: u64,
}

/// Adds the rows of the table and the classes at the peak up, and compares.
///
/// # Panics
/// Where a sum differs, which stops the build.
pub const fn check_sums(rows: &[LayerRow], peak_classes: &[(&str, u64)], totals: &Totals) {
    let (mut parameters, mut buffers, mut gradients, mut optimizer) = (0u64, 0u64, 0u64, 0u64);
    let (mut activations, mut saved) = (0u64, 0u64);
    let mut i = 0;
    while i < rows.len() {
        let row = &rows[i];
        parameters += row.parameter_bytes;
        buffers += row.buffer_bytes;
        gradients += row.gradient_bytes;
        optimizer += row.optimizer_bytes;
        saved += row.saved_bytes;
        if !row.is_input() {
            activations += row.activation_bytes;
        }
        i += 1;
    }
    assert!(parameters == totals.parameters, "the layers' parameters do not add up to PARAMETER_BYTES");
    assert!(buffers == totals.buffers, "the layers' buffers do not add up to BUFFER_BYTES");
    assert!(gradients == totals.gradients, "the layers' gradients do not add up to GRADIENT_BYTES");
    assert!(optimizer == totals.optimizer, "the layers' optimizer state does not add up to OPTIMIZER_BYTES");
    assert!(activations == totals.activations, "the layers' outputs do not add up to ACTIVATION_BYTES");
    assert!(saved == totals.saved, "what the layers keep does not add up to SAVED_BYTES");
    let textbook = parameters + gradients + optimizer + totals.input + 2 * activations;
    assert!(textbook == totals.textbook, "the hand formula does not give TEXTBOOK_BYTES");
    let mut peak = 0;
    let mut i = 0;
    while i < peak_classes.len() {
        peak += peak_classes[i].1;
        i += 1;
    }
    assert!(peak == totals.peak, "the classes at the peak do not add up to PEAK_BYTES");
    assert!(totals.peak >= totals.lower_bound, "PEAK_BYTES is below LOWER_BOUND_BYTES");
}
