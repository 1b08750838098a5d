//! The arena over the step as an SVG: time across, offset up, the budget as a line, hover text for each buffer.
//!
//! Within a page, text and axes take the page's own colour, and the classes' colours are readable on light and on dark
//! pages. A file brings its own colours, for an image knows nothing of the page that it is shown on.

use std::fmt::Write;

use crate::graph::Graph;
use crate::plan::{Plan, Planned};
use crate::schedule::Class;
use crate::units::Units;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
/// Room for the labels of the vertical axis.
const LEFT: f64 = 76.0;
/// Room for the legend.
const TOP: f64 = 40.0;
/// Room for the labels of the phases.
const BOTTOM: f64 = 34.0;
/// No more buffers than this are drawn: the largest ones. The others would be thinner than a line.
const MOST_BUFFERS: usize = 500;
/// A buffer that is flatter than this is not seen.
const LEAST_HEIGHT: f64 = 0.3;

const fn colour(class: Class) -> &'static str {
    match class {
        Class::Parameter => "#4477aa",
        Class::Buffer => "#66a5d9",
        Class::Optimizer => "#8a63b8",
        Class::Gradient => "#cc6677",
        Class::Input => "#999999",
        Class::Activation => "#2e9d6b",
        Class::Saved => "#88bb44",
        Class::ActivationGradient => "#dd9933",
        Class::Workspace => "#b58863",
        Class::Loss => "#777777",
    }
}

/// The scales of the picture.
struct Scale {
    steps: f64,
    top: u64,
}

impl Scale {
    fn x(&self, step: u32) -> f64 {
        LEFT + f64::from(step) / self.steps * (WIDTH - LEFT - 8.0)
    }

    fn y(&self, bytes: u64) -> f64 {
        HEIGHT - BOTTOM - bytes as f64 / self.top as f64 * (HEIGHT - BOTTOM - TOP)
    }
}

impl Plan {
    /// The picture of the training step, or of inference for a network that is not trained, as an SVG element without
    /// blank lines, so that it can stand in Markdown.
    pub fn picture(&self) -> String {
        self.draw(INLINE, "")
    }

    /// The same picture as a file of its own, dark on a light card, so that it can be shown as an image on any page.
    pub fn picture_file(&self) -> String {
        self.draw(FILE, GROUND)
    }

    fn draw(&self, attributes: &str, ground: &str) -> String {
        let planned = self.training.as_ref().unwrap_or(&self.inference);
        let budget = match self.training {
            Some(_) => self.graph.budget.train,
            None => self.graph.budget.infer,
        };
        let length = planned.placement.length.max(1);
        // A budget far above the arena is told in words; drawn, it would flatten everything else.
        let drawn_budget = budget.filter(|&budget| budget / 2 <= length);
        let top = length.max(drawn_budget.unwrap_or(0));
        let scale = Scale { steps: planned.schedule.steps.len().max(1) as f64, top: top + top / 40 };
        let mut svg = String::with_capacity(64 << 10);
        write_head(&mut svg, self, planned, attributes);
        svg.push_str(ground);
        write_legend(&mut svg, &self.graph, planned);
        write_buffers(&mut svg, &self.graph, planned, &scale);
        write_axes(&mut svg, planned, &scale, self.graph.budget.units);
        if let Some(budget) = budget {
            write_budget(&mut svg, budget, drawn_budget.is_some(), &scale, self.graph.budget.units);
        }
        svg.push_str("</svg>");
        svg
    }
}

macro_rules! put {
    ($svg:expr, $($arguments:tt)*) => { write!($svg, $($arguments)*).expect("strings take any text") };
}

/// The attributes of a picture within a page.
const INLINE: &str = "style=\"max-width:100%;height:auto;font:11px sans-serif\" fill=\"currentColor\"";
/// The attributes of a picture in a file.
const FILE: &str =
    "width=\"860\" height=\"420\" style=\"font:11px sans-serif\" color=\"#24292f\" fill=\"currentColor\"";
/// What a picture in a file is drawn on.
const GROUND: &str = "<rect width=\"860\" height=\"420\" rx=\"8\" fill=\"#fbfbf9\"/>";

fn write_head(svg: &mut String, plan: &Plan, planned: &Planned, attributes: &str) {
    let what = if planned.schedule.training { "one training step" } else { "one pass of inference" };
    put!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" {attributes}>\
         <title>The arena of {} over {what} at batch {}</title>",
        plan.graph.name,
        planned.placement.batch
    );
}

