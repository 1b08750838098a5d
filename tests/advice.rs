//! What a message says to write does build: each mistake, a part of its message, and the source after that advice.

/// The messages for a network of this attribute and body, none where it builds.
fn messages(attribute: &str, network: &str) -> Vec<String> {
    let source = match attribute {
        "" => format!("#[train(batch = 8, optimizer = adam, loss = cross_entropy)] struct Net{network}"),
        attribute => format!("{attribute} struct Net{network}"),
    };
    match plimsoll_lang::expand::graph(&source) {
        Ok(_) => Vec::new(),
        // A message goes on over lines that start with these.
        Err(all) => all.replace("\nhelp: ", " | ").replace("\nnote: ", " | ").lines().map(str::to_string).collect(),
    }
}

#[track_caller]
fn advice(wrong: [&str; 2], part: &str, right: [&str; 2]) {
    let found = messages(wrong[0], wrong[1]);
    assert!(found.len() == 1 && found[0].contains(part), "{wrong:?}: {part:?} is not in {found:#?}");
    let left = messages(right[0], right[1]);
    assert!(left.is_empty(), "{right:?}: {left:#?}");
}

/// Members over an image of 3 channels and 32 x 32 pixels.
#[track_caller]
fn image(wrong: &str, part: &str, right: &str) {
    let network = |members: &str| format!("(image: f32[3, 32, 32]) {{ {members}, flatten, linear(10) }}");
    advice(["", &network(wrong)], part, ["", &network(right)]);
}

/// Members over 12 numbers, with a `forward` if there is one.
#[track_caller]
fn vector(wrong: &str, part: &str, right: &str) {
    let network = |members: &str| format!("(x: f32[12]) {{ {members} }}");
    advice(["", &network(wrong)], part, ["", &network(right)]);
}

#[track_caller]
fn attribute(wrong: &str, part: &str, right: &str) {
    let network = "(x: f32[12]) { linear(2) }";
    advice([wrong, network], part, [right, network]);
}

#[test]
fn about_shapes() {
    image("conv2d(4, kernel = 35)", "`padding` of at least 2", "conv2d(4, kernel = 35, padding = 2)");
    image("maxpool2d(63)", "`padding` of at least 16", "maxpool2d(63, padding = 16)");
    image(
        "conv2d(6, kernel = 3, groups = 4)",
        "`groups = 3` or `groups = 6` divides",
        "conv2d(6, kernel = 3, groups = 3)",
    );
    image("conv2d(32, kernel = 3, groups = 32)", "`groups = 1` divides", "conv2d(32, kernel = 3, groups = 1)");
    image("groupnorm(2)", "`groups = 1` or `groups = 3` divides", "groupnorm(groups = 3)");
    image("permute([0, 2, 3, 1])", "`permute([1, 2, 0])`", "permute([1, 2, 0])");
    image("reshape([1, 30, 32])", "`[1, -1, 32]`", "reshape([1, -1, 32])");
    image("flatten, linear(64), batchnorm2d", "use `batchnorm1d`", "flatten, linear(64), batchnorm1d");
    image("conv1d(4, kernel = 3)", "use `conv2d`", "conv2d(4, kernel = 3)");
    image("flatten(3)", "input sizes are inferred and never given", "flatten");
    image("conv2d(4, kernel = 3), batchnorm2d(4)", "input sizes are inferred", "conv2d(4, kernel = 3), batchnorm2d");
    image("flatten(start_axis = 9)", "leave it out", "flatten");
    let small = |members: &str| format!("(x: f32[28, 28]) {{ {members}, flatten, linear(10) }}");
    let right = small("reshape([1, 28, 28]), conv2d(4, kernel = 3)");
    advice(["", &small("conv2d(4, kernel = 3)")], "`reshape([1, 28, 28])`", ["", &right]);
    let bytes = |members: &str| format!("(x: u8[1, 28, 28]) {{ {members}, flatten, linear(10) }}");
    let right = bytes("normalize(mean = [0.0], std = [1.0]), conv2d(4, kernel = 3)");
    advice(["", &bytes("conv2d(4, kernel = 3)")], "`normalize(mean = [0.0], std = [1.0])` before it", ["", &right]);
    vector("linear(1), reshape([])", "`linear(10)`", "linear(1), linear(10)");
}

#[test]
fn about_sums() {
    let residual = |skip: &str, tail: &str| {
        format!(
            "(x: f32[16, 32, 32]) {{ conv: conv2d(32, kernel = 3, stride = 2, padding = 1), {skip} fc: linear(10),
             fn forward(x) {{ flatten(x.conv() + {tail}).fc() }} }}"
        )
    };
    let right = residual("skip: conv2d(32, kernel = 1, stride = 2),", "x.skip()");
    advice(["", &residual("", "x")], "`conv2d(32, kernel = 1, stride = 2)` makes [32, 16, 16]", ["", &right]);
    let unpadded = |arguments: &str| {
        format!("(x: f32[16, 32, 32]) {{ conv: conv2d(16, {arguments}), fn forward(x) {{ x + x.conv() }} }}")
    };
    advice(["", &unpadded("kernel = 3")], "`kernel = 3, padding = 1`", ["", &unpadded("kernel = 3, padding = 1")]);
    vector(
        "a: linear(8), fn forward(x) { x.a() * x }",
        "`linear(8)` makes [8] of [12]",
        "a: linear(8), b: linear(8), fn forward(x) { x.a() * x.b() }",
    );
    let branches = |axis: &str| {
        format!(
            "(x: f32[3, 8, 8]) {{ a: conv2d(4, kernel = 3), b: conv2d(8, kernel = 3),
             fn forward(x) {{ concat(x.a(), x.b(), axis = {axis}) }} }}"
        )
    };
    advice(["", &branches("1")], "`axis = 0` would do", ["", &branches("0")]);
}

