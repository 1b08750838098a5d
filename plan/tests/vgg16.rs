//! VGG-16 row by row, against the table in the CS231n notes (Stanford, "Convolutional Networks", case studies).
//!
//! The notes give the total as "24M * 4 bytes ~= 93MB / image", but their own rows add up to 15,237,608 values, which is
//! 60.95 MB. The rows are right and the printed total is not; the rows and their sum are tested.

mod common;

use plimsoll_plan::footprint::Footprint;
use plimsoll_plan::layer_table::rows;
use plimsoll_plan::plan::Plan;
use plimsoll_plan::validate::validate;

/// Layer, values of the output, weights, and weights with biases.
const ROWS: [(&str, u64, u64, u64); 22] = [
    ("input", 150_528, 0, 0),
    ("conv2d", 3_211_264, 1_728, 1_792),
    ("conv2d", 3_211_264, 36_864, 36_928),
    ("maxpool2d", 802_816, 0, 0),
    ("conv2d", 1_605_632, 73_728, 73_856),
    ("conv2d", 1_605_632, 147_456, 147_584),
    ("maxpool2d", 401_408, 0, 0),
    ("conv2d", 802_816, 294_912, 295_168),
    ("conv2d", 802_816, 589_824, 590_080),
    ("conv2d", 802_816, 589_824, 590_080),
    ("maxpool2d", 200_704, 0, 0),
    ("conv2d", 401_408, 1_179_648, 1_180_160),
    ("conv2d", 401_408, 2_359_296, 2_359_808),
    ("conv2d", 401_408, 2_359_296, 2_359_808),
    ("maxpool2d", 100_352, 0, 0),
    ("conv2d", 100_352, 2_359_296, 2_359_808),
    ("conv2d", 100_352, 2_359_296, 2_359_808),
    ("conv2d", 100_352, 2_359_296, 2_359_808),
    ("maxpool2d", 25_088, 0, 0),
    ("linear", 4_096, 102_760_448, 102_764_544),
    ("linear", 4_096, 16_777_216, 16_781_312),
    ("linear", 1_000, 4_096_000, 4_097_000),
];

#[test]
fn every_row_and_the_true_sum() {
    let plan = Plan::new(common::vgg16(1)).unwrap();
    validate(&plan).unwrap();
    let weights = |row: &plimsoll_plan::layer_table::LayerRow| {
        let weight = plan.graph.parameters.iter().find(|p| p.path == format!("{}.weight", row.path));
        weight.map_or(0, |weight| weight.elements())
    };
    let table = rows(&plan);
    let counted: Vec<(&str, u64, u64, u64)> = table
        .iter()
        .filter(|row| row.activation_bytes > 0)
        .map(|row| (row.kind, row.activation_bytes / 4, weights(row), row.parameters))
        .collect();
    assert_eq!(counted, ROWS);

    let footprint = Footprint::new(&plan);
    assert_eq!(ROWS.iter().map(|row| row.1).sum::<u64>(), 15_237_608);
    assert_eq!(footprint.activation_bytes, (15_237_608 - 150_528) * 4);
    assert_eq!(footprint.activation_bytes + 150_528 * 4, 60_950_432);
    assert_eq!(footprint.parameters, 138_357_544);
    assert_eq!(table.iter().map(&weights).sum::<u64>(), 138_344_128);
    assert_eq!(footprint.parameter_bytes, 553_430_176);
    // One image of 224 x 224 in f32, and its class.
    assert_eq!(footprint.input_bytes, 602_112 + 4);
    // Momentum keeps as much again; gradients are counted whole.
    assert_eq!((footprint.optimizer_bytes, footprint.gradient_bytes), (553_430_176, 553_430_176));
    // 128 columns of 512 x 9 values, each with its 512 products.
    assert_eq!(footprint.workspace_bytes, 128 * (512 * 9 + 512) * 4);
    let textbook = 3 * 553_430_176 + 602_116 + 2 * 60_348_320;
    assert_eq!(footprint.textbook_bytes, textbook);
}

#[test]
fn peak() {
    for batch in [1, 4, 32, 256] {
        let plan = Plan::new(common::vgg16(batch)).unwrap();
        validate(&plan).unwrap();
        println!("{batch}: {} MiB", plan.peak_bytes() as f64 / 1048576.0);
        assert_eq!(plan.peak_bytes(), plan.lower_bound_bytes());
        assert_eq!(Plan::from_bytes(&plan.to_bytes()).unwrap(), plan);
    }
}
