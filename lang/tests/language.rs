//! Every form of the language, and the graph that it makes.

use std::str::FromStr;

use plimsoll_lang::Declaration;
use plimsoll_plan::arguments::Value;
use plimsoll_plan::graph::{Graph, ParameterRole};
use plimsoll_plan::layers::Layer;
use plimsoll_plan::losses::Loss;
use plimsoll_plan::optimizers::Optimizer;
use plimsoll_plan::units::Units;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

fn declaration(source: &str) -> Declaration {
    let (declaration, errors) = plimsoll_lang::read(TokenStream::from_str(source).expect("tokens"));
    if let Some(errors) = errors {
        panic!("{source}\n{:#?}", errors.into_iter().map(|e| e.to_string()).collect::<Vec<_>>());
    }
    declaration.expect("no error, hence a declaration")
}

fn graph(source: &str) -> Graph {
    declaration(source).graph.expect("no error, hence a graph")
}

/// The graph of members over an input of eight floats.
fn members(body: &str) -> Graph {
    graph(&format!("struct Net(x: f32[8]) {{ {body} }}"))
}

/// Path and kind of each layer applied: `0 linear, 1 relu`.
fn layers(graph: &Graph) -> String {
    let shown = graph.nodes.iter().map(|node| format!("{} {}", node.path, node.layer.rule().kind()));
    shown.collect::<Vec<_>>().join(", ")
}

/// Path and shape of each parameter: `0.weight [4, 8]`.
fn parameters(graph: &Graph) -> String {
    let shown = graph.parameters.iter().map(|parameter| format!("{} {}", parameter.path, parameter.shape));
    shown.collect::<Vec<_>>().join(", ")
}

fn output(graph: &Graph) -> String {
    graph.value_type(graph.output).to_string()
}

#[test]
fn members_run_in_order_and_without_a_name_are_named_by_position() {
    assert_eq!(layers(&members("linear(4), relu, fc: linear(2), softmax")), "0 linear, 1 relu, fc linear, 3 softmax");
    assert_eq!(layers(&members("const A = 4; linear(A), const B = 2; linear(B),")), "0 linear, 1 linear");
}

#[test]
fn lists_nest_and_their_elements_may_have_names() {
    let graph = members("a: [linear(4), b: [relu, linear(3, bias = false)]], [[linear(2)]]");
    assert_eq!(layers(&graph), "a.0 linear, a.b.0 relu, a.b.1 linear, 1.0.0 linear");
    assert_eq!(
        parameters(&graph),
        "a.0.weight [4, 8], a.0.bias [4], a.b.1.weight [3, 4], 1.0.0.weight [2, 3], 1.0.0.bias [2]"
    );
}

#[test]
fn repetition_makes_separate_copies() {
    assert_eq!(
        parameters(&members("[linear(8, bias = false); 2 + 1]")),
        "0.0.weight [8, 8], 0.1.weight [8, 8], 0.2.weight [8, 8]"
    );
    assert_eq!(layers(&members("[[linear(8), relu]; 2]")), "0.0.0 linear, 0.0.1 relu, 0.1.0 linear, 0.1.1 relu");
    assert_eq!(layers(&members("[linear(8); 0], relu")), "1 relu");
}

#[test]
fn splices_take_the_place_of_one_element() {
    assert_eq!(layers(&members("[relu, ..[tanh, silu], sigmoid]")), "0.0 relu, 0.1 tanh, 0.2 silu, 0.3 sigmoid");
    assert_eq!(layers(&members("[..[linear(8); 2], relu]")), "0.0 linear, 0.1 linear, 0.2 relu");
    assert_eq!(layers(&members("[..[[linear(8), relu]; 2]]")), "0.0.0 linear, 0.0.1 relu, 0.1.0 linear, 0.1.1 relu");
    assert_eq!(layers(&members("..[relu, tanh], silu")), "0 relu, 1 tanh, 2 silu");
    assert_eq!(
        layers(&members("[..if 1 < 2 { [relu, tanh] }, ..if 2 < 1 { [relu] }, silu]")),
        "0.0 relu, 0.1 tanh, 0.2 silu"
    );
    let graph = graph("struct Net(x: f32[8]) { [..Two(3), ..Two(4)] } block Two(n) { linear(n), relu }");
    assert_eq!(layers(&graph), "0.0 linear, 0.1 relu, 0.2 linear, 0.3 relu");
}

