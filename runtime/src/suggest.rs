//! The parameter that a wrong name was probably meant to be.

/// The path that `name` was probably meant to be, if any is near: one whose end it is, or that is its end, at a dot; one of
/// which it is the beginning; else the one that the fewest letters tell apart from it, within a third of them.
pub fn nearest<'a>(name: &str, paths: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    // Longer ones than any real path would only take time.
    if name.is_empty() || name.len() > 200 {
        return None;
    }
    // The most likely mistake is a wrong path to a right name.
    let after = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'));
    let before = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    let ends = paths.clone().find(|path| after(path, name) || after(name, path));
    ends.or_else(|| paths.clone().find(|path| before(path, name))).or_else(|| {
        let near = paths.map(|path| (distance(name, path), path));
        let near = near.filter(|(distance, path)| distance * 3 <= name.len().min(path.len()));
        near.min_by_key(|(distance, _)| *distance).map(|(_, path)| path)
    })
}

/// How many letters must be added, removed or replaced to make `a` from `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_the_name_that_was_meant() {
        let paths = ["0.weight", "0.bias", "layer1.conv.weight", "layer1.conv.bias"];
        let nearest = |name| nearest(name, paths.into_iter());
        assert_eq!(nearest("0.wieght"), Some("0.weight"));
        assert_eq!(nearest("net.0.bias"), Some("0.bias"));
        assert_eq!(nearest("conv.bias"), Some("layer1.conv.bias"));
        assert_eq!(nearest("layer1.conv"), Some("layer1.conv.weight"));
        assert_eq!(nearest("layer1.conv.wight"), Some("layer1.conv.weight"));
        assert_eq!(nearest(""), None);
        assert_eq!(nearest("."), None);
        assert_eq!(nearest("momentum"), None);
    }
}
