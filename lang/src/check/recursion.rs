//! Blocks within blocks.

use crate::ast::{Layer, Member, Source, Target};
use crate::report::Report;

/// A block that contained itself would have no end.
pub(super) fn no_block_contains_itself(source: &Source, report: &mut Report) -> bool {
    let contained: Vec<Vec<usize>> = source
        .blocks
        .iter()
        .map(|block| {
            let mut found = Vec::new();
            block.body.members.iter().for_each(|member| calls(member, &mut found));
            found.sort_unstable();
            found.dedup();
            found
        })
        .collect();
    // A depth-first search that marks each block: not seen, on the path, done. Not recursive: paths may be long.
    let mut state = vec![State::New; contained.len()];
    let mut all_well = true;
    for start in 0..contained.len() {
        if state[start] != State::New {
            continue;
        }
        let mut path = vec![(start, 0)];
        state[start] = State::OnPath;
        while let Some((block, next)) = path.last_mut() {
            let Some(&inner) = contained[*block].get(*next) else {
                state[*block] = State::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match state[inner] {
                State::New => {
                    state[inner] = State::OnPath;
                    path.push((inner, 0));
                }
                State::OnPath => {
                    all_well = false;
                    let from = path.iter().position(|(block, _)| *block == inner).unwrap_or(0);
                    let name = |block: usize| format!("`{}`", source.blocks[block].name);
                    let cycle: Vec<String> = path[from..].iter().map(|(block, _)| name(*block)).collect();
                    let shown =
                        if cycle.len() > 8 { "itself, by way of others".to_string() } else { cycle.join(" contains ") };
                    let message = match cycle.len() {
                        1 => format!("block {} contains itself", cycle[0]),
                        n if n > 8 => format!("block {} contains {shown}", cycle[0]),
                        _ => format!("blocks contain each other: {shown} contains {}", cycle[0]),
                    };
                    report.error(
                        &source.blocks[inner].name,
                        message,
                        format!("a network has an end: to repeat a block, write `[{}; n]`", source.blocks[inner].name),
                    );
                }
                State::Done => {}
            }
        }
    }
    all_well
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    OnPath,
    Done,
}

/// The blocks that a member calls.
fn calls(member: &Member, found: &mut Vec<usize>) {
    layer(&member.layer, found);
}

fn layer(this: &Layer, found: &mut Vec<usize>) {
    match this {
        Layer::Call(call) => {
            if let Target::Block { block, .. } = call.target {
                found.push(block);
            }
        }
        Layer::List(members, _) => members.iter().for_each(|member| calls(member, found)),
        Layer::Repeat(member, ..) => calls(member, found),
        Layer::If(branches, _) => branches.iter().for_each(|(_, branch)| layer(branch, found)),
        Layer::Unknown => {}
    }
}
