//! WIP
use super::sections::Sections;

pub(super) enum Outcome {
    Found(Vec<u64>),
    Infeasible { next: u64 },
    Spent,
}

const NONE: usize = usize::MAX;

struct Component {
    parent: usize,
    first: usize,
    last: usize,
    list: (usize, usize),
    next: usize,
}

struct Frame {
    component: usize,
    parent: usize,
    first: usize,
    last: usize,
    list: (usize, usize),
    candidates: (usize, usize),
    rest: usize,
    placed: usize,
    trail: usize,
    lists: usize,
    components: usize,
    hash: (u64, bool),
}

pub(super) struct Search<'a> {
    s: &'a Sections,
    order: Vec<usize>,
    lower: Vec<usize>,
    upper: Vec<usize>,
    size: Vec<u64>,
    alignment: Vec<u64>,
    neighbours: Vec<u32>,
    neighbour_start: Vec<usize>,
    min_offset: Vec<u64>,
    placed: Vec<bool>,
    crossing: Vec<u32>,
    height: Vec<u64>,
    lists: Vec<u32>,
    components: Vec<Component>,
    frames: Vec<Frame>,
    candidates: Vec<u32>,
    trail: Vec<(u32, u64)>,
    scratch: Vec<(u64, u32)>,
    memo: Vec<u64>,
    pub nodes: u64,
    pub hits: u64,
    next: u64,
}

