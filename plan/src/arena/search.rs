//! The bounded exact search: many trees, each with few nodes, in different orders of the buffers.
//!
//! The time that a depth-first search takes varies wildly with its order: one is lost among millions of nodes where
//! another needs a few hundred. So it is restarted with another order before long (Gomes, Selman and Kautz, "Boosting
//! Combinatorial Search Through Randomization", AAAI 1998), and the orders learn: buffers of sections where searches
//! failed come first (after "dom/wdeg": Boussemart et al., "Boosting Systematic Search by Weighting Constraints", ECAI
//! 2004). There is no chance in it: the same problem is searched in the same way each time.

use super::sections::Sections;
use super::tree::{Outcome, Tree};
use std::cmp::Reverse;

/// The nodes of the first tree, but no fewer than a placement that meets no conflict takes; a round of trees later it is a
/// tenth more.
const FIRST_NODES: u64 = 500;

/// How far conflicts may bring a buffer forward, in thousandths of all places, from round to round: an order that hardly
/// learns and one that forgets what it was are lost on different problems.
const STRENGTHS: [u128; 4] = [30, 200, 600, 1500];

/// What a search has come to.
pub(super) struct Found {
    /// The offsets of the lowest placement, if it is lower than the one that was known before.
    pub offsets: Option<Vec<u64>>,
    /// The height of the lowest placement.
    pub height: u64,
    /// No placement is lower than this.
    pub lower_bound: u64,
    /// The nodes spent.
    pub nodes: u64,
}

/// Searches for a placement lower than `height`, until one is not above `goal` or the nodes are spent. No placement is
/// lower than `lower_bound`.
pub(super) fn search(sections: &Sections, lower_bound: u64, goal: u64, height: u64, nodes: u64) -> Found {
    let mut found = Found { offsets: None, height, lower_bound, nodes: 0 };
    let mut trees = Trees::new(sections);
    // First for the goal itself, which is met most often. Where the nodes run out, half way up from there.
    let mut target = goal;
    while found.nodes < nodes && found.height > goal.max(found.lower_bound) {
        let share = if target + 1 < found.height { (nodes - found.nodes).div_ceil(2) } else { nodes - found.nodes };
        let (outcome, spent) = trees.run(target, share);
        found.nodes += spent;
        match outcome {
            Outcome::Found(offsets) => {
                found.height =
                    offsets.iter().zip(&sections.size).map(|(offset, size)| offset + size).max().unwrap_or(0);
                found.offsets = Some(offsets);
                let floor = goal.max(found.lower_bound);
                target = floor + (found.height - floor) / 2;
            }
            Outcome::Refuted(next) => {
                found.lower_bound = next.min(found.height);
                target = found.lower_bound;
            }
            Outcome::Spent => target += (found.height - target) / 2,
        }
        target = target.min(found.height - 1);
    }
    found
}

/// The orders, and what the trees have taught.
struct Trees<'a> {
    sections: &'a Sections,
    orders: [Vec<usize>; 5],
    /// How often searches failed in each section; what lies back counts less.
    conflicts: Vec<u64>,
}

impl Trees<'_> {
    fn new(sections: &Sections) -> Trees<'_> {
        let order = |key: fn(&Sections, usize) -> (u128, u128)| {
            let mut order: Vec<usize> = (0..sections.len()).collect();
            order.sort_by_cached_key(|&buffer| Reverse(key(sections, buffer)));
            order
        };
        Trees {
            sections,
            orders: [
                order(|s, b| (s.length(b) as u128, s.area(b))),
                order(|s, b| (s.peak(b).into(), s.area(b))),
                order(|s, b| (s.peak(b).into(), s.length(b) as u128)),
                order(|s, b| (s.area(b), s.peak(b).into())),
                order(|s, b| (s.size[b].into(), s.length(b) as u128)),
            ],
            conflicts: vec![0; sections.total.len()],
        }
    }

    /// Searches for a placement not above the capacity. Returns the nodes as well.
    fn run(&mut self, capacity: u64, nodes: u64) -> (Outcome, u64) {
        let mut spent = 0;
        let buffers = self.sections.len() as u64;
        let mut limit = FIRST_NODES.max(buffers + buffers / 4);
        for strength in STRENGTHS.into_iter().cycle() {
            for index in 0..self.orders.len() {
                let order = self.learned(index, strength);
                let mut tree = Tree::new(self.sections, &order, capacity);
                let outcome = tree.run(limit.min(nodes - spent));
                spent += tree.nodes;
                for (sum, &conflicts) in self.conflicts.iter_mut().zip(&tree.conflicts) {
                    *sum = *sum - *sum / 10 + 1000 * conflicts;
                }
                if !matches!(outcome, Outcome::Spent) || spent == nodes {
                    return (outcome, spent);
                }
            }
            limit += limit / 10;
        }
        (Outcome::Spent, spent)
    }

    /// An order in which buffers of sections with conflicts come earlier.
    fn learned(&self, index: usize, strength: u128) -> Vec<usize> {
        let most = self.conflicts.iter().copied().max().unwrap_or(0).max(1);
        let places = self.orders[index].len() as u128 * strength;
        let mut keyed: Vec<(i128, usize)> = Vec::with_capacity(self.orders[index].len());
        for (place, &buffer) in self.orders[index].iter().enumerate() {
            let conflicts = self.sections.highest(buffer, &self.conflicts);
            let earlier = places * u128::from(conflicts) / u128::from(most);
            keyed.push((place as i128 * 1000 - earlier as i128, buffer));
        }
        keyed.sort_by_key(|&(key, _)| key);
        keyed.into_iter().map(|(_, buffer)| buffer).collect()
    }
}
