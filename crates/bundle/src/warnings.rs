//! What a source's author should know about its files before a run fails far from the cause.

use crate::{
    quote::Shortlist,
    taken::Origin,
    tree::{Entry, FileTree},
    twins::twins,
};

/// What every Git LFS pointer begins with.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";
/// A pointer is never larger.
const LONGEST_LFS_POINTER: usize = 1_024;
/// The mark that some editors put before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// How far into a file its first line is looked for: longer interpreter lines are cut by Linux anyway.
const LONGEST_FIRST_LINE: usize = 1_024;

/// Warnings about the files of one source, named where they land in the bundle: Git LFS pointers, interpreter lines that
/// no system understands, and names that differ only in case or normalisation. Each names at most three and counts the
/// rest; none shows a file's content.
pub fn source_warnings(tree: &FileTree, origin: Origin) -> Vec<String> {
    let about = |is_meant: fn(&[u8]) -> bool, predicate: &str| {
        let names: Vec<&str> = tree
            .iter()
            .filter(|(_, entry)| matches!(entry, Entry::File { contents, .. } if is_meant(contents)))
            .map(|(path, _)| path.as_str())
            .collect();
        (!names.is_empty()).then(|| format!("{} {predicate}", Shortlist(&names)))
    };
    let absence = match origin {
        Origin::Repository => "only point to files in Git LFS, which GitHub's archives leave out",
        Origin::Workspace => "only point to files in Git LFS; the files themselves are not in the workspace",
    };
    [
        about(is_lfs_pointer, absence),
        about(
            has_windows_line_end,
            "have a Windows line end after `#!`, which makes the name of an interpreter that does not exist: save with \
             LF instead of CRLF",
        ),
        about(
            has_late_interpreter,
            "have blanks or a byte order mark before `#!`, which only counts as the first two bytes of a file",
        ),
    ]
    .into_iter()
    .flatten()
    .chain(twins(tree))
    .collect()
}

fn is_lfs_pointer(contents: &[u8]) -> bool {
    contents.len() <= LONGEST_LFS_POINTER && contents.starts_with(LFS_POINTER)
}

fn has_windows_line_end(contents: &[u8]) -> bool {
    let start = &contents[..contents.len().min(LONGEST_FIRST_LINE)];
    let first_line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    names_interpreter(start) && first_line.ends_with(b"\r")
}

fn has_late_interpreter(contents: &[u8]) -> bool {
    let start = &contents[..contents.len().min(LONGEST_FIRST_LINE)];
    let text = start
        .strip_prefix(BYTE_ORDER_MARK)
        .unwrap_or(start)
        .trim_ascii_start();
    text.len() < start.len() && names_interpreter(text)
}

/// `#!` and an absolute path. Without that, `#![…]` at the start of a Rust file would look like a script.
fn names_interpreter(text: &[u8]) -> bool {
    text.strip_prefix(b"#!")
        .is_some_and(|rest| rest.trim_ascii_start().starts_with(b"/"))
}

#[cfg(test)]
mod tests;
