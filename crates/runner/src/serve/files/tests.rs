//! Deliveries, removals and bundles on a real file system.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use codeworkspace_protocol::session::{ErrorCode, FileEntry, FileKind, SessionError, WrittenFiles};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// Paths and contents.
type Files<'a> = &'a [(&'a str, &'a [u8])];

struct World {
    directory: TempDir,
    root: Arc<Root>,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = Arc::new(Root::open(directory.path()).unwrap());
        Self { directory, root }
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let world = Self::new();
        for (path, text) in files {
            let path = world.path(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        }
        world
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.directory.path().join(path)
    }

    fn deliver(&self, files: &[(&str, &[u8])]) -> Result<WrittenFiles, SessionError> {
        write_tar(&self.root, tar_of(files).as_slice())
    }

    /// Every file and folder, hidden ones too; folders end with a slash and have no contents.
    fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let mut contents = BTreeMap::new();
        collect(self.directory.path(), "", &mut contents);
        contents
    }
}

fn collect(folder: &Path, prefix: &str, contents: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs_err::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            contents.insert(format!("{name}/"), Vec::new());
            collect(&entry.path(), &format!("{name}/"), contents);
        } else {
            contents.insert(name, fs_err::read(entry.path()).unwrap_or_default());
        }
    }
}

fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, contents) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, *contents).unwrap();
    }
    builder.into_inner().unwrap()
}

fn code<T: std::fmt::Debug>(answer: Result<T, SessionError>) -> ErrorCode {
    answer.unwrap_err().code
}

fn paths(paths: &[&str]) -> Vec<SessionPath> {
    paths
        .iter()
        .map(|path| SessionPath::parse_inner(path).unwrap())
        .collect()
}

#[test]
fn files_of_any_name_and_content_are_written_with_their_folders() {
    let world = World::with(&[("kept", "k"), ("data/old", "o")]);
    let long = format!("deep/{}", "n".repeat(250));
    let noise: Vec<u8> = (0..=255).collect();
    let files: &[(&str, &[u8])] = &[
        ("a b%20#?.txt", b"1"),
        ("data/größe 文件 🦀", &noise),
        ("data/old", b"new"),
        ("empty", b""),
        (&long, b"3"),
    ];
    let written = world.deliver(files).unwrap();
    assert_eq!(written, WrittenFiles { files: 5, bytes: 261 });
    let mut expected: BTreeMap<String, Vec<u8>> = files
        .iter()
        .map(|(path, contents)| ((*path).to_owned(), contents.to_vec()))
        .collect();
    expected.extend(["data/", "deep/"].map(|folder| (folder.to_owned(), Vec::new())));
    expected.insert("kept".to_owned(), b"k".to_vec());
    assert_eq!(world.contents(), expected);
}

#[test]
fn an_executable_stays_one_and_others_do_not() {
    let world = World::new();
    let mut builder = tar::Builder::new(Vec::new());
    for (path, mode) in [("run", 0o755), ("data", 0o600)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_mode(mode);
        builder.append_data(&mut header, path, &b""[..]).unwrap();
    }
    write_tar(&world.root, builder.into_inner().unwrap().as_slice()).unwrap();
    let executable =
        |path: &str| fs_err::metadata(world.path(path)).unwrap().permissions().mode() & 0o100 != 0;
    assert!(executable("run") && !executable("data"));
}

