use proptest::prelude::*;

use super::*;

fn rule(text: &str) -> Option<PathRule> {
    text.parse::<BundlePath>().err().map(|error| error.rule)
}

#[test]
fn each_rule_refuses_its_own_kind_of_path() {
    let long_segment = "x".repeat(256);
    let long_path = format!("{}e", "folder/".repeat(146) + "xy");
    assert_eq!(long_path.len(), 1_025);
    for (text, expected) in [
        ("", PathRule::Empty),
        ("/etc/passwd", PathRule::Absolute),
        ("C:", PathRule::Absolute),
        ("c:/windows", PathRule::Absolute),
        ("src/", PathRule::TrailingSlash),
        ("a//b", PathRule::EmptySegment),
        ("a//", PathRule::EmptySegment),
        (".", PathRule::DotSegment),
        ("./a", PathRule::DotSegment),
        ("a/./b", PathRule::DotSegment),
        ("..", PathRule::ParentSegment),
        ("../a", PathRule::ParentSegment),
        ("a/../b", PathRule::ParentSegment),
        ("a/..", PathRule::ParentSegment),
        ("a\\b", PathRule::Backslash),
        ("a\0b", PathRule::Nul),
        ("a\nb", PathRule::Control),
        ("a\u{7f}b", PathRule::Control),
        ("a\u{85}b", PathRule::Control),
        (&long_segment, PathRule::SegmentTooLong { bytes: 256 }),
        (&long_path, PathRule::TooLong { bytes: 1_025 }),
    ] {
        assert_eq!(rule(text), Some(expected), "{text:?}");
    }
}

#[test]
fn unusual_but_harmless_names_are_paths() {
    let longest_segment = "x".repeat(255);
    let longest_path = "folder/".repeat(146) + "xy";
    assert_eq!(longest_path.len(), 1_024);
    for text in [
        "tool.py",
        "a/b/c",
        "-rf",
        "--help.py",
        "@x",
        "...",
        "..a/b..",
        ".env",
        "a b/c d",
        "ab:c",
        "日本/é.txt",
        &longest_segment,
        &longest_path,
    ] {
        assert_eq!(rule(text), None, "{text:?}");
    }
}

#[test]
fn a_manifest_may_write_a_leading_dot() {
    for text in ["tool.py", "./tool.py", "././tool.py"] {
        assert_eq!(
            BundlePath::from_manifest(text).map(String::from),
            Ok("tool.py".to_owned())
        );
    }
    for text in ["./", "./.", ".//a", "a/./b", "./../a"] {
        assert!(BundlePath::from_manifest(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_message_names_the_path_and_the_rule_without_raw_control_characters() {
    let message = |text: &str| text.parse::<BundlePath>().unwrap_err().to_string();
    assert_eq!(
        message("a/../b"),
        "`a/../b` has a `..` segment, which could leave its root"
    );
    assert_eq!(message("a\0b"), r"`a\u{0}b` has a NUL character");
    assert_eq!(message("a\nb"), r"`a\nb` has a control character");
}

#[test]
fn parts_of_a_path() {
    let path: BundlePath = "a/b.c/d.tar.gz".parse().unwrap();
    assert_eq!(path.segments().collect::<Vec<_>>(), ["a", "b.c", "d.tar.gz"]);
    assert_eq!(path.folders().collect::<Vec<_>>(), ["a", "a/b.c"]);
    assert_eq!(
        (path.folder(), path.file_name(), path.extension()),
        (Some("a/b.c"), "d.tar.gz", Some("gz"))
    );
    assert_eq!(
        path.below(&"a".parse().unwrap()),
        Some("b.c/d.tar.gz".parse().unwrap())
    );
    assert_eq!(path.below(&"a/b".parse().unwrap()), None);
    assert_eq!(path.below(&path), None);

    let name: BundlePath = ".env".parse().unwrap();
    assert_eq!(
        (name.folder(), name.file_name(), name.extension()),
        (None, ".env", None)
    );
    assert_eq!(name.folders().count(), 0);
}

#[test]
fn paths_order_by_their_bytes() {
    let mut paths: Vec<BundlePath> = ["a/b", "a-b", "a", "é", "z", "a/B"]
        .map(|text| text.parse().unwrap())
        .into();
    paths.sort();
    assert_eq!(
        paths.iter().map(BundlePath::as_str).collect::<Vec<_>>(),
        ["a", "a-b", "a/B", "a/b", "z", "é"]
    );
}

#[test]
fn paths_travel_as_strings_and_are_checked_on_arrival() {
    assert_eq!(
        serde_json::to_value("a/b".parse::<BundlePath>().unwrap()).unwrap(),
        "a/b"
    );
    let refused = serde_json::from_str::<BundlePath>(r#""../a""#).unwrap_err();
    assert!(refused.to_string().contains("`..` segment"), "{refused}");
}

proptest! {
    #[test]
    fn an_accepted_path_stays_below_any_folder_it_is_joined_to(text in any::<String>()) {
        if let Ok(path) = text.parse::<BundlePath>() {
            let folder: BundlePath = "folder".parse().unwrap();
            if let Ok(joined) = folder.join(&path) {
                prop_assert_eq!(joined.below(&folder), Some(path.clone()));
            }
            prop_assert!(std::path::Path::new(&text)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_))));
            prop_assert_eq!(path.as_str(), text);
        }
    }

    #[test]
    fn paths_near_the_rules_never_panic_and_keep_their_one_spelling(text in "[a./\\\\:\0\n-]{0,12}") {
        if let Ok(path) = BundlePath::from_manifest(&text) {
            prop_assert_eq!(path.as_str().parse::<BundlePath>(), Ok(path.clone()));
            prop_assert!(path.segments().all(|segment| !matches!(segment, "" | "." | "..")));
        }
    }
}
