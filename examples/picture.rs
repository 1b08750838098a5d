//! Draws the arena of ResNet-18 over one training step, as an SVG file that looks the same on light and on dark pages.
//!
//! ```text
//! cargo run --example picture              # docs/arena.svg, the picture in the README
//! cargo run --example picture -- FILE
//! ```

use std::path::Path;
use std::{env, fs, io};

use plimsoll::Network;
use resnet18::ResNet18;

#[path = "zoo/resnet18.rs"]
#[allow(dead_code)]
mod resnet18;

fn main() -> io::Result<()> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/arena.svg");
    let file = env::args_os().nth(1).map_or(default, Into::into);
    let plan = ResNet18::graph().budget(550_000_000).plan().expect("a plan as large as the declared one");
    let mut svg = plan.picture_file();
    svg.push('\n');
    fs::write(&file, svg)?;
    println!("{}", file.display());
    Ok(())
}