#[test]
fn one_file_that_cannot_be_written_keeps_all_from_being_written() {
    let world = World::with(&[("file", "f"), ("folder/x", "x"), ("z", "z")]);
    symlink("/etc", world.path("out")).unwrap();
    let before = world.contents();
    let cases: &[(Files<'_>, ErrorCode)] = &[
        (&[("a", b"1"), ("folder", b"2")], ErrorCode::WrongKind),
        (&[("a", b"1"), ("file/x", b"2")], ErrorCode::WrongKind),
        (&[("new", b"1"), ("new/x", b"2")], ErrorCode::WrongKind),
        (&[("a", b"1"), ("a", b"2")], ErrorCode::InvalidRequest),
        (&[("a/b", b"1"), ("out/passwd", b"2")], ErrorCode::InvalidPath),
    ];
    for (files, expected) in cases {
        assert_eq!(code(world.deliver(files)), *expected, "{files:?}");
        assert_eq!(world.contents(), before, "{files:?}");
    }
}

#[test]
fn what_fails_only_when_it_is_placed_is_taken_back() {
    let world = World::with(&[("a", "old"), ("b/kept", "k")]);
    let before = world.contents();
    let mut delivery = write::Delivery::begin(&world.root).unwrap();
    for path in paths(&["a", "c/d/e", "z"]) {
        delivery.take(path, false, None, &b"new"[..]).unwrap();
    }
    // The last one of them becomes a folder after everything was found good.
    let committed = delivery.commit_after_check(|| fs_err::create_dir(world.path("z")).unwrap());
    assert_eq!(code(committed), ErrorCode::WrongKind);
    fs_err::remove_dir(world.path("z")).unwrap();
    assert_eq!(world.contents(), before);
}

#[test]
fn a_stream_that_is_no_tar_of_files_is_refused() {
    let world = World::new();
    let whole = tar_of(&[("a", &[7; 2000])]);
    assert_eq!(
        code(write_tar(&world.root, &whole[..1500])),
        ErrorCode::InvalidRequest
    );
    assert_eq!(
        code(write_tar(&world.root, &[b'x'; 2048][..])),
        ErrorCode::InvalidRequest
    );
    let mut builder = tar::Builder::new(Vec::new());
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    builder.append_link(&mut link, "link", "/etc").unwrap();
    let linked = builder.into_inner().unwrap();
    assert_eq!(
        code(write_tar(&world.root, linked.as_slice())),
        ErrorCode::InvalidRequest
    );
    for path in ["../x", "/etc/x", "a/../../x"] {
        let mut escaping = tar_of(&[("xxxxxxxxxxxxxxxx", b"1")]);
        escaping[..16].fill(0);
        escaping[..path.len()].copy_from_slice(path.as_bytes());
        let sum: u32 = escaping[..512]
            .iter()
            .enumerate()
            .map(|(index, byte)| {
                if (148..156).contains(&index) {
                    32
                } else {
                    u32::from(*byte)
                }
            })
            .sum();
        escaping[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        assert_eq!(
            code(write_tar(&world.root, escaping.as_slice())),
            ErrorCode::InvalidPath,
            "{path}"
        );
    }
    assert_eq!(world.contents(), BTreeMap::new());
}

#[test]
fn a_folder_is_listed_with_kinds_and_sizes_by_name() {
    let world = World::with(&[("b", "12"), ("a/x", "1")]);
    symlink("b", world.path("link")).unwrap();
    let entry = |path: &str, kind, size| FileEntry {
        path: path.to_owned(),
        kind,
        size,
    };
    assert_eq!(
        list(&world.root, None).unwrap(),
        [
            entry("a", FileKind::Folder, 0),
            entry("b", FileKind::File, 2),
            entry("link", FileKind::Link, 0)
        ]
    );
    let a = SessionPath::parse("a").unwrap();
    assert_eq!(
        list(&world.root, a.as_ref()).unwrap(),
        [entry("a/x", FileKind::File, 1)]
    );
    for (path, expected) in [("b", ErrorCode::WrongKind), ("c", ErrorCode::NotFound)] {
        let path = SessionPath::parse(path).unwrap();
        assert_eq!(code(list(&world.root, path.as_ref())), expected);
    }
}

#[test]
fn only_regular_files_are_read() {
    let world = World::with(&[("file", "text"), ("folder/x", "")]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let open = |path: &str| open_file(&world.root, &paths(&[path])[0]).map(|(_, size)| size);
    assert_eq!(open("file"), Ok(4));
    assert_eq!(code(open("folder")), ErrorCode::WrongKind);
    assert_eq!(code(open("pipe")), ErrorCode::WrongKind);
    assert_eq!(code(open("missing")), ErrorCode::NotFound);
    assert_eq!(code(open("file/x")), ErrorCode::WrongKind);
}

#[test]
fn all_is_removed_or_nothing() {
    let world = World::with(&[("a", "1"), ("b/c/d", "2"), ("b/e", "3"), ("f", "4")]);
    symlink("f", world.path("link")).unwrap();
    let before = world.contents();
    assert_eq!(
        code(remove(&world.root, paths(&["a", "nothing"]))),
        ErrorCode::NotFound
    );
    assert_eq!(world.contents(), before);
    remove(&world.root, paths(&["b/c", "b", "a", "link", "a"])).unwrap();
    assert_eq!(
        world.contents(),
        BTreeMap::from([("f".to_owned(), b"4".to_vec())])
    );
}

#[test]
fn a_bundle_comes_whole_or_not_at_all() {
    use codeworkspace_bundle::{Bundle, Caps, Entry, FileTree};
    let mut tree = FileTree::new();
    for (path, text) in [("main.py", "print()"), ("lib/a/b.py", "x = 1")] {
        let entry = Entry::File {
            contents: bytes::Bytes::from_static(text.as_bytes()),
            executable: false,
        };
        tree.insert(path.parse().unwrap(), entry).unwrap();
    }
    let bundle = Bundle::build(&tree, &Caps::default()).unwrap();
    let digest = bundle.digest.to_string();
    let world = World::with(&[("lib/mine", "m")]);
    let before = world.contents();
    let other = digest.replace(char::is_numeric, "0");
    assert_eq!(
        code(unpack(&world.root, &other, bundle.compressed.as_ref())),
        ErrorCode::DigestMismatch
    );
    let half = &bundle.compressed[..bundle.compressed.len() / 2];
    assert_eq!(
        code(unpack(&world.root, &digest, half)),
        ErrorCode::DigestMismatch
    );
    assert_eq!(
        code(unpack(&world.root, &digest, bundle.compressed.as_ref())),
        ErrorCode::WrongKind,
        "something stands in its way"
    );
    assert_eq!(world.contents(), before);
    remove(&world.root, paths(&["lib"])).unwrap();
    unpack(&world.root, &digest, bundle.compressed.as_ref()).unwrap();
    let expected = [
        ("lib/", ""),
        ("lib/a/", ""),
        ("lib/a/b.py", "x = 1"),
        ("main.py", "print()"),
    ];
    assert_eq!(
        world.contents(),
        expected
            .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
            .into()
    );
}

proptest! {
    #[test]
    fn whatever_comes_as_a_tar_nothing_is_left_half_done(
        junk in proptest::collection::vec(any::<u8>(), 0..1600), position in 0usize..3072, flipped in any::<u8>(),
    ) {
        let world = World::new();
        let _ = write_tar(&world.root, junk.as_slice());
        prop_assert!(world.contents().is_empty());
        let mut damaged = tar_of(&[("a/b", b"1"), ("c", b"2")]);
        let position = position % damaged.len();
        damaged[position] = flipped;
        let written = write_tar(&world.root, damaged.as_slice());
        let files = world.contents().keys().filter(|path| !path.ends_with('/')).count() as u64;
        prop_assert_eq!(files, written.map_or(0, |written| written.files));
    }

    #[test]
    fn deliveries_do_what_a_map_of_files_would(
        deliveries in proptest::collection::vec(proptest::collection::btree_map("[ab](/[ab]){0,2}", "[xy]{0,3}", 1..4), 1..6),
    ) {
        let world = World::new();
        let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for delivery in &deliveries {
            let files: Vec<(&str, &[u8])> = delivery.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
            let mut next = model.clone();
            next.extend(delivery.iter().map(|(path, text)| (path.clone(), text.as_bytes().to_vec())));
            // A file is nobody's folder.
            let fits = next.keys().all(|path| next.keys().all(|other| !other.starts_with(&format!("{path}/"))));
            prop_assert_eq!(world.deliver(&files).is_ok(), fits);
            if fits {
                model = next;
            }
            let files: BTreeMap<_, _> = world.contents().into_iter().filter(|(path, _)| !path.ends_with('/')).collect();
            prop_assert_eq!(&files, &model);
        }
    }
}
