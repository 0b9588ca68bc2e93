//! One bundle with everything in it whose digest must never change, checked against the system's own `tar`, and one of what
//! `local` sources take of a workspace.
//!
//! A change of these digests changes the digest of every workspace in every cluster: each of them would run again after
//! an upgrade.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail the way tests do")]

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt, symlink},
        process::CommandExt as _,
    },
    path::Path,
    process::{Command, Stdio},
};

use bytes::Bytes;
use codeworkspace_bundle::{
    Bundle, BundlePath, BundleReader, Caps, Digest, Entry, FileTree, Layer, LinkPolicy, code::Source,
    define_code, overlay, select,
};
use serde_json::json;

const DIGEST: &str = "sha256:8007a690322841e1340d3ad81c455765b0d3e33e36ef292e1dc8d90b8e14578c";
/// Of what `local` sources take of a workspace; see [`workspace`].
const SELECTED_DIGEST: &str = "sha256:16cea9a937a20488e836cd25820a521a9b0ad7fb6c5540e79d5e58f7e844008f";

/// What unpacking should leave on disk: a file's mode and contents, or a link's target.
#[derive(Debug, PartialEq, Eq)]
enum Unpacked {
    File { mode: u32, contents: Vec<u8> },
    Link { target: String },
}

fn golden() -> FileTree {
    let file = |contents: &[u8], executable| Entry::File {
        contents: Bytes::copy_from_slice(contents),
        executable,
    };
    let link = |target: &str| Entry::Link {
        target: target.to_owned(),
    };
    let long = |letter: &str, length| letter.repeat(length);
    let entries = [
        ("empty".to_owned(), file(b"", false)),
        ("tool.py".to_owned(), file(b"print('hello')\n", false)),
        (
            "bin/run.sh".to_owned(),
            file(b"#!/bin/sh\nexec python tool.py\n", true),
        ),
        ("a-sibling-that-sorts-between".to_owned(), file(b"", false)),
        ("-rf".to_owned(), file(b"no option", false)),
        ("--help.py".to_owned(), file(b"no option either", false)),
        (
            "with space/and é/日本.txt".to_owned(),
            file("grüße\n".as_bytes(), false),
        ),
        ("binary".to_owned(), file(&(0..=255).collect::<Vec<u8>>(), false)),
        ("one-block".to_owned(), file(&[b'x'; 512], false)),
        ("one-block-and-a-byte".to_owned(), file(&[b'x'; 513], false)),
        (long("n", 100), file(b"the longest name", false)),
        (long("n", 101), file(b"a name for pax", false)),
        (
            format!("{}/{}", long("p", 155), long("q", 100)),
            file(b"the longest split", false),
        ),
        (
            format!("{}/{}", long("p", 156), long("q", 100)),
            file(b"a path for pax", true),
        ),
        (format!("deep/{}é", "folder/".repeat(140)), file(b"deep", false)),
        ("links/plain".to_owned(), link("../tool.py")),
        ("links/folder".to_owned(), link("../bin")),
        ("links/longest".to_owned(), link(&format!("../{}", long("t", 97)))),
        (
            "links/for-pax".to_owned(),
            link(&format!("../{}", long("n", 101))),
        ),
    ];
    let mut tree = FileTree::new();
    for (path, entry) in entries {
        tree.insert(path.parse().unwrap(), entry).unwrap();
    }
    tree
}

/// The golden tree as the root of a workspace, with what no source takes beside it.
fn workspace() -> FileTree {
    let mut root = golden();
    for (path, contents) in [
        (".env", "MODE=test\n"),
        (".git/config", "[remote \"origin\"]\n"),
        ("lib/.git", "gitdir: ../.git/modules/lib\n"),
        ("lib/[id].ts", "export const id = 1\n"),
        ("lib/i.ts", "export const i = 2\n"),
        ("lib/deep/.hidden.ts", "export {}\n"),
        ("lib/deep/x.ts", "export const x = 3\n"),
    ] {
        let contents = Bytes::copy_from_slice(contents.as_bytes());
        root.insert(path.parse().unwrap(), Entry::from_contents(contents))
            .unwrap();
    }
    root
}

