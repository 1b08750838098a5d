// As visible as any struct, in modules and in functions, several in one module, with derives and documentation.

#![deny(missing_docs, warnings)]
//! A crate that demands documentation.

/// Networks.
pub mod networks {
    use plimsoll::network;

    network! {
        /// Seen by everyone.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Public(x: f32[8]) {
            /// Documented.
            pub_size: linear(2),
        }
    }

    network! {
        /// Seen in this crate.
        pub(crate) struct Crate(x: f32[8]) { linear(3) }
    }

    network! {
        struct Private(x: f32[8]) { linear(4) }
    }

    network! {
        /// Seen one level up.
        pub(in super) struct Super(x: f32[8]) { linear(5) }
    }

    /// What the private one has.
    pub const PRIVATE: u64 = Private::PARAMETERS;
}

fn main() {
    plimsoll::network! {
        struct Local(x: f32[8]) { linear(6) }
    }
    let public = networks::Public;
    assert_eq!(format!("{public:?}"), "Public");
    assert_eq!(networks::Public::PARAMETERS + networks::Crate::PARAMETERS, 18 + 27);
    assert_eq!((networks::PRIVATE, networks::Super::PARAMETERS, Local::PARAMETERS), (36, 45, 54));
}