#[test]
fn conditions_choose_layers() {
    assert_eq!(layers(&members("const A = 3; a: if A == 3 { relu } else { tanh }, linear(2)")), "a relu, 1 linear");
    assert_eq!(layers(&members("a: if 3 < 2 { relu }, linear(2)")), "1 linear");
    assert_eq!(
        layers(&members("a: if false { relu } else if true && !false { [silu, relu] } else { tanh }")),
        "a.0 silu, a.1 relu"
    );
    // What is not taken is not looked at, as long as its names are right.
    assert_eq!(layers(&members("if true || 1 / 0 == 1 { relu } else { linear(0) }")), "0 relu");
}

#[test]
fn sizes_are_expressions_over_consts_from_anywhere() {
    let graph = graph(
        "struct Net(x: f32[N, 2 * N]) { linear(B.max(3) - 1), const B = min(A, 100) / 2 % 4; const A = 0x1_0; const N = 3; }",
    );
    assert_eq!(parameters(&graph), "0.weight [2, 6], 0.bias [2]");
    assert_eq!(output(&members("linear(2 + 3 * 4 - -1)")), "f32[15]");
    assert_eq!(output(&members("linear((2 + 3) * 4)")), "f32[20]");
    assert_eq!(output(&members("linear(17 - 3 - 4)")), "f32[10]");
}

#[test]
fn blocks_have_parameters_with_defaults_that_use_earlier_ones() {
    let source = |call: &str| {
        format!(
            "struct Net(x: f32[8]) {{ part: {call} }} block Part(a, b = 2 * a, c = a + b) {{ linear(b), linear(c) }}"
        )
    };
    let sizes = |call: &str| parameters(&graph(&source(call)));
    assert_eq!(sizes("Part(1)"), "part.0.weight [2, 8], part.0.bias [2], part.1.weight [3, 2], part.1.bias [3]");
    assert_eq!(sizes("Part(1, 5)"), "part.0.weight [5, 8], part.0.bias [5], part.1.weight [6, 5], part.1.bias [6]");
    assert_eq!(
        sizes("Part(c = 9, a = 1)"),
        "part.0.weight [2, 8], part.0.bias [2], part.1.weight [9, 2], part.1.bias [9]"
    );
    let nested = graph(
        "block Inner(n) { linear(n) } struct Net(x: f32[8]) { Outer } block Outer { a: Inner(3), b: [Inner(4); 2], }",
    );
    assert_eq!(layers(&nested), "0.a.0 linear, 0.b.0.0 linear, 0.b.1.0 linear");
}

#[test]
fn forward_calls_members_and_layers_in_either_form() {
    let graph = members("fc: linear(4), act: [relu, tanh], fn forward(x) { act(x.fc()).sigmoid() }");
    assert_eq!(layers(&graph), "fc linear, act.0 relu, act.1 tanh, sigmoid sigmoid");
    let graph =
        members("fc: linear(4), fn forward(x) { let y = fc(x); let y = relu(y); y.dropout(0.1).softmax(axis = -1) }");
    assert_eq!(layers(&graph), "fc linear, relu relu, dropout dropout, softmax softmax");
    let graph = members("fc: linear(4), fn forward(image) { concat(image, image.fc(), image, axis = 0) }");
    assert_eq!(output(&graph), "f32[20]");
    assert_eq!(output(&members("fc: linear(4), fn forward(x) { x.concat(fc(x)) }")), "f32[12]");
}

#[test]
fn a_block_may_take_several_values() {
    let graph = graph(
        "struct Net(x: f32[8]) { a: linear(4), merge: Merge(3), fn forward(x) { merge(x, x.a()) + x.merge(a(x)) } }
         block Merge(n) { fc: linear(n), fn forward(x, skip) { fc(concat(x, skip, axis = 0)) } }",
    );
    assert_eq!(
        layers(&graph),
        "a linear, merge.concat concat, merge.fc linear, a linear, merge.concat concat, merge.fc linear, add add"
    );
    assert_eq!(parameters(&graph), "a.weight [4, 8], a.bias [4], merge.fc.weight [3, 12], merge.fc.bias [3]");
}

#[test]
fn several_inputs_of_several_types() {
    let graph = graph(
        "struct Net(image: u8[2, 2], extra: f32[4], again: f32[4]) {
            scale: normalize(mean = [0.5], std = [0.5]),
            fn forward(picture, extra, again) { picture.scale().flatten() + extra * again }
        }",
    );
    assert_eq!(
        graph.inputs.iter().map(|i| format!("{}: {}", i.name, i.value_type)).collect::<Vec<_>>(),
        ["image: u8[2, 2]", "extra: f32[4]", "again: f32[4]"]
    );
    assert_eq!(layers(&graph), "scale normalize, flatten flatten, mul mul, add add");
}