#[test]
fn about_names_and_arguments() {
    image("conv2d(4, kernel_size = 3)", "did you mean `kernel`?", "conv2d(4, kernel = 3)");
    image(
        "conv2d(in_channels = 3, out_channels = 4, kernel = 3)",
        "leave it out",
        "conv2d(out_channels = 4, kernel = 3)",
    );
    image("conv2d(3, 4, kernel = 3)", "input sizes are inferred and never given", "conv2d(4, kernel = 3)");
    image("conv2d(3, 64, 3)", "input sizes are inferred and never given", "conv2d(64, 3)");
    image("conv2d(4, kernel = 3, padding = same)", "`padding = 1`", "conv2d(4, kernel = 3, padding = 1)");
    image("conv2d(4, kernel = 3, bias = False)", "write `false`", "conv2d(4, kernel = 3, bias = false)");
    image("nn.Conv2d(4, kernel = 3)", "write `conv2d(..)`", "conv2d(4, kernel = 3)");
    image("Sequential(relu, tanh)", "write a list: `[a, b, c]`", "[relu, tanh]");
    image("swish", "write `silu`", "silu");
    image("elu", "use `gelu` or `silu`", "gelu");
    vector("linear(WIDTH)", "declare `const WIDTH = ..;`", "const WIDTH = 4; linear(WIDTH)");
    vector("linear(2 ** 3)", "`2 * 2 * 2`", "linear(2 * 2 * 2)");
    vector("[linear(8), relu; 2]", "`[[a, b]; n]`", "[[linear(8), relu]; 2]");
    vector(
        "reshape([3, 4]), maxpool1d(2), flatten, linear(2)",
        "`reshape([channels, 1, length])` and `maxpool2d((1, 2))`",
        "reshape([3, 1, 4]), maxpool2d((1, 2)), flatten, linear(2)",
    );
}

#[test]
fn about_forward() {
    let forward = |body: &str| format!("fc: linear(12), fn forward(x) {{ {body} }}");
    let pairs = [
        ("let y = x.fc(); y += x; y", "`let y = y + ..;`", "let y = x.fc(); let y = y + x; y"),
        ("x = x.fc(); x", "write `let x = ..;`", "let x = x.fc(); x"),
        ("x.fc();", "remove the `;`", "x.fc()"),
        ("return x.fc();", "leave `return` and `;` out", "x.fc()"),
        ("F.relu(x).fc()", "write `relu(x)`", "relu(x).fc()"),
        ("self.fc(x)", "`fc1(x)`", "fc(x)"),
        ("fc", "apply it: `x.fc()`", "x.fc()"),
        ("x.fc", "write `x.fc()`", "x.fc()"),
        ("(x.fc(), x)", "`concat(a, b)`", "concat(x.fc(), x)"),
    ];
    for (wrong, part, right) in pairs {
        vector(&forward(wrong), part, &forward(right));
    }
    vector("fc: linear(4), fn forward(self, x) { x.fc() }", "leave it out", "fc: linear(4), fn forward(x) { x.fc() }");
}

#[test]
fn about_attributes() {
    let train = |rest: &str| format!("#[train(batch = 8, {rest})]");
    let pairs = [
        ("optimizer = adam", "add `loss = cross_entropy`", "optimizer = adam, loss = cross_entropy"),
        (
            "optimizer = adam, lr = 0.1, loss = mse",
            "`optimizer = adam(lr = ..)`",
            "optimizer = adam(lr = 0.1), loss = mse",
        ),
        ("optimizer = sgd, loss = MSELoss", "did you mean `mse`?", "optimizer = sgd, loss = mse"),
        ("optimizer = sgd, loss = NLLLoss", "write `cross_entropy`", "optimizer = sgd, loss = cross_entropy"),
    ];
    for (wrong, part, right) in pairs {
        attribute(&train(wrong), part, &train(right));
    }
    attribute("#[budget(12 gb)]", "did you mean `GB`?", "#[budget(12 GB)]");
    attribute("#[budget(12 G)]", "did you mean `GB`?", "#[budget(12 GB)]");
    attribute("#[budget(12 Gi)]", "did you mean `GiB`?", "#[budget(12 GiB)]");
    attribute("#[budget(\"12 GB\")]", "`12 GB`", "#[budget(12 GB)]");
    attribute("#[budget(inference = 12 GB)]", "did you mean `infer`?", "#[budget(infer = 12 GB)]");
    attribute("#[budget(train = 12 GB)]", "or write `infer = ..`", "#[budget(infer = 12 GB)]");
    attribute("#[precision(bf16)]", "leave it out", "");
    let frozen = "(x: f32[12]) { #[freeze] linear(2) }";
    advice(["", frozen], "write `#[infer(batch = 8)]` instead", ["#[infer(batch = 8)]", frozen]);
    advice(["", frozen], "take `#[freeze]` off", ["", "(x: f32[12]) { linear(2) }"]);
}
