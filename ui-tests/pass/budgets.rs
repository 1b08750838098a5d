// Every form of a budget, in both families of units.

use plimsoll::{Network, network};

network! {
    #[train(batch = 4, optimizer = sgd, loss = mse)]
    #[budget(8 MB)]
    struct Both(x: f32[8]) { linear(2) }
}

network! {
    #[train(batch = 4, optimizer = sgd, loss = mse)]
    #[budget(train = 1.5 MiB, infer = 512 KiB, reserve = 1 KiB)]
    struct Apart(x: f32[8]) { linear(2) }
}

network! {
    #[train(batch = 4, optimizer = sgd, loss = mse)]
    #[budget(train = 2GB,)]
    struct Train(x: f32[8]) { linear(2) }
}

network! {
    #[budget(infer = 4 KB)]
    struct Infer(x: f32[8]) { linear(2) }
}

network! {
    #[infer(batch = 3)]
    #[budget(1_000_000 B, reserve = 0.5 MB)]
    struct Bytes(x: f32[8]) { linear(2) }
}

network! {
    struct Without(x: f32[8]) { linear(2) }
}

fn main() {
    assert_eq!((Both::BUDGET_BYTES, Apart::BUDGET_BYTES), (8_000_000, 3 << 19));
    assert_eq!((Train::BUDGET_BYTES, Infer::BUDGET_BYTES, Bytes::BUDGET_BYTES), (2_000_000_000, 4000, 1_000_000));
    assert_eq!(Both::PEAK_BYTES + Both::HEADROOM_BYTES, 8_000_000);
    assert_eq!(Apart::PEAK_BYTES + Apart::HEADROOM_BYTES + 1024, 3 << 19);
    assert_eq!(<Without as Network>::BUDGET_BYTES, None);
    assert_eq!(<Infer as Network>::BUDGET_BYTES, Some(4000));
    assert!(Both::MAX_BATCH > 100_000 && Infer::MAX_BATCH > 1);
    let fits = Both::graph().batch(Both::MAX_BATCH as u64).plan().unwrap();
    assert!(fits.peak_bytes() <= Both::BUDGET_BYTES);
}
