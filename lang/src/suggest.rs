//! "Did you mean": the known name that a wrong one was probably meant to be.

use crate::limits;

/// Names that people bring along from elsewhere, and what is said here.
const ELSEWHERE: &[(&str, &str)] = &[
    // Layers.
    ("dense", "write `linear`"),
    ("fc", "write `linear`"),
    ("conv", "write `conv2d` or `conv1d`"),
    ("batchnorm", "write `batchnorm2d` or `batchnorm1d`"),
    ("bn", "write `batchnorm2d` or `batchnorm1d`"),
    ("maxpool", "write `maxpool2d`"),
    ("avgpool", "write `avgpool2d` or `adaptive_avgpool2d`"),
    ("globalavgpool", "write `adaptive_avgpool2d(1)`"),
    ("swish", "write `silu`"),
    ("view", "write `reshape` or `flatten`"),
    ("unflatten", "write `reshape`"),
    ("transpose", "write `permute`"),
    ("cat", "write `concat`"),
    ("add", "write `a + b` in `forward`"),
    ("mul", "write `a * b` in `forward`"),
    ("sub", "write `a - b` in `forward`"),
    ("sequential", "write a list: `[a, b, c]`"),
    ("modulelist", "write a list `[a, b, c]` or a repetition `[a; n]`"),
    ("residual", "declare a `block` whose `forward` ends in `y + x`"),
    ("logsoftmax", "leave it out: the loss `cross_entropy` includes it"),
    // Losses.
    ("crossentropyloss", "write `cross_entropy`"),
    ("nllloss", "write `cross_entropy`, which takes logits: leave the softmax out"),
    ("mae", "write `l1`"),
    ("huber", "write `smooth_l1`"),
    ("bce", "write `bce_with_logits`, and leave the sigmoid out"),
    ("bceloss", "write `bce_with_logits`, and leave the sigmoid out"),
    ("binarycrossentropy", "write `bce_with_logits`, and leave the sigmoid out"),
    // Optimizers.
    ("momentum", "write `sgd(lr = .., momentum = ..)`"),
];

/// Layers that this version does not have, and what to do without them.
const NOT_YET: &[(&str, &str)] = &[
    ("lstm", "use convolutions over the sequence: `conv1d`"),
    ("gru", "use convolutions over the sequence: `conv1d`"),
    ("rnn", "use convolutions over the sequence: `conv1d`"),
    ("embedding", "give the network the embedded values as an `f32` input"),
    ("attention", "mix positions with `permute` and `linear`, or with `conv1d`"),
    ("multiheadattention", "mix positions with `permute` and `linear`, or with `conv1d`"),
    ("scaleddotproductattention", "mix positions with `permute` and `linear`, or with `conv1d`"),
    ("transformer", "mix positions with `permute` and `linear`, or with `conv1d`"),
    ("transformerencoderlayer", "mix positions with `permute` and `linear`, or with `conv1d`"),
    ("transformerencoder", "mix positions with `permute` and `linear`, or with `conv1d`"),
    ("rmsnorm", "use `layernorm`"),
    ("instancenorm2d", "use `groupnorm` with as many groups as channels"),
    ("conv3d", "use `conv2d` on slices"),
    ("maxpool1d", "use `reshape([channels, 1, length])` and `maxpool2d((1, 2))`"),
    ("avgpool1d", "use `reshape([channels, 1, length])` and `avgpool2d((1, 2))`"),
    ("elu", "use `gelu` or `silu`"),
    ("selu", "use `gelu` or `silu`"),
    ("mish", "use `silu`"),
    ("softplus", "use `silu`"),
    ("hardswish", "use `silu`"),
    ("hardsigmoid", "use `sigmoid`"),
    ("prelu", "use `leaky_relu`"),
];

/// What Python or PyTorch writes where a number or truth value stands here.
const WORDS: &[(&str, &str)] = &[
    ("True", "write `true`"),
    ("False", "write `false`"),
    ("None", "leave the argument out"),
    ("same", "write the number: `padding = 1` keeps the size with `kernel = 3`"),
    ("valid", "leave `padding` out: without it there is none"),
];

/// What to write instead of a word of Python's.
pub fn word(name: &str) -> Option<&'static str> {
    WORDS.iter().find(|(word, _)| *word == name).map(|(_, remedy)| *remedy)
}

/// What to do without a layer that this version does not have.
pub fn not_yet(name: &str) -> Option<&'static str> {
    let bare = bare(name);
    NOT_YET.iter().find(|(known, _)| *known == bare).map(|(_, remedy)| *remedy)
}

/// What to do about the unknown `name`: the name that was probably meant, else `otherwise`.
pub fn help<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, otherwise: &str) -> String {
    let elsewhere = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == bare(name));
    match (nearest(name, known), elsewhere) {
        // Spelled in another way it is the same; a word of another's would only resemble it.
        (Some(known), other) if other.is_none() || same(name, known) => format!("did you mean `{known}`?"),
        (_, Some((_, remedy))) => (*remedy).to_string(),
        _ => otherwise.to_string(),
    }
}

/// Whether two names differ in spelling only: `BatchNorm2d` and `batchnorm2d`.
pub fn same(a: &str, b: &str) -> bool {
    bare(a) == bare(b)
}

/// The known name that `name` was probably meant to be: the same in another spelling (`BatchNorm2d`), or the nearest one
/// within a third of its letters.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = bare(name);
    if wanted.is_empty() || wanted.len() > 64 {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for (i, candidate) in known.into_iter().enumerate() {
        if i == limits::SUGGESTIONS {
            return None;
        }
        let candidate_bare = bare(candidate);
        let most = wanted.len().max(candidate_bare.len()).div_ceil(3).min(3).min(wanted.len() - 1);
        // As many letters are added or removed at least.
        if wanted.len().abs_diff(candidate_bare.len()) > most {
            continue;
        }
        let Some(distance) = edit_distance(&wanted, &candidate_bare, most) else { continue };
        // Of equally near ones always the same, in whatever order they come.
        if best.is_none_or(|best| (distance, candidate) < best) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Lower case without underscores: what remains when PyTorch's class names and our snake case are the same.
fn bare(name: &str) -> String {
    name.chars().take(80).filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}

/// How many letters must be added, removed, replaced or swapped with their neighbour to make `a` from `b`;
/// `None` where they are more than `most`.
fn edit_distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
        // Each further row comes from these two, and has nothing smaller.
        if before_last.iter().chain(&last).all(|distance| *distance > most) {
            return None;
        }
    }
    Some(last[b.len()]).filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_the_name_that_was_meant() {
        let known = ["linear", "conv1d", "conv2d", "batchnorm2d", "adaptive_avgpool2d", "relu", "relu6"];
        assert_eq!(nearest("Conv2d", known), Some("conv2d"));
        assert_eq!(nearest("AdaptiveAvgPool2d", known), Some("adaptive_avgpool2d"));
        assert_eq!(nearest("liner", known), Some("linear"));
        assert_eq!(nearest("rleu", known), Some("relu"));
        assert_eq!(nearest("quux", known), None);
        assert_eq!(nearest("a", known), None);
    }
}