#[test]
fn operators_work_on_values_and_numbers() {
    let affine = |expr: &str| {
        let graph = members(&format!("const HALF = 0.5; fn forward(x) {{ {expr} }}"));
        let steps = graph.nodes.iter().map(|node| match &node.layer {
            Layer::Affine(affine) => format!("{} x + {}", affine.mul, affine.add),
            other => other.rule().kind().to_string(),
        });
        steps.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(affine("x * 2"), "2 x + 0");
    assert_eq!(affine("HALF * x"), "0.5 x + 0");
    assert_eq!(affine("1 - x"), "-1 x + 1");
    assert_eq!(affine("x - 1"), "1 x + -1");
    assert_eq!(affine("x / 4"), "0.25 x + 0");
    assert_eq!(affine("-x"), "-1 x + 0");
    assert_eq!(affine("2 + 3 * x"), "3 x + 0, 1 x + 2");
    assert_eq!(affine("x + x * x"), "mul, add");
    assert_eq!(affine("(x + x) * x - x"), "add, mul, sub");
    assert_eq!(affine("{ x }".trim_matches(['{', '}', ' '])), "");
    assert_eq!(affine("x * (1 + 2 * 3)"), "7 x + 0");
    assert_eq!(affine("(x) + max(1, 2)"), "1 x + 2");
    assert_eq!(affine("x.relu() + x.tanh().relu()"), "relu, tanh, relu, add");
}

#[test]
fn lets_may_bind_numbers() {
    let graph = members("const N = 4; fn forward(x) { let n = N / 2; let y = x * n; y.dropout(min(n, 1)) }");
    assert_eq!(layers(&graph), "affine affine, dropout dropout");
}

#[test]
fn parameters_are_values_by_their_names() {
    let graph = members("gain: parameter([8], init = 1e-6), fn forward(x) { x * gain + gain }");
    assert_eq!(parameters(&graph), "gain [8]");
}

#[test]
fn a_member_called_twice_shares_its_parameters() {
    let graph = members("fc: linear(8), fn forward(x) { x.fc().fc().fc() }");
    assert_eq!(parameters(&graph), "fc.weight [8, 8], fc.bias [8]");
    assert_eq!(layers(&graph), "fc linear, fc linear, fc linear");
}

#[test]
fn tied_uses_the_weight_of_another_member() {
    let graph = members("embed: linear(4), back: linear(8), head: tied(embed)");
    assert_eq!(parameters(&graph), "embed.weight [4, 8], embed.bias [4], back.weight [8, 4], back.bias [8]");
    assert_eq!(output(&graph), "f32[4]");
    let graph = members("encoder: [embed: linear(8)], head: tied(encoder.embed)");
    assert_eq!(parameters(&graph), "encoder.embed.weight [8, 8], encoder.embed.bias [8]");
    let source = "struct Net(x: f32[8]) { [Pair; 2] } block Pair { a: linear(8, bias = false), b: tied(a) }";
    assert_eq!(parameters(&self::graph(source)), "0.0.a.weight [8, 8], 0.1.a.weight [8, 8]");
}

#[test]
fn freeze_holds_for_all_inside() {
    let graph = members("#[freeze] a: [linear(4), batchnorm1d, [linear(3)]], #[freeze] linear(3), b: linear(2)");
    let roles: Vec<String> = graph.parameters.iter().map(|p| format!("{} {:?}", p.path, p.role)).collect();
    assert_eq!(roles.iter().filter(|r| r.ends_with("Trained")).count(), 2);
    assert!(roles.contains(&"a.2.0.weight Frozen".to_string()), "{roles:?}");
    assert!(graph.parameters.iter().any(|p| p.path == "a.1.running_mean" && p.role == ParameterRole::Buffer));
    let graph = self::graph(
        "struct Net(x: f32[8]) { #[freeze] A, linear(2) } block A { a: linear(2), fn forward(x) { a(x) } }",
    );
    assert_eq!(graph.trainable_parameters(), 6);
}

#[test]
fn training_is_declared_with_all_its_settings() {
    let graph = graph(
        "#[train(batch = 2 * HALF, optimizer = adam(lr = 1e-4, betas = (0.8, 0.9), weight_decay = 1), \
         loss = cross_entropy(label_smoothing = 0.1), accumulate = 4, clip_grad_norm = 1.0)]
         #[infer(batch = 7)]
         struct Net(x: f32[8]) { const HALF = 16; linear(2) }",
    );
    let training = graph.training.as_ref().expect("trained");
    assert_eq!((training.batch, training.accumulate, training.clip_grad_norm), (32, 4, Some(1.0)));
    assert_eq!(training.optimizer, Optimizer::Adam { lr: 1e-4, betas: [0.8, 0.9], eps: 1e-8, weight_decay: 1.0 });
    assert_eq!(training.loss, Loss::CrossEntropy { label_smoothing: 0.1, ignore_index: -100 });
    assert_eq!(graph.inference_batch, Some(7));
    let bare = members("linear(2)");
    assert_eq!((bare.training, bare.inference_batch), (None, None));
}

#[test]
fn budgets_are_exact_in_either_family_of_units() {
    let budget = |text: &str| {
        graph(&format!(
            "#[train(batch = 1, optimizer = sgd, loss = mse)] #[budget({text})] struct Net(x: f32[8]) {{ linear(2) }}"
        ))
        .budget
    };
    let whole = budget("8 MB");
    assert_eq!(
        (whole.train, whole.infer, whole.reserve, whole.units),
        (Some(8_000_000), Some(8_000_000), 0, Units::Decimal)
    );
    let both = budget("train = 2 GiB, infer = 300 MB, reserve = 1.5 KB,");
    assert_eq!(
        (both.train, both.infer, both.reserve, both.units),
        (Some(2 << 30), Some(300_000_000), 1500, Units::Binary)
    );
    assert_eq!(budget("12GB, reserve = 600MB").train, Some(12_000_000_000));
    assert_eq!(budget("0.1 GB").train, Some(100_000_000));
    assert_eq!(budget("1_000.25 KiB").train, Some(1_024_256));
    assert_eq!(budget("infer = 5 KB").train, None);
}

#[test]
fn words_tuples_and_lists_are_arguments() {
    assert_eq!(layers(&members("gelu(approximate = tanh), gelu(none)")), "0 gelu, 1 gelu");
    let graph =
        graph("struct Net(x: f32[3, 9, 9]) { conv2d(2, kernel = (3, 5), padding = (0, 1)), permute([1, 2, 0]) }");
    assert_eq!(output(&graph), "f32[7, 7, 2]");
}

#[test]
fn what_is_rusts_own_is_passed_on() {
    let declaration = declaration(
        "/// A network.\n/// Of two lines.\n#[derive(Debug)] #[allow(dead_code)] pub(in crate::models) struct Net(x: f32[8]) {
            /// Classes.\n const CLASSES = 2; const RATE = 0.5; const AXES = [0, 1];
            /// The head.
            linear(CLASSES)
        }",
    );
    assert_eq!(declaration.name.to_string(), "Net");
    assert_eq!(declaration.docs, [" A network.", " Of two lines."]);
    assert_eq!(declaration.attributes.len(), 4);
    assert_eq!(declaration.visibility.to_string().replace(' ', ""), "pub(incrate::models)");
    let values: Vec<Option<Value>> = declaration.consts.iter().map(|c| c.value.clone()).collect();
    let list = Value::List(vec![Value::Int(0), Value::Int(1)]);
    assert_eq!(values, [Some(Value::Int(2)), Some(Value::Float(0.5)), Some(list)]);
    assert_eq!(declaration.consts[0].docs, [" Classes."]);
}