fn selected() -> FileTree {
    let root = workspace();
    let code = define_code(&json!({ "sources": [
        { "local": "./" },
        { "local": { "path": "lib", "as": "filtered/", "glob": "**/*.ts" } },
        { "local": { "path": "lib/[id].ts", "as": "named.ts" } },
        { "local": { "path": "**/deep/*", "as": "gathered/" } },
        { "local": "links/" },
    ] }))
    .unwrap();
    let trees: Vec<FileTree> = code
        .sources
        .iter()
        .map(|entry| {
            let Ok(Source::Local(source)) = &entry.source else {
                unreachable!("all of them are local")
            };
            select(&root, source, LinkPolicy::Skip).unwrap().tree
        })
        .collect();
    let layers: Vec<_> = trees.iter().map(|tree| Layer { name: "local", tree }).collect();
    overlay(&layers).unwrap()
}

fn bundle() -> Bundle {
    Bundle::build(&golden(), &Caps::default()).unwrap()
}

#[test]
fn the_digest_of_the_golden_bundle_never_changes() {
    assert_eq!(bundle().digest.to_string(), DIGEST);
}

#[test]
fn the_digest_of_what_local_sources_take_never_changes() {
    let bundle = Bundle::build(&selected(), &Caps::default()).unwrap();
    let added: Vec<String> = selected()
        .paths()
        .filter(|path| golden().get(path.as_str()).is_none())
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        added,
        [
            ".env",
            "filtered/[id].ts",
            "filtered/deep/x.ts",
            "filtered/i.ts",
            "gathered/x.ts",
            "lib/[id].ts",
            "lib/deep/.hidden.ts",
            "lib/deep/x.ts",
            "lib/i.ts",
            "named.ts",
        ]
    );
    assert_eq!(bundle.digest.to_string(), SELECTED_DIGEST);
}

/// The two tests of digests run again in processes of their own, each in another surrounding. Another user is tried only by the
/// one who may become one.
#[test]
fn the_digests_hold_under_another_user_umask_time_zone_and_locale() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    // Where the tests are built, others may have no business.
    let program = folder.path().join("golden");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let may_become_another = fs::metadata("/proc/self").unwrap().uid() == 0;
    let nobody = may_become_another.then_some(65_534);
    for (user, umask, zone, locale) in [
        (None, "0000", "UTC", "C"),
        (None, "0777", "Asia/Kathmandu", "tr_TR.UTF-8"),
        (nobody, "0077", "Pacific/Apia", "de_DE@euro"),
    ] {
        let mut command = Command::new("sh");
        command
            .args(["-c", "umask \"$1\"; exec \"$2\" the_digest_of", "golden", umask])
            .arg(&program)
            .env("TZ", zone)
            .env("LC_ALL", locale)
            .current_dir("/");
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{user:?} {umask} {zone} {locale}: {said}"
        );
        assert!(said.contains("2 passed"), "{said}");
    }
}

#[test]
fn the_golden_bundle_counts_its_entries_and_bytes() {
    let bundle = bundle();
    assert_eq!((bundle.files, bundle.size_bytes), (19, 1_424));
}

#[test]
fn the_golden_bundle_reads_back_whole() {
    let bundle = bundle();
    let mut reader = BundleReader::new(&bundle.compressed[..]).unwrap();
    let entries: Vec<_> = reader.by_ref().collect::<Result<_, _>>().unwrap();
    assert_eq!(entries, golden().into_iter().collect::<Vec<_>>());
    assert_eq!(reader.finish().unwrap(), bundle.digest);
}

