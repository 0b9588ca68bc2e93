//! `runner read` on real folders: all of the files in one state, or a report that says why not.

use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use codeworkspace_bundle::{BundleReader, Entry};
use codeworkspace_protocol::{
    BEGIN, FailedReading, FinishedReading, ReadArguments, ReadFailure, ReadReport, ReadingReader,
    RefusedLinks,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::fixture::RUNNER;

const MIB: u64 = 1024 * 1024;

/// A volume, and how it is read.
struct Volume {
    directory: TempDir,
    arguments: ReadArguments,
}

/// A reader that somebody is attached to.
struct Attached {
    reader: Child,
    stream: ReadingReader<ChildStdout>,
}

/// What a path holds: contents and whether they are a program, or a link's target.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    File(String),
    Program(String),
    Link(String),
}

impl Volume {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let arguments = ReadArguments {
            folder: directory.path().to_str().unwrap().to_owned(),
            below: None,
            links: RefusedLinks::Fail,
            max_entries: 1000,
            max_file_bytes: 8 * MIB,
            max_total_bytes: 16 * MIB,
        };
        Self { directory, arguments }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        let at = self.at(path);
        fs_err::create_dir_all(at.parent().unwrap()).unwrap();
        fs_err::write(at, contents).unwrap();
        self
    }

    fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.at(path)).unwrap();
        self
    }

    fn below(mut self, path: &str) -> Self {
        self.arguments.below = Some(path.to_owned());
        self
    }

    fn command(&self, wrapper: &[&str]) -> Command {
        let mut words = wrapper.iter().copied().chain([RUNNER]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .args(self.arguments.to_args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    fn attach(&self, wrapper: &[&str]) -> Attached {
        let mut reader = self.command(wrapper).stderr(Stdio::null()).spawn().unwrap();
        reader.stdin.as_mut().unwrap().write_all(BEGIN).unwrap();
        let stream = ReadingReader::new(reader.stdout.take().unwrap());
        Attached { reader, stream }
    }

    fn read(&self) -> (Vec<(String, Found)>, FinishedReading) {
        self.attach(&[]).finish().unwrap()
    }

    fn failure(&self) -> (ReadFailure, String) {
        self.attach(&[]).failure()
    }
}

impl Attached {
    fn finish(mut self) -> Result<(Vec<(String, Found)>, FinishedReading), FailedReading> {
        let mut found = Vec::new();
        let mut digest = None;
        // A reading that fails leaves a part of a bundle, whatever is wrong with that.
        if let Ok(mut bundle) = BundleReader::new(&mut self.stream) {
            for (path, entry) in bundle.by_ref().map_while(Result::ok) {
                found.push((path.to_string(), Found::from(entry)));
            }
            digest = bundle.finish().ok();
        }
        let report = self.stream.report().unwrap();
        drop(self.reader.stdin.take());
        let status = self.reader.wait().unwrap();
        match report {
            ReadReport::Finished(finished) => {
                assert_eq!(
                    digest.map(|digest| digest.to_string()),
                    Some(finished.digest.clone())
                );
                assert_eq!(status.code(), Some(0));
                Ok((found, finished))
            }
            ReadReport::Failed(failed) => {
                assert_eq!(status.code(), Some(1));
                Err(failed)
            }
        }
    }

    fn failure(self) -> (ReadFailure, String) {
        let failed = self.finish().unwrap_err();
        (failed.reason, failed.message)
    }
}

impl From<Entry> for Found {
    fn from(entry: Entry) -> Self {
        match entry {
            Entry::Link { target } => Self::Link(target),
            Entry::File { contents, executable } => {
                let text = String::from_utf8(contents.to_vec()).unwrap();
                if executable {
                    Self::Program(text)
                } else {
                    Self::File(text)
                }
            }
        }
    }
}

/// Bytes that cannot be compressed, so that they fill the pipe and the reader has to wait.
fn noise(length: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()[0]
    };
    (0..length).map(|_| next()).collect()
}

fn changed(name: &str) -> (ReadFailure, String) {
    (ReadFailure::Changed, format!("{name} changed while it was read"))
}

#[test]
fn files_links_and_scripts_arrive_in_the_order_of_a_bundle() {
    let volume = Volume::new()
        .file("b/inner/__init__.py", "")
        .file("b.txt", "text")
        .file("b/run", "#!/bin/sh\n")
        .file("a0", "not a script: its mode does not count")
        .link("b/latest", "../b.txt");
    fs_err::set_permissions(volume.at("a0"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (found, finished) = volume.read();
    let expected = [
        (
            "a0",
            Found::File("not a script: its mode does not count".to_owned()),
        ),
        ("b.txt", Found::File("text".to_owned())),
        ("b/inner/__init__.py", Found::File(String::new())),
        ("b/latest", Found::Link("../b.txt".to_owned())),
        ("b/run", Found::Program("#!/bin/sh\n".to_owned())),
    ];
    assert_eq!(found, expected.map(|(path, found)| (path.to_owned(), found)));
    assert_eq!((finished.skipped, finished.skipped_total), (Vec::new(), 0));
    assert_eq!(volume.read().1.digest, finished.digest);
}

#[test]
fn repositories_and_what_a_repair_found_are_left_out() {
    let volume = Volume::new()
        .file(".git/config", "token")
        .file("module/.git", "gitdir: ../.git/modules/module")
        .file("module/lost+found/kept", "")
        .file("lost+found/17", "");
    let names: Vec<_> = volume.read().0.into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, ["module/lost+found/kept"]);
}

#[test]
fn a_folder_of_the_volume_is_read_as_if_it_were_the_volume() {
    let volume = Volume::new()
        .file("team/tools/main.py", "")
        .file("secret", "")
        .below("team/tools");
    let names: Vec<_> = volume.read().0.into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, ["main.py"]);
}

#[test]
fn a_folder_that_is_missing_no_folder_or_a_link_is_not_read() {
    let missing = Volume::new().below("tools").failure();
    assert_eq!(
        missing,
        (
            ReadFailure::NotFound,
            "the folder `tools` is not there".to_owned()
        )
    );
    let no_folder = "`tools` of the folder's path is no folder, or a link, which is not followed".to_owned();
    for volume in [
        Volume::new().link("tools", "/etc"),
        Volume::new().file("tools", ""),
    ] {
        let volume = volume.below("tools");
        assert_eq!(volume.failure(), (ReadFailure::NotFound, no_folder.clone()));
    }
}

#[test]
fn links_that_leave_the_folder_are_named_or_left_out_as_the_workspace_wants() {
    let mut volume = Volume::new()
        .file("a/kept", "")
        .link("a/out", "../../etc/passwd")
        .link("b", "/etc/passwd");
    let out = "link `a/out` to `../../etc/passwd` points outside the bundle";
    let absolute = "link `b` to `/etc/passwd` is absolute: only links to places inside the bundle are kept";
    assert_eq!(volume.failure(), (ReadFailure::Refused, out.to_owned()));
    volume.arguments.links = RefusedLinks::Skip;
    let (found, finished) = volume.read();
    assert_eq!(found, [("a/kept".to_owned(), Found::File(String::new()))]);
    assert_eq!(
        (finished.skipped, finished.skipped_total),
        (vec![out.to_owned(), absolute.to_owned()], 2)
    );
}

#[test]
fn what_is_neither_file_nor_folder_nor_link_is_refused_by_name() {
    let refused = |volume: &Volume| {
        let (reason, message) = volume.failure();
        assert_eq!(reason, ReadFailure::Refused);
        message
    };
    let volume = Volume::new();
    fs_err::create_dir(volume.at("a")).unwrap();
    mknodat(CWD, volume.at("a/pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert_eq!(
        refused(&volume),
        "`a/pipe` is a named pipe; only files, folders and links can be read"
    );
    let volume = Volume::new();
    let _listener = UnixListener::bind(volume.at("agent.sock")).unwrap();
    assert_eq!(
        refused(&volume),
        "`agent.sock` is a socket; only files, folders and links can be read"
    );
}

#[test]
fn names_that_no_bundle_can_have_are_refused_and_shown_without_their_control_characters() {
    for (name, message) in [
        (&b"a\nb"[..], "`a\\nb` has a control character"),
        (&b"a\\b"[..], "`a\\b` has a backslash: write `/` between folders"),
        (&b"caf\xe9"[..], "`caf\\xe9` has a name that is not UTF-8"),
    ] {
        let volume = Volume::new();
        let path = volume.directory.path().join(std::ffi::OsStr::from_bytes(name));
        fs_err::write(path, "").unwrap();
        assert_eq!(volume.failure(), (ReadFailure::Refused, message.to_owned()));
    }
}

#[test]
fn folders_nested_without_end_are_refused() {
    let volume = Volume::new();
    let mut folder = rustix::fs::open(
        volume.directory.path(),
        rustix::fs::OFlags::DIRECTORY,
        Mode::empty(),
    )
    .unwrap();
    for _ in 0..2_000 {
        rustix::fs::mkdirat(&folder, "d", Mode::RWXU).unwrap();
        folder = rustix::fs::openat(&folder, "d", rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let (reason, message) = volume.failure();
    assert_eq!(reason, ReadFailure::Refused);
    assert!(
        message.ends_with("is 1025 bytes long; at most 1024 are allowed"),
        "{message}"
    );
}

#[test]
fn more_than_allowed_is_refused_with_both_numbers() {
    let mut volume = Volume::new().file("a", "123").file("b", "1234");
    volume.arguments.max_file_bytes = 3;
    let large = |message: &str| (ReadFailure::TooLarge, message.to_owned());
    let file = large("`b` is 4 bytes large; a file may have at most 3");
    assert_eq!(volume.failure(), file);
    (volume.arguments.max_file_bytes, volume.arguments.max_total_bytes) = (4, 6);
    let total = large("the bundle's files are 7 bytes large; together they may have at most 6");
    assert_eq!(volume.failure(), total);
    volume.arguments.max_entries = 1;
    let entries = large("the bundle has 2 entries; at most 1 are allowed");
    assert_eq!(volume.failure(), entries);
}

#[test]
fn hundreds_of_thousands_of_empty_files_or_folders_end_at_the_limit() {
    let volume = Volume::new();
    fs_err::create_dir(volume.at("flood")).unwrap();
    for number in 0..300_000 {
        std::fs::File::create(volume.at(&format!("flood/{number}"))).unwrap();
    }
    let entries = "the bundle has 1001 entries; at most 1000 are allowed".to_owned();
    assert_eq!(volume.failure(), (ReadFailure::TooLarge, entries));
    let volume = Volume::new();
    for number in 0..1_001 {
        fs_err::create_dir(volume.at(&number.to_string())).unwrap();
    }
    let folders = "there are more than 1000 folders".to_owned();
    assert_eq!(volume.failure(), (ReadFailure::TooLarge, folders));
}

/// Begins to read, stops in the middle of `a`, lets `change` happen and returns how the reading ended.
fn failure_after(volume: &Volume, change: impl FnOnce(&Volume)) -> (ReadFailure, String) {
    let mut attached = volume.attach(&[]);
    attached.stream.read_exact(&mut [0]).unwrap();
    change(volume);
    // Without its first byte it is no bundle any more: only the report counts.
    let mut rest = Vec::new();
    attached.stream.read_to_end(&mut rest).unwrap();
    attached.failure()
}

fn busy() -> Volume {
    Volume::new()
        .file("a", noise(2 * MIB))
        .file("b", "before")
        .file("c/d", "")
}

#[test]
fn a_file_that_is_swapped_between_listing_and_reading_is_not_read() {
    let swapped = failure_after(&busy(), |volume| {
        fs_err::write(volume.at("new"), "longer than before").unwrap();
        fs_err::rename(volume.at("new"), volume.at("b")).unwrap();
    });
    assert_eq!(swapped, changed("`b`"));
    let by_link = failure_after(&busy(), |volume| {
        fs_err::remove_file(volume.at("b")).unwrap();
        symlink("/etc/passwd", volume.at("b")).unwrap();
    });
    assert_eq!(by_link, changed("`b`"));
    let by_pipe = failure_after(&busy(), |volume| {
        fs_err::remove_file(volume.at("b")).unwrap();
        mknodat(CWD, volume.at("b"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    });
    assert_eq!(by_pipe, changed("`b`"));
    let gone = failure_after(&busy(), |volume| fs_err::remove_file(volume.at("b")).unwrap());
    assert_eq!(gone, changed("`b`"));
    let folder_by_link = failure_after(&busy(), |volume| {
        fs_err::remove_dir_all(volume.at("c")).unwrap();
        symlink("/etc", volume.at("c")).unwrap();
    });
    assert_eq!(folder_by_link, changed("`c`"));
}

#[test]
fn a_file_that_changes_while_it_is_read_makes_no_mixture() {
    let overwritten = failure_after(&busy(), |volume| {
        let mut file = fs_err::OpenOptions::new()
            .write(true)
            .open(volume.at("a"))
            .unwrap();
        file.write_all(b"other bytes").unwrap();
    });
    assert_eq!(overwritten, changed("`a`"));
    let (reason, message) = failure_after(&busy(), |volume| {
        let file = fs_err::OpenOptions::new()
            .write(true)
            .open(volume.at("a"))
            .unwrap();
        file.set_len(MIB).unwrap();
    });
    assert_eq!(
        (reason, message.as_str()),
        (
            ReadFailure::Changed,
            "`a` has not the 2097152 bytes that it had at first"
        )
    );
}

#[test]
fn a_file_that_comes_while_its_folder_is_read_makes_no_mixture() {
    let added = failure_after(&busy(), |volume| fs_err::write(volume.at("z"), "").unwrap());
    assert_eq!(added, changed("the volume's folder"));
}

#[test]
fn what_the_pods_user_may_not_read_is_named() {
    if !rustix::process::geteuid().is_root() {
        // Only root can have files that this user may not read and remove them again.
        return;
    }
    let volume = Volume::new().file("open", "").file("shut/key", "");
    for (path, mode) in [("", 0o755), ("shut", 0o755), ("shut/key", 0o600)] {
        fs_err::set_permissions(volume.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let user = ["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups"];
    assert_eq!(
        volume.attach(&user).failure(),
        (
            ReadFailure::PermissionDenied,
            "`shut/key` may not be read by user 65532, as which volumes are read".to_owned()
        )
    );
}

#[test]
fn nothing_is_sent_before_somebody_asks_or_when_nobody_does() {
    let volume = Volume::new().file("a", "");
    let mut reader = volume.command(&[]).stderr(Stdio::piped()).spawn().unwrap();
    drop(reader.stdin.take());
    let output = reader.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "runner: the files cannot be sent: nobody asked for them\n"
    );
}
