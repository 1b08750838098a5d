//! A deprecated network is deprecated where it is used, not where it is declared.
#![deny(warnings)]

plimsoll::network! {
    #[deprecated]
    #[budget(1 GB)]
    #[train(batch = 4, optimizer = sgd(lr = 0.1), loss = cross_entropy)]
    pub struct Old(x: f32[8]) { linear(4) }
}

plimsoll::network! {
    #[cfg_attr(all(), deprecated)]
    pub struct Older(x: f32[8]) { linear(4) }
}

fn main() {
    #[expect(deprecated)]
    let parameters = Old::PARAMETERS;
    assert_eq!(parameters, 36);
}
