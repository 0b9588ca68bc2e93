use super::*;
use crate::fixtures::tree;

#[test]
fn names_that_differ_only_in_case_are_warned_about() {
    let files = tree(&[
        ("README.md", ""),
        ("Readme.md", ""),
        ("Lib/a", ""),
        ("Lib/b", ""),
        ("lib/a", ""),
        ("É", ""),
        ("é", ""),
    ]);
    assert_eq!(
        twins(&files),
        [
            "`Lib` and `lib` differ only in case",
            "`README.md` and `Readme.md` differ only in case",
            "`É` and `é` differ only in case",
        ]
    );
    assert_eq!(twins(&tree(&[("a", ""), ("b/a", ""), ("b/ab", "")])), [""; 0]);
}

#[test]
fn names_that_differ_only_in_normalisation_are_warned_about() {
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}");
    let files = tree(&[(composed, "one"), (decomposed, "two")]);
    assert_eq!(
        twins(&files),
        [format!(
            "`{decomposed}` and `{composed}` differ only in Unicode normalisation"
        )]
    );
    let both = tree(&[("CAFE\u{301}/x", ""), ("caf\u{e9}/x", "")]);
    assert_eq!(
        twins(&both),
        ["`CAFE\u{301}` and `caf\u{e9}` differ only in case"]
    );
}

#[test]
fn many_twins_are_counted() {
    let names: Vec<String> = (0..7)
        .flat_map(|index| [format!("a{index}"), format!("A{index}")])
        .collect();
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    let warnings = twins(&tree(&entries));
    assert_eq!(
        (warnings.len(), warnings[3].as_str()),
        (
            4,
            "4 more pairs of names differ only in case or Unicode normalisation"
        )
    );
}

#[test]
fn twins_of_two_sources_name_both_files_and_both_sources() {
    let (first, second) = (
        tree(&[("Readme.md", "old"), ("x/A", ""), ("x/a", "")]),
        tree(&[("README.md", "new"), ("x/B", "")]),
    );
    let layer = |name, tree| Layer { name, tree };
    let layers = [
        layer("code.sources[0]", &first),
        layer("code.sources[1]", &second),
    ];
    let expected = ["`README.md` of code.sources[1] and `Readme.md` of code.sources[0] differ only in case"];
    assert_eq!(twins_between(&layers), expected);
    assert_eq!(twins_between(&layers[..1]), [""; 0]);
    assert_eq!(twins(&first), ["`x/A` and `x/a` differ only in case"]);
}