fn write_legend(svg: &mut String, graph: &Graph, planned: &Planned) {
    let mut present = [false; Class::ALL.len()];
    for buffer in &planned.schedule.buffers {
        present[buffer.holds[0].content.class(graph) as usize] = true;
    }
    let mut x = LEFT;
    for class in Class::ALL.into_iter().filter(|class| present[*class as usize] && *class != Class::Loss) {
        put!(svg, "<rect x=\"{x:.0}\" y=\"8\" width=\"10\" height=\"10\" fill=\"{}\"/>", colour(class));
        put!(svg, "<text x=\"{:.0}\" y=\"17\">{}</text>", x + 14.0, class.label());
        x += 26.0 + 5.8 * class.label().len() as f64;
    }
}

fn write_buffers(svg: &mut String, graph: &Graph, planned: &Planned, scale: &Scale) {
    let (schedule, placement) = (&planned.schedule, &planned.placement);
    let mut order: Vec<usize> =
        (0..schedule.buffers.len()).filter(|&i| scale.y(0) - scale.y(placement.sizes[i]) >= LEAST_HEIGHT).collect();
    // Largest area first: those are kept, and smaller ones are drawn over them.
    let area = |i: usize| {
        let buffer = &schedule.buffers[i];
        u128::from(placement.sizes[i]) * u128::from(buffer.upper - buffer.lower)
    };
    order.sort_by_key(|&i| (std::cmp::Reverse(area(i)), i));
    order.truncate(MOST_BUFFERS);
    for i in order {
        let buffer = &schedule.buffers[i];
        let (bottom, top) = (placement.offsets[i], placement.offsets[i] + placement.sizes[i]);
        let content = buffer.holds[0].content;
        let (x, y) = (scale.x(buffer.lower), scale.y(top));
        put!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\" stroke=\"currentColor\" \
             stroke-width=\".3\" stroke-opacity=\".6\"><title>{}: {} at {bottom}, steps {} to {}</title></rect>",
            (scale.x(buffer.upper) - x).max(0.4),
            scale.y(bottom) - y,
            colour(content.class(graph)),
            content.name(graph),
            graph.budget.units.format(placement.sizes[i]),
            buffer.lower,
            buffer.upper - 1,
        );
    }
}

fn write_axes(svg: &mut String, planned: &Planned, scale: &Scale, units: Units) {
    let (left, right, floor) = (LEFT, WIDTH - 8.0, scale.y(0));
    put!(
        svg,
        "<path d=\"M{left} {TOP}V{floor:.1}H{right}\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"1\"/>"
    );
    let length = planned.placement.length;
    for part in 0..=4u64 {
        let bytes = (u128::from(length) * u128::from(part) / 4) as u64;
        put!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 5.0,
            scale.y(bytes) + 4.0,
            units.format(bytes)
        );
    }
    let steps = planned.schedule.steps.len() as u32;
    let loss = planned.schedule.steps.iter().position(|step| step.kind.is_loss());
    let phases = match loss {
        Some(loss) => vec![("forward", 0, loss as u32), ("backward and update", loss as u32 + 1, steps)],
        None => vec![("forward", 0, steps)],
    };
    for (label, from, to) in phases {
        let middle = (scale.x(from) + scale.x(to)) / 2.0;
        put!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}: steps {from} to {}</text>",
            floor + 18.0,
            to.saturating_sub(1).max(from)
        );
    }
    if let Some(loss) = loss {
        let x = scale.x(loss as u32);
        put!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{floor:.1}\" stroke=\"currentColor\" stroke-width=\".8\" stroke-dasharray=\"2 3\"/>"
        );
    }
}

fn write_budget(svg: &mut String, budget: u64, drawn: bool, scale: &Scale, units: Units) {
    let right = WIDTH - 8.0;
    let label = units.format_declared(budget);
    if drawn {
        let y = scale.y(budget);
        put!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#e0533a\" stroke-width=\"1.5\" stroke-dasharray=\"7 4\"/>\
             <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#e0533a\">budget {label}</text>",
            y - 4.0
        );
    } else {
        put!(
            svg,
            "<text x=\"{right}\" y=\"{TOP}\" dy=\"-6\" text-anchor=\"end\" fill=\"#e0533a\">budget {label}, far above</text>"
        );
    }
}