#[test]
fn the_systems_own_tar_unpacks_exactly_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("bundle.tar.gz");
    let root = folder.path().join("root");
    fs::write(&archive, bundle().compressed).unwrap();
    fs::create_dir(&root).unwrap();

    let tar = Command::new("tar")
        .arg("--extract")
        .arg("--gzip")
        .arg("--preserve-permissions")
        .arg("--file")
        .arg(&archive)
        .arg("--directory")
        .arg(&root)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        tar.status.success() && tar.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&tar.stderr)
    );

    let expected: BTreeMap<String, Unpacked> = golden()
        .into_iter()
        .map(|(path, entry)| match entry {
            Entry::File { contents, executable } => {
                let mode = if executable { 0o755 } else { 0o644 };
                (
                    path.into(),
                    Unpacked::File {
                        mode,
                        contents: contents.into(),
                    },
                )
            }
            Entry::Link { target } => (path.into(), Unpacked::Link { target }),
        })
        .collect();
    let mut unpacked = BTreeMap::new();
    collect(&root, &root, &mut unpacked);
    assert_eq!(unpacked, expected);
}

#[test]
fn the_digest_is_what_sha256sum_says_of_the_uncompressed_tar() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("bundle.tar.gz");
    fs::write(&archive, bundle().compressed).unwrap();
    let gunzip = Command::new("gzip")
        .arg("--decompress")
        .arg("--stdout")
        .arg(&archive)
        .output()
        .unwrap();
    assert!(gunzip.status.success());
    assert_eq!(Digest::of(&gunzip.stdout), bundle().digest);

    let tar = folder.path().join("bundle.tar");
    fs::write(&tar, gunzip.stdout).unwrap();
    let sum = Command::new("sha256sum").arg(&tar).output().unwrap();
    assert!(
        String::from_utf8(sum.stdout)
            .unwrap()
            .starts_with(&bundle().digest.hex())
    );
}

#[test]
fn gnu_tar_can_be_made_to_write_the_same_bytes() {
    let mut files = FileTree::new();
    for (path, entry) in golden() {
        let target_fits = !matches!(&entry, Entry::Link { target } if target.len() > 100);
        let is_split_at_155 = path.folder().is_none_or(|folder| folder.len() <= 155);
        if path.file_name().len() <= 100 && is_split_at_155 && target_fits {
            files.insert(path, entry).unwrap();
        }
    }
    assert_eq!(
        files.len(),
        golden().len() - 4,
        "all but those that need pax headers"
    );

    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let list = folder.path().join("list");
    let names: Vec<&str> = files.paths().map(BundlePath::as_str).collect();
    fs::write(
        &list,
        names.join(
            "
",
        ),
    )
    .unwrap();
    write(&files, &root);
    let tar = Command::new("tar")
        .args([
            "--create",
            "--file=-",
            "--format=ustar",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
        ])
        .args([
            "--mtime=@0",
            "--blocking-factor=1",
            "--no-recursion",
            "--verbatim-files-from",
        ])
        .arg("--directory")
        .arg(&root)
        .arg("--files-from")
        .arg(&list)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(tar.status.success(), "{}", String::from_utf8_lossy(&tar.stderr));
    assert_eq!(
        Digest::of(&tar.stdout),
        Bundle::build(&files, &Caps::default()).unwrap().digest
    );
}

fn write(tree: &FileTree, root: &Path) {
    for (path, entry) in tree {
        let place = root.join(path.as_str());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        match entry {
            Entry::File { contents, executable } => {
                fs::write(&place, contents).unwrap();
                let mode = if *executable { 0o755 } else { 0o644 };
                fs::set_permissions(&place, Permissions::from_mode(mode)).unwrap();
            }
            Entry::Link { target } => symlink(target, &place).unwrap(),
        }
    }
}

fn collect(root: &Path, folder: &Path, found: &mut BTreeMap<String, Unpacked>) {
    for item in fs::read_dir(folder).unwrap() {
        let place = item.unwrap().path();
        let kind = fs::symlink_metadata(&place).unwrap();
        if kind.is_dir() {
            collect(root, &place, found);
            continue;
        }
        let unpacked = if kind.is_symlink() {
            Unpacked::Link {
                target: fs::read_link(&place)
                    .unwrap()
                    .into_os_string()
                    .into_string()
                    .unwrap(),
            }
        } else {
            Unpacked::File {
                mode: kind.permissions().mode() & 0o7777,
                contents: fs::read(&place).unwrap(),
            }
        };
        let path = place.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        found.insert(path, unpacked);
    }
}
