use super::*;
use crate::fixtures::tree;

fn warnings(entries: &[(&str, &str)]) -> Vec<String> {
    source_warnings(&tree(entries), Origin::Workspace)
}

#[test]
fn a_script_with_windows_line_ends_is_named() {
    let expected = "`bin/run.sh`, `one-line` have a Windows line end after `#!`, which makes the name of an interpreter \
                    that does not exist: save with LF instead of CRLF";
    assert_eq!(
        warnings(&[
            ("bin/run.sh", "#!/bin/sh\r\necho secret\r\n"),
            ("one-line", "#! /bin/sh\r"),
            ("good.sh", "#!/bin/sh\necho \r\n"),
            ("inner.rs", "#![allow(unused)]\r\nfn main() {}\r\n"),
            ("text.md", "a\r\nb\r\n"),
            ("link", "-> good.sh"),
        ]),
        [expected]
    );
}

#[test]
fn a_script_whose_interpreter_line_comes_late_is_named() {
    let expected = "`blank`, `marked`, `marked-blank` and 1 more have blanks or a byte order mark before `#!`, which only \
                    counts as the first two bytes of a file";
    assert_eq!(
        warnings(&[
            ("blank", "\n#!/bin/sh\n"),
            ("marked", "\u{feff}#!/bin/sh\n"),
            ("marked-blank", "\u{feff}\r\n #!/usr/bin/env python\n"),
            ("windows", "\r\n#!/bin/sh\r\n"),
            ("good", "#!/bin/sh\n"),
            ("attribute.rs", "\n#![no_std]\n"),
            ("comment.md", "text\n#!/bin/sh\n"),
            ("empty", ""),
        ]),
        [expected]
    );
}

#[test]
fn pointers_to_files_in_git_lfs_are_named_by_where_they_come_from() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
    let files = tree(&[
        ("weights.bin", pointer),
        ("large", &format!("{pointer}{}", "x".repeat(1_024))),
    ]);
    assert_eq!(
        source_warnings(&files, Origin::Workspace),
        ["`weights.bin` only point to files in Git LFS; the files themselves are not in the workspace"]
    );
    assert_eq!(
        source_warnings(&files, Origin::Repository),
        ["`weights.bin` only point to files in Git LFS, which GitHub's archives leave out"]
    );
}

#[test]
fn twins_of_one_source_are_among_its_warnings() {
    assert_eq!(
        warnings(&[("README.md", ""), ("Readme.md", "")]),
        ["`README.md` and `Readme.md` differ only in case"]
    );
}

#[test]
fn a_hostile_name_cannot_fill_a_warning() {
    let names: Vec<String> = (0..9)
        .map(|index| format!("{}{index}", "x/".repeat(500)))
        .collect();
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), "\n#!/x")).collect();
    let [warning] = &warnings(&entries)[..] else {
        panic!("one warning")
    };
    assert!(
        warning.len() < 400 && warning.contains(" and 6 more "),
        "{warning}"
    );
}
