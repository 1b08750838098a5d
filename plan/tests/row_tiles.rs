//! Weights that are updated a tile of rows at a time, against sizes worked out by hand.

mod common;

use common::{Chain, int};
use plimsoll_plan::graph::Graph;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::schedule::{Role, StepKind};
use plimsoll_plan::strategy::Saving;
use plimsoll_plan::validate::validate;

/// One of the last convolutions of VGG-16, on the smallest image that it makes sense for.
fn last_convolution() -> Graph {
    let mut chain = Chain::new("LastConvolution", &[512, 2, 2]);
    let arguments = [
        ("out_channels", int(512)),
        ("kernel", int(3)),
        ("padding", int(1)),
        ("bias", plimsoll_plan::arguments::Value::Bool(false)),
    ];
    chain.push("conv2d", &arguments);
    chain.train(1, Optimizer::by_name("adam").unwrap())
}

#[test]
fn a_convolution_of_vgg() {
    // 512 x 512 x 3 x 3 floats are 9 MiB: the weight, and two moments.
    let weight = 512 * 512 * 9 * 4;
    assert_eq!(weight, 9 << 20);
    // The image and the output's gradient 8 KiB each; the loss takes 256 bytes. The targets have been read.
    let rest = 2 * (512 * 4 * 4) + 256;
    // Columns of 4,608 rows and 512 products at four positions.
    let columns = (4608 + 512) * 4 * 4;
    // 64 of 512 rows: 256 KiB would be 14, too few to make the columns again for.
    let tile = weight / 512 * 64;

    let plan = last_convolution().plan().unwrap();
    assert_eq!(validate(&plan), Ok(()));
    assert_eq!(plan.peak_bytes(), 3 * weight + rest + columns + tile);
    let steps = &plan.training.as_ref().unwrap().schedule.steps;
    let by_rows = steps.iter().find(|step| step.kind == StepKind::UpdateRows { node: 0 }).unwrap();
    assert!(by_rows.buffer(Role::ParameterGradient(0)).is_none());

    let whole = last_convolution().without(&[Saving::RowTiles]).plan().unwrap();
    assert_eq!(whole.peak_bytes(), 4 * weight + rest + columns);
}
