// Every optimizer and every loss; what an optimizer keeps for a parameter is what PyTorch's does.

use plimsoll::network;

macro_rules! nets {
    ($($name:ident: $optimizer:tt $given:tt, $loss:tt $more:tt, $states:literal, $target:literal;)*) => {
        $(nets!(@one $name $optimizer $given $loss $more);)*

        fn main() {
            $(
                assert_eq!($name::OPTIMIZER_BYTES, $states * $name::PARAMETER_BYTES, stringify!($name));
                assert_eq!($name::INPUT_BYTES, 4 * (8 * 4 + $target), stringify!($name));
            )*
        }
    };
    (@one $name:ident $optimizer:tt $given:tt $loss:tt $more:tt) => {
        network! {
            #[train(batch = 4, optimizer = $optimizer $given, loss = $loss $more)]
            struct $name(x: f32[8]) { linear(3) }
        }
    };
}

nets! {
    Sgd: sgd (lr = 0.1), cross_entropy (label_smoothing = 0.1, ignore_index = -1), 0, 4;
    Momentum: sgd (lr = 0.1, momentum = 0.9, dampening = 0.0, weight_decay = 1e-4), mse (), 1, 12;
    Adam: adam (lr = 1e-3, betas = (0.9, 0.999), eps = 1e-8), l1 (), 2, 12;
    AdamW: adamw (weight_decay = 0.01), smooth_l1 (beta = 0.5), 2, 12;
    RmsProp: rmsprop (alpha = 0.9), bce_with_logits (), 1, 12;
    Centered: rmsprop (momentum = 0.9, centered = true), mse (), 3, 12;
    Adagrad: adagrad (lr_decay = 0.1, initial_accumulator_value = 0.1), mse (), 1, 12;
    Lion: lion (lr = 1e-4), mse (), 1, 12;
}
