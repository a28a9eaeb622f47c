//! The nearest known name to one that is not known.

/// `; did you mean `x`?` for the nearest of `known`, or nothing when none is near.
#[must_use]
pub fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = |name: &&str| distance(wrong, name) <= 1 + wrong.chars().count() / 4;
    // The first of the nearest ones, so that the text does not depend on how they are stored.
    let mut best: Option<&str> = None;
    for name in known.into_iter().filter(near) {
        if best.is_none_or(|best| distance(wrong, name) < distance(wrong, best)) {
            best = Some(name);
        }
    }
    best.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// How many letters must be added, dropped, replaced or swapped with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replace.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = last;
        last = row;
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_named_and_a_far_one_is_not() {
        let known = ["match", "where", "reads", "writes"];
        assert_eq!(did_you_mean("mathc", known), "; did you mean `match`?");
        assert_eq!(did_you_mean("raeds", known), "; did you mean `reads`?");
        assert_eq!(did_you_mean("writs", known), "; did you mean `writes`?");
        assert_eq!(did_you_mean("colour", known), "");
    }
}