fn mix(mut x: u64) -> u64 {
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x = x.wrapping_mul(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x
}

impl<'a> Search<'a> {
    pub fn new(s: &'a Sections, order: Vec<usize>) -> Self {
        let n = s.len();
        let pick = |v: &Vec<usize>| order.iter().map(|&b| v[b]).collect::<Vec<_>>();
        let pick64 = |v: &Vec<u64>| order.iter().map(|&b| v[b]).collect::<Vec<_>>();
        let (lower, upper) = (pick(&s.lower), pick(&s.upper));
        let (size, alignment) = (pick64(&s.size), pick64(&s.alignment));
        let mut neighbours = vec![];
        let mut neighbour_start = vec![0];
        for a in 0..n {
            for b in 0..n {
                if a != b && lower[a] < upper[b] && lower[b] < upper[a] {
                    neighbours.push(b as u32);
                }
            }
            neighbour_start.push(neighbours.len());
        }
        let sections = s.total.len();
        let mut crossing = vec![0; sections + 1];
        for a in 0..n {
            for c in &mut crossing[lower[a] + 1..upper[a]] {
                *c += 1;
            }
        }
        Search {
            s, order, lower, upper, size, alignment, neighbours, neighbour_start,
            min_offset: vec![0; n],
            placed: vec![false; n],
            crossing,
            height: vec![0; sections],
            lists: vec![], components: vec![], frames: vec![], candidates: vec![], trail: vec![], scratch: vec![],
            memo: vec![0; 1 << 20],
            nodes: 0, hits: 0, next: u64::MAX,
        }
    }

    pub fn run(&mut self, capacity: u64, limit: u64) -> Outcome {
        let n = self.s.len();
        self.nodes = 0;
        self.next = u64::MAX;
        self.min_offset.fill(0);
        while let Some(f) = self.frames.pop() { self.unplace(f.placed); }
        self.lists.clear();
        self.components.clear();
        self.candidates.clear();
        self.trail.clear();
        self.memo.fill(0);
        self.scratch = (0..n as u32).map(|b| (0, b)).collect();
        let mut pending = self.split(NONE, 0, self.s.total.len(), NONE);
        loop {
            // open the first pending component
            if pending == NONE {
                let mut offsets = vec![0; n];
                for (i, &b) in self.order.iter().enumerate() { offsets[b] = self.min_offset[i]; }
                return Outcome::Found(offsets);
            }
            self.open(pending);
            // advance
            loop {
                let top = self.frames.len() - 1;
                let f = &mut self.frames[top];
                if f.candidates.0 == f.candidates.1 {
                    let (parent, hash) = (f.parent, f.hash.0);
                    let at = (hash >> 44) as usize;
                    self.memo[at] = hash;
                    if parent == NONE { return Outcome::Infeasible { next: self.next }; }
                    self.back_to(parent);
                    continue;
                }
                if self.nodes == limit { return Outcome::Spent; }
                self.nodes += 1;
                let c = self.candidates[f.candidates.0] as usize;
                f.candidates.0 += 1;
                if let Some(p) = self.try_place(top, c, capacity) {
                    pending = p;
                    break;
                }
                self.undo(top);
            }
        }
    }

    fn unplace(&mut self, b: usize) {
        if b == NONE { return; }
        self.placed[b] = false;
        for c in &mut self.crossing[self.lower[b] + 1..self.upper[b]] { *c += 1; }
    }

    fn undo(&mut self, frame: usize) {
        let f = &mut self.frames[frame];
        let (b, trail, lists, components) = (f.placed, f.trail, f.lists, f.components);
        f.placed = NONE;
        self.unplace(b);
        while self.trail.len() > trail {
            let (b, m) = self.trail.pop().unwrap();
            self.min_offset[b as usize] = m;
        }
        self.lists.truncate(lists);
        self.components.truncate(components);
    }

    fn back_to(&mut self, parent: usize) {
        while self.frames.len() > parent + 1 {
            let f = self.frames.pop().unwrap();
            self.unplace(f.placed);
        }
        let c = self.frames[parent].candidates.1;
        self.candidates.truncate(c);
        self.undo(parent);
    }

    fn try_place(&mut self, frame: usize, b: usize, capacity: u64) -> Option<usize> {
        let f = &self.frames[frame];
        let (list, first, last, rest) = (f.list, f.first, f.last, f.rest);
        self.frames[frame].placed = b;
        self.placed[b] = true;
        let offset = self.min_offset[b];
        let top = offset + self.size[b];
        let mut split = false;
        for c in &mut self.crossing[self.lower[b] + 1..self.upper[b]] { *c -= 1; split |= *c == 0; }
        let _ = split;
        for i in self.neighbour_start[b]..self.neighbour_start[b + 1] {
            let other = self.neighbours[i] as usize;
            if !self.placed[other] && self.min_offset[other] < top {
                self.trail.push((other as u32, self.min_offset[other]));
                self.min_offset[other] = top.next_multiple_of(self.alignment[other]);
            }
        }
        // remaining, sorted
        self.scratch.clear();
        for i in list.0..list.1 {
            let other = self.lists[i];
            if other as usize != b {
                self.scratch.push((self.min_offset[other as usize], other));
            }
        }
        self.scratch.sort_unstable();
        // bound
        let key = (offset, b as u32);
        self.height[first..last].fill(0);
        let mut raised: Vec<(u64, u32)> = Vec::new();
        let mut i = 0;
        // skipped buffers must be raised by a later one
        while i < self.scratch.len() && self.scratch[i] < key {
            let (mo, u) = self.scratch[i];
            let u = u as usize;
            let end = mo + self.size[u];
            let mut raise = u64::MAX;
            for &(vo, v) in &self.scratch {
                if vo >= end { break; }
                let v = v as usize;
                if v != u && self.lower[u] < self.upper[v] && self.lower[v] < self.upper[u] {
                    let o = vo.max(offset);
                    if o < end { raise = raise.min(o + self.size[v]); }
                }
            }
            if raise == u64::MAX { return None; }
            raised.push((raise, u as u32));
            i += 1;
        }
        raised.sort_unstable();
        let mut r = 0;
        while i < self.scratch.len() || r < raised.len() {
            let (mo, u) = if r == raised.len() || (i < self.scratch.len() && self.scratch[i] < raised[r]) {
                i += 1; self.scratch[i - 1]
            } else { r += 1; raised[r - 1] };
            let u = u as usize;
            let size = self.size[u];
            for h in &mut self.height[self.lower[u]..self.upper[u]] {
                *h = (*h).max(mo) + size;
                if *h > capacity {
                    self.next = self.next.min(*h);
                    return None;
                }
            }
        }
        Some(self.split(frame, first, last, rest))
    }

    // splits scratch into components
    fn split(&mut self, parent: usize, first: usize, last: usize, rest: usize) -> usize {
        let mut pending = rest;
        let mut from = first;
        for s in first + 1..=last {
            if s < last && self.crossing[s] > 0 { continue; }
            let start = self.lists.len();
            for &(_, b) in &self.scratch {
                if self.lower[b as usize] >= from && self.upper[b as usize] <= s { self.lists.push(b); }
            }
            if self.lists.len() > start {
                self.components.push(Component { parent, first: from, last: s, list: (start, self.lists.len()), next: pending });
                pending = self.components.len() - 1;
            }
            from = s;
        }
        pending
    }

    fn open(&mut self, component: usize) {
        let c = &self.components[component];
        let (parent, first, last, list, rest) = (c.parent, c.first, c.last, c.list, c.next);
        let start = self.candidates.len();
        let key = if parent == NONE { (0, 0) } else { let b = self.frames[parent].placed; (self.min_offset[b], b as u32) };
        let mut min_height = u64::MAX;
        let mut hash = mix(first as u64 + 77);
        let mut skipped = false;
        for i in list.0..list.1 {
            let b = self.lists[i] as usize;
            let mo = self.min_offset[b];
            min_height = min_height.min(mo + self.size[b]);
            hash = hash.wrapping_add(mix(mo.wrapping_mul(0x9e3779b97f4a7c15) ^ mix(b as u64 + 1)));
            skipped |= (mo, b as u32) < key;
        }
        if skipped { hash = mix(hash ^ mix(key.0) ^ mix((key.1 as u64) << 20)); }
        hash = mix(hash) | 1;
        if self.memo[(hash >> 44) as usize] == hash {
            self.hits += 1;
        } else {
            for i in list.0..list.1 {
                let b = self.lists[i] as usize;
                let mo = self.min_offset[b];
                if mo >= min_height { break; }
                if (mo, b as u32) >= key { self.candidates.push(b as u32); }
            }
        }
        self.frames.push(Frame {
            component, parent, first, last, list, candidates: (start, self.candidates.len()), rest, placed: NONE,
            trail: self.trail.len(), lists: self.lists.len(), components: self.components.len(), hash: (hash, skipped),
        });
    }
}

pub(super) fn orders(s: &Sections) -> Vec<Vec<usize>> {
    let n = s.len();
    let total = |b: usize| s.total[s.lower[b]..s.upper[b]].iter().copied().max().unwrap();
    let width = |b: usize| s.upper[b] - s.lower[b];
    let area = |b: usize| width(b) as u64 * s.size[b];
    let mut result = vec![];
    for k in 0..6 {
        let mut o: Vec<usize> = (0..n).collect();
        o.sort_by_key(|&b| {
            let (t, w, a) = (total(b), width(b) as u64, area(b));
            let z = s.size[b];
            std::cmp::Reverse(match k { 0 => (w, a, t), 1 => (t, a, w), 2 => (t, w, a), 3 => (a, t, w), 4 => (z, w, t), _ => (w, t, a) })
        });
        result.push(o);
    }
    result
}

/// experiment
#[allow(missing_docs)]
pub fn experiment(problem: &super::Problem, limit: u64) {
    let s = Sections::new(problem).unwrap();
    println!("n {} sections {} bound {} capacity {:?} tight {}", s.len(), s.total.len(), s.lower_bound(), problem.capacity, s.total.iter().filter(|&&t| t == s.lower_bound()).count());
    for (k, o) in orders(&s).into_iter().enumerate() {
        let start = std::time::Instant::now();
        let mut search = Search::new(&s, o);
        let out = search.run(problem.capacity.unwrap_or(s.lower_bound()), limit);
        let out = match out { Outcome::Found(_) => "found".to_string(), Outcome::Infeasible { next } => format!("infeasible {next}"), Outcome::Spent => "spent".into() };
        println!("  order {k}: {out} nodes {} hits {} {:.3}s", search.nodes, search.hits, start.elapsed().as_secs_f64());
    }
}
