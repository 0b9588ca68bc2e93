pub(crate) mod fixtures;
mod limits;
mod properties;

use codeworkspace_bundle::Entry;

use super::*;
use fixtures::{COMMIT, Tar, commit, gzip, header, record, with_checksum};

const LIMITS: ArchiveLimits = ArchiveLimits {
    inflated_bytes: 1024 * 1024,
    file_bytes: 64 * 1024,
    entries: 100,
};

fn read_gzip(bytes: &[u8]) -> Result<RepositoryTree, ArchiveError> {
    read(bytes, Layout::Commit(&commit()), &LIMITS)
}

fn read_tar(tar: Tar) -> Result<RepositoryTree, ArchiveError> {
    read_gzip(&gzip(&tar.end()))
}

fn file(contents: &str) -> Entry {
    Entry::File {
        contents: Bytes::copy_from_slice(contents.as_bytes()),
        executable: false,
    }
}

fn entries(tree: &RepositoryTree) -> Vec<(&str, &Entry)> {
    tree.entries
        .iter()
        .map(|(path, entry)| (path.as_str(), entry))
        .collect()
}

/// The words after "the archive is refused: ".
fn refusal(tar: Tar) -> String {
    match read_tar(tar) {
        Err(ArchiveError::Refused(text)) => text,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn files_links_and_modes_of_an_honest_archive_are_read() {
    let tar = Tar::new()
        .folder("o-r-0123456/")
        .file("o-r-0123456/a.txt", "a")
        .folder("o-r-0123456/bin/")
        .raw(&header(b'0', b"o-r-0123456/bin/run", b"", 2, 0o775))
        .contents(b"ok")
        .link("o-r-0123456/link", "a.txt");
    let run = Entry::File {
        contents: Bytes::from_static(b"ok"),
        executable: true,
    };
    let link = Entry::Link {
        target: "a.txt".to_owned(),
    };
    let tree = read_tar(tar).unwrap();
    assert_eq!(
        entries(&tree),
        [("a.txt", &file("a")), ("bin/run", &run), ("link", &link)]
    );
}

#[test]
fn set_user_sticky_and_write_bits_are_masked() {
    let tar = Tar::new()
        .raw(&header(b'0', b"t/a", b"", 0, 0o7677))
        .raw(&header(b'0', b"t/b", b"", 0, 0o4755));
    let tree = read_tar(tar).unwrap();
    let executable: Vec<_> = tree
        .entries
        .values()
        .map(|entry| matches!(entry, Entry::File { executable: true, .. }))
        .collect();
    // The owner's executable bit is all that is left: group and others do not count.
    assert_eq!(executable, [false, true]);
}

#[test]
fn long_paths_and_targets_come_from_extended_headers() {
    let long = "d/".repeat(40) + &"ü".repeat(100);
    let path = record("path", format!("t/{long}").as_bytes());
    let target = record("linkpath", long.as_bytes());
    let tar = Tar::new()
        .extended(&path)
        .file("t/short", "a")
        .extended(&[record("path", b"t/link"), target].concat())
        .link("t/x", "y")
        .file("t/z.txt", "z");
    let tree = read_tar(tar).unwrap();
    let link = Entry::Link { target: long.clone() };
    assert_eq!(
        entries(&tree),
        [
            (long.as_str(), &file("a")),
            ("link", &link),
            ("z.txt", &file("z"))
        ]
    );
}

#[test]
fn folders_without_content_are_remembered() {
    let tar = Tar::new()
        .folder("t/")
        .folder("t/full/")
        .file("t/full/a", "")
        .folder("t/outer/")
        .folder("t/outer/module/");
    let tree = read_tar(tar).unwrap();
    assert_eq!(
        tree.empty_folders
            .iter()
            .map(codeworkspace_bundle::BundlePath::as_str)
            .collect::<Vec<_>>(),
        ["outer/module"]
    );
}

#[test]
fn attributes_that_change_archives_are_noticed() {
    let with = |text: &str| {
        let tree = read_tar(Tar::new().file("t/sub/.gitattributes", text)).unwrap();
        (tree.ignores_exports, tree.substitutes_exports)
    };
    assert_eq!(with("tests/ export-ignore\n*.md text\n"), (true, false));
    assert_eq!(with("ver.txt  text export-subst\n"), (false, true));
    assert_eq!(
        with("# a export-ignore\nb -export-ignore\nexport-subst\n"),
        (false, false)
    );
}

#[test]
fn every_hostile_name_refuses_the_whole_archive_and_is_said() {
    let start = || Tar::new().file("t/a", "a");
    for (tar, text) in [
        (
            start().file("/etc/passwd", ""),
            "entry `/etc/passwd` has another top folder than those before",
        ),
        (
            start().file("t/../../b", ""),
            "the path of an entry is not allowed: `../../b` has a `..` segment, which could leave its root",
        ),
        (
            start().file("t//etc/passwd", ""),
            "the path of an entry is not allowed: `/etc/passwd` is absolute: paths are relative, so leave out the leading `/` or drive letter",
        ),
        (
            start().file("t/C:/b", ""),
            "the path of an entry is not allowed: `C:/b` is absolute: paths are relative, so leave out the leading `/` or drive letter",
        ),
        (
            start().file("t/a\\b", ""),
            "the path of an entry is not allowed: `a\\b` has a backslash: write `/` between folders",
        ),
        (
            start().file("t/a\nb", ""),
            "the path of an entry is not allowed: `a\\nb` has a control character",
        ),
        (
            start().file("t/b/", ""),
            "the path of an entry is not allowed: `b/` ends in `/`: a file's path ends in its name",
        ),
        (
            start().entry(b'0', b"t/\xff", b"", b""),
            "entry `t/\u{fffd}` has a name that is not UTF-8",
        ),
    ] {
        assert_eq!(refusal(tar), text);
    }
}

#[test]
fn every_entry_that_git_does_not_write_refuses_the_whole_archive() {
    let start = || Tar::new().file("t/a", "a");
    let nested = "x/".repeat(100) + "x";
    for (tar, text) in [
        (
            start().entry(b'1', b"t/h", b"t/a", b""),
            "entry `t/h` is a hard link, which is never read",
        ),
        (
            start().entry(b'3', b"t/d", b"", b""),
            "entry `t/d` is a device, which is never read",
        ),
        (
            start().entry(b'6', b"t/p", b"", b""),
            "entry `t/p` is a named pipe, which is never read",
        ),
        (
            start().entry(b'S', b"t/s", b"", b""),
            "entry `t/s` is a sparse file, which is never read",
        ),
        (
            start().entry(b'L', b"t/l", b"", b"x"),
            "entry `t/l` is a long name of the GNU format, which is never read",
        ),
        (
            start().entry(b'\0', b"t/o", b"", b""),
            "entry `t/o` is of the unknown type '\\0'",
        ),
        (start().file("t/a", "b"), "entry `t/a` is there twice"),
        (
            start().folder("t/d/").folder("t/d/"),
            "entry `t/d/` is there twice",
        ),
        (
            start().folder("t/a/"),
            "entry `t/a/` is a file or link and a folder at once",
        ),
        (
            start().file("t/d/x", "").file("t/d", ""),
            "entry `t/d` is a file or link and a folder at once",
        ),
        (
            start().link("t/l", "/tmp").file("t/l/x", ""),
            "entry `t/l/x` lies below a file or link",
        ),
        (
            start().file("t/a/x", ""),
            "entry `t/a/x` lies below a file or link",
        ),
        (
            start().file("other/b", ""),
            "entry `other/b` has another top folder than those before",
        ),
        (
            start().file("t", ""),
            "entry `t` stands outside the archive's top folder",
        ),
        (
            start().entry(b'2', b"t/l", b"a", b"x"),
            "entry `t/l` is a link or folder with contents",
        ),
        (
            start().entry(b'2', b"t/l", b"\xff", b""),
            "entry `t/l` is a link whose target is not UTF-8 text",
        ),
        (
            start()
                .extended(&record("path", format!("t/{nested}").as_bytes()))
                .file("x", ""),
            "entry `t/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/…` lies deeper than 100 folders",
        ),
    ] {
        assert_eq!(refusal(tar), text);
    }
}

#[test]
fn a_hard_link_behind_a_folder_that_becomes_a_link_is_refused() {
    let tar = Tar::new()
        .file("t/keep", "")
        .folder("t/d/")
        .entry(b'1', b"t/d/h", b"t/keep", b"")
        .link("t/d", "/tmp");
    assert_eq!(refusal(tar), "entry `t/d/h` is a hard link, which is never read");
}

#[test]
fn extended_headers_are_read_strictly_or_not_at_all() {
    let start = || Tar::new().file("t/a", "a");
    let long = vec![b'x'; 17_000];
    for (tar, text) in [
        (
            start().extended(b"9 path=a").file("t/b", ""),
            "an extended header is malformed",
        ),
        (
            start()
                .extended(&record("GNU.sparse.map", b"0,1"))
                .file("t/b", ""),
            "an extended header has `GNU.sparse.map`, which is never read",
        ),
        (
            start()
                .extended(&record("path", b"t/x"))
                .extended(&record("path", b"t/y"))
                .file("t/b", ""),
            "two extended headers follow each other",
        ),
        (
            start().extended(&record("path", b"t/x")),
            "an extended header belongs to no entry",
        ),
        (
            start().extended(&record("size", b"7")).file("t/b", "b"),
            "entry `t/b` has two sizes that differ",
        ),
        (
            start().extended(&record("path", &long)).file("t/b", ""),
            "an extended header has 17012 bytes, more than 16384",
        ),
        (
            start().entry(b'g', b"g", b"", &record("comment", b"x")),
            "a global header stands behind the first entry",
        ),
        (
            start().extended(&record("path", b"t/a\0b")).file("t/b", ""),
            "the path of an entry is not allowed: `a\\u{0}b` has a NUL character",
        ),
    ] {
        assert_eq!(refusal(tar), text);
    }
    let same = start().extended(&record("size", b"1")).file("t/b", "b");
    assert_eq!(read_tar(same).unwrap().entries.len(), 2);
}

#[test]
fn headers_are_read_strictly() {
    let changed = |at: usize, bytes: &[u8]| {
        let mut block = header(b'0', b"t/b", b"", 1, 0o664);
        block[at..at + bytes.len()].copy_from_slice(bytes);
        Tar::new().raw(&with_checksum(block)).contents(b"b")
    };
    assert_eq!(refusal(changed(10, b"c")), "entry `t/b` has a NUL in its name");
    assert_eq!(
        refusal(changed(124, b"+0000000001")),
        "entry `t/b` has a malformed size"
    );
    assert_eq!(
        refusal(changed(124, b"0000000001\x009")),
        "entry `t/b` has a malformed size"
    );
    assert_eq!(
        refusal(changed(100, b"-000644")),
        "entry `t/b` has a malformed mode"
    );
    assert_eq!(
        refusal(changed(257, b"ustar  \0")),
        "a header is not in the ustar format"
    );
    assert_eq!(
        refusal(changed(263, b"01")),
        "a header is not in the ustar format"
    );
    let mut wrong_checksum = header(b'0', b"t/b", b"", 0, 0o664);
    wrong_checksum[0] = b'u';
    assert_eq!(
        refusal(Tar::new().raw(&wrong_checksum)),
        "a header block is malformed"
    );
}

#[test]
fn the_archive_must_be_of_the_commit_that_was_asked_for() {
    let other = "1123456789abcdef0123456789abcdef01234567";
    let global = |records: &[u8]| {
        Tar::default()
            .entry(b'g', b"pax_global_header", b"", records)
            .file("t/a", "")
    };
    let comment = |text: &str| global(&record("comment", text.as_bytes()));
    read_tar(comment(COMMIT)).unwrap();
    read_tar(global(
        &[
            record("comment", COMMIT.as_bytes()),
            record("mtime", b"99999999999"),
        ]
        .concat(),
    ))
    .unwrap();
    assert_eq!(
        refusal(comment(other)),
        format!("it is of commit `{other}`, not {COMMIT}")
    );
    assert_eq!(
        refusal(comment(&COMMIT[..39])),
        format!("it is of commit `{}`, not {COMMIT}", &COMMIT[..39])
    );
    assert_eq!(
        refusal(global(&record("mtime", b"1"))),
        "its global header has no commit id"
    );
    assert_eq!(
        refusal(Tar::default().file("t/a", "")),
        "it does not begin with the commit's id, as archives of commits do"
    );
    assert_eq!(refusal(Tar::default()), "it is empty");
}

#[test]
fn archives_inside_the_archive_stay_as_they_are() {
    let inner = gzip(&Tar::new().file("x/y", "z").end());
    let tar = Tar::new().entry(b'0', b"t/data/model.tar.gz", b"", &inner);
    let tree = read_tar(tar).unwrap();
    let expected = Entry::File {
        contents: Bytes::from(inner),
        executable: false,
    };
    assert_eq!(entries(&tree), [("data/model.tar.gz", &expected)]);
}
