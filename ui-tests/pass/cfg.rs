//! What `cfg` takes away is gone as a whole.
#![deny(warnings)]

plimsoll::network! {
    #[cfg(any())]
    #[budget(1 GB)]
    #[train(batch = 4, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    pub struct Gone(x: f32[8]) { linear(4) }
}

plimsoll::network! {
    #[cfg_attr(all(), derive(Debug), cfg(any()))]
    pub struct GoneToo(x: f32[8]) { linear(4) }
}

plimsoll::network! {
    #[cfg(all())]
    #[cfg_attr(all(), derive(Debug))]
    pub struct There(x: f32[8]) { linear(4) }
}

/// So that both names are free.
type Gone = u8;
type GoneToo = Gone;

fn main() {
    let none: GoneToo = 0;
    assert_eq!(format!("{There:?} {none}"), "There 0");
}