#[test]
fn name_and_consts_are_known_in_spite_of_mistakes() {
    let source = "pub struct Net(x: f32[8]) { const A = 3; const B = 1 / 0; lineer(A), linear(B) }";
    let (declaration, errors) = plimsoll_lang::read(TokenStream::from_str(source).expect("tokens"));
    let declaration = declaration.expect("the name could be read");
    assert_eq!(errors.expect("two mistakes").into_iter().count(), 2);
    assert_eq!((declaration.name.to_string(), declaration.visibility.to_string()), ("Net".into(), "pub".into()));
    assert_eq!(declaration.consts[0].value, Some(Value::Int(3)));
    assert_eq!(declaration.consts[1].value, None);
    assert!(declaration.graph.is_none());
}

#[test]
fn what_macro_rules_passes_on_binds_as_one() {
    // `$n` of `macro_rules!` arrives in a group without visible brackets: `2 * $n` with `$n` = `1 + 2` is 6.
    fn interpolate(tokens: TokenStream) -> TokenStream {
        let token = |token| match token {
            TokenTree::Ident(ident) if ident == "N" => {
                TokenTree::Group(Group::new(Delimiter::None, TokenStream::from_str("1 + 2").expect("tokens")))
            }
            TokenTree::Group(group) => TokenTree::Group(Group::new(group.delimiter(), interpolate(group.stream()))),
            other => other,
        };
        tokens.into_iter().map(token).collect()
    }
    let tokens =
        TokenStream::from_str("struct Net(x: f32[8]) { linear(2 * N), linear(bias = false, out_features = N) }");
    let (declaration, errors) = plimsoll_lang::read(interpolate(tokens.expect("tokens")));
    assert!(errors.is_none());
    let graph = declaration.and_then(|d| d.graph).expect("a graph");
    assert_eq!(parameters(&graph), "0.weight [6, 8], 0.bias [6], 1.weight [3, 6]");
}
