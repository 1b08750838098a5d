// A member called twice, and a linear layer that uses another's weight.

use plimsoll::network;

network! {
    #[train(batch = 4, optimizer = adam, loss = cross_entropy)]
    struct Net(words: f32[6, 32]) {
        embed: linear(32, bias = false),
        body: [norm: layernorm, fc: linear(32)],
        out: tied(embed),
        inner: tied(body.fc),

        fn forward(x) {
            let x = x.embed().body().relu().body();
            x.inner().out()
        }
    }
}

fn main() {
    assert_eq!(Net::PARAMETERS, 32 * 32 + 2 * 32 + 32 * 32 + 32);
    assert_eq!(Net::OPTIMIZER_BYTES, 2 * 4 * Net::PARAMETERS);
}
