//! `runner prepare` on real volumes: complete, repeatable, and nothing of a wrong bundle.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use bytes::Bytes;
use codeworkspace_bundle::{Bundle, Caps, Entry, FileTree};
use codeworkspace_protocol::{Cause, RunRecord, layout};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use tempfile::TempDir;

use crate::fixture::{RUNNER, silent, timeless, unshare};

/// The volumes of an init container, and the bundle in front of it.
struct Pod {
    directory: TempDir,
    digest: String,
}

/// What a path in a volume is: its mode, and its contents or target.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Folder(u32),
    File(u32, Vec<u8>),
    Link(PathBuf),
}

impl Pod {
    fn with(bundle: &Bundle) -> Self {
        let pod = Self {
            directory: tempfile::tempdir().unwrap(),
            digest: bundle.digest.to_string(),
        };
        fs_err::create_dir(pod.target()).unwrap();
        fs_err::create_dir(pod.tools()).unwrap();
        fs_err::write(pod.bundle(), &bundle.compressed).unwrap();
        pod
    }

    fn bundle(&self) -> PathBuf {
        self.directory.path().join("bundle.tar.gz")
    }

    fn target(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    fn tools(&self) -> PathBuf {
        self.directory.path().join("tools")
    }

    fn termination_log(&self) -> PathBuf {
        self.directory.path().join("termination-log")
    }

    fn command(&self, wrapper: &[String]) -> Command {
        let mut words = wrapper.iter().map(String::as_str).chain([RUNNER]);
        let mut command = Command::new(words.next().unwrap());
        command.args(words).arg("prepare");
        command
            .arg("--bundle")
            .arg(self.bundle())
            .arg("--digest")
            .arg(&self.digest);
        command
            .arg("--target")
            .arg(self.target())
            .arg("--install")
            .arg(self.tools());
        command.arg("--termination-log").arg(self.termination_log());
        command
    }

    fn prepare(&self) -> Output {
        self.command(&[]).output().unwrap()
    }

    fn prepare_well(&self) {
        let output = self.prepare();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!self.termination_log().exists(), "a success has nothing to say");
    }

    /// The message of a failure, which is the same on standard error and in the record.
    fn fail(&self, output: &Output, cause: Cause) -> String {
        assert_eq!(output.status.code(), Some(1));
        let record = RunRecord::parse(&fs_err::read_to_string(self.termination_log()).unwrap()).unwrap();
        let message = record.message.clone().unwrap();
        let mut expected = silent(cause, None, None);
        expected.message = Some(message.clone());
        assert_eq!(timeless(&record), expected);
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            format!("runner: {message}\n")
        );
        message.replace(self.directory.path().to_str().unwrap(), "")
    }
}

fn contents_of(folder: &Path) -> BTreeMap<String, Found> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs_err::read_dir(&current).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs_err::symlink_metadata(&path).unwrap();
            let mode = metadata.mode() & 0o7777;
            let what = if metadata.is_symlink() {
                Found::Link(fs_err::read_link(&path).unwrap())
            } else if metadata.is_dir() {
                folders.push(path.clone());
                Found::Folder(mode)
            } else {
                Found::File(mode, fs_err::read(&path).unwrap())
            };
            found.insert(
                path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned(),
                what,
            );
        }
    }
    found
}

fn file(contents: &str, executable: bool) -> Entry {
    Entry::File {
        contents: Bytes::copy_from_slice(contents.as_bytes()),
        executable,
    }
}

fn bundle_of(entries: impl IntoIterator<Item = (String, Entry)>) -> Bundle {
    let mut tree = FileTree::new();
    for (path, entry) in entries {
        tree.insert(path.parse().unwrap(), entry).unwrap();
    }
    Bundle::build(&tree, &Caps::default()).unwrap()
}

fn small_bundle() -> Bundle {
    bundle_of([
        ("-rf".to_owned(), file("a name, not an option", false)),
        (
            "current".to_owned(),
            Entry::Link {
                target: "src/main.py".to_owned(),
            },
        ),
        ("empty".to_owned(), file("", false)),
        ("src/deep/er/file.txt".to_owned(), file("deep", false)),
        ("src/main.py".to_owned(), file("#!/usr/bin/env python3\n", true)),
        (
            "src/up".to_owned(),
            Entry::Link {
                target: "../empty".to_owned(),
            },
        ),
    ])
}

fn small_contents() -> BTreeMap<String, Found> {
    [
        ("-rf", Found::File(0o664, b"a name, not an option".to_vec())),
        ("current", Found::Link("src/main.py".into())),
        ("empty", Found::File(0o664, Vec::new())),
        ("src", Found::Folder(0o775)),
        ("src/deep", Found::Folder(0o775)),
        ("src/deep/er", Found::Folder(0o775)),
        ("src/deep/er/file.txt", Found::File(0o664, b"deep".to_vec())),
        (
            "src/main.py",
            Found::File(0o775, b"#!/usr/bin/env python3\n".to_vec()),
        ),
        ("src/up", Found::Link("../empty".into())),
    ]
    .map(|(path, found)| (path.to_owned(), found))
    .into()
}

fn large_bundle() -> Bundle {
    bundle_of((0..300).map(|number| {
        let path = format!("folder-{}/{}/file-{number}", number % 7, number % 31);
        (
            path,
            file(&format!("{number} ").repeat(number % 60), number % 2 == 0),
        )
    }))
}

#[test]
fn the_volumes_hold_the_bundle_and_the_runner_whatever_the_umask() {
    for umask in ["0000", "0077"] {
        let pod = Pod::with(&small_bundle());
        let with_umask = ["sh", "-c", "umask $0; exec \"$@\"", umask].map(str::to_owned);
        let output = pod.command(&with_umask).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(contents_of(&pod.target()), small_contents());
        let installed = contents_of(&pod.tools());
        assert!(
            installed
                == [(
                    "runner".to_owned(),
                    Found::File(0o755, fs_err::read(RUNNER).unwrap())
                )]
                .into(),
            "not the runner alone: {:?}",
            installed.keys()
        );
    }
}

#[test]
fn the_installed_runner_runs() {
    let pod = Pod::with(&small_bundle());
    pod.prepare_well();
    let mut command = Command::new(pod.tools().join(layout::RUNNER_FILE));
    command
        .arg("exec")
        .arg("--workdir")
        .arg(pod.target())
        .args(["--grace-ms", "1", "--termination-log"]);
    let output = command
        .arg(pod.termination_log())
        .args(["--", "cat", "src/up", "src/deep/er/file.txt"])
        .output();
    assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), "deep");
}

#[test]
fn a_volume_of_the_pods_group_stays_the_groups() {
    let pod = Pod::with(&small_bundle());
    // As kubelet sets up a volume with an fsGroup.
    let as_user: &[&str] = if rustix::process::geteuid().is_root() {
        for folder in [pod.target(), pod.tools(), pod.directory.path().to_owned()] {
            std::os::unix::fs::chown(folder, None, Some(layout::USER_ID)).unwrap();
        }
        &["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups"]
    } else {
        &["env"]
    };
    for folder in [pod.target(), pod.tools(), pod.directory.path().to_owned()] {
        fs_err::set_permissions(folder, std::fs::Permissions::from_mode(0o2770)).unwrap();
    }
    let as_user: Vec<_> = as_user.iter().map(|word| (*word).to_owned()).collect();
    let output = pod.command(&as_user).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let contents = contents_of(&pod.target());
    assert_eq!(contents["src/deep"], Found::Folder(0o2775));
    assert_eq!(
        contents["src/main.py"],
        Found::File(0o775, b"#!/usr/bin/env python3\n".to_vec())
    );
    let group = fs_err::metadata(pod.target()).unwrap().gid();
    for path in contents.keys() {
        assert_eq!(
            fs_err::symlink_metadata(pod.target().join(path)).unwrap().gid(),
            group,
            "{path}"
        );
    }
}

#[test]
fn preparing_again_restores_exactly_the_bundle_whatever_a_body_did() {
    let pod = Pod::with(&small_bundle());
    pod.prepare_well();
    let outside = pod.directory.path().join("outside");
    fs_err::create_dir(&outside).unwrap();
    fs_err::write(outside.join("precious"), "keep").unwrap();
    let target = pod.target();
    fs_err::remove_dir_all(target.join("src")).unwrap();
    symlink(&outside, target.join("src")).unwrap();
    fs_err::write(target.join("left-over"), "x").unwrap();
    fs_err::create_dir_all(target.join("closed/inner/most")).unwrap();
    fs_err::write(target.join("closed/inner/most/file"), "x").unwrap();
    symlink(&outside, target.join("closed/way-out")).unwrap();
    for folder in ["closed/inner/most", "closed/inner", "closed"] {
        fs_err::set_permissions(target.join(folder), std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    fs_err::create_dir_all(target.join(".removed-1/x")).unwrap();
    fs_err::write(target.join(".removed-2"), "x").unwrap();
    fs_err::write(pod.tools().join(".runner.unfinished"), "x").unwrap();

    pod.prepare_well();
    assert_eq!(contents_of(&target), small_contents());
    assert_eq!(
        contents_of(&outside),
        [("precious".to_owned(), Found::File(0o644, b"keep".to_vec()))].into()
    );
    assert_eq!(contents_of(&pod.tools()).keys().collect::<Vec<_>>(), ["runner"]);
}

#[test]
fn folders_nested_too_deeply_for_any_path_are_removed() {
    let pod = Pod::with(&small_bundle());
    // Far beyond the longest path (4,096 bytes) and the usual number of open files.
    let open =
        |above: BorrowedFd<'_>, name: &Path| openat(above, name, OFlags::DIRECTORY, Mode::empty()).unwrap();
    let mut folder = open(CWD, &pod.target());
    for _ in 0..5000 {
        mkdirat(&folder, "d", Mode::RWXU).unwrap();
        folder = open(folder.as_fd(), Path::new("d"));
    }
    pod.prepare_well();
    assert_eq!(contents_of(&pod.target()), small_contents());
}

#[test]
fn preparing_after_a_kill_at_any_moment_gives_the_same_content() {
    let bundle = large_bundle();
    let pod = Pod::with(&bundle);
    let begin = Instant::now();
    pod.prepare_well();
    let whole = begin.elapsed();
    let expected = contents_of(&pod.target());
    assert_eq!(
        expected
            .values()
            .filter(|found| matches!(found, Found::File(..)))
            .count(),
        300
    );
    for part in 0..8_u32 {
        let mut runner = pod.command(&[]).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole * part / 8);
        runner.kill().unwrap();
        runner.wait().unwrap();
        pod.prepare_well();
        assert!(
            contents_of(&pod.target()) == expected,
            "other content after a kill at {part}/8"
        );
        assert_eq!(contents_of(&pod.tools()).keys().collect::<Vec<_>>(), ["runner"]);
    }
}

#[test]
fn of_a_bundle_with_another_digest_nothing_is_left() {
    let pod = Pod::with(&small_bundle());
    pod.prepare_well();
    fs_err::remove_file(pod.tools().join("runner")).unwrap();
    let other = bundle_of([("evil.sh".to_owned(), file("#!/bin/sh\n", true))]);
    fs_err::write(pod.bundle(), &other.compressed).unwrap();
    let message = pod.fail(&pod.prepare(), Cause::DigestMismatch);
    assert_eq!(
        message,
        format!(
            "the bundle /bundle.tar.gz has the digest {}, but this pod was made for {}; it was replaced or damaged on its way \
             and is not unpacked",
            other.digest, pod.digest
        )
    );
    assert_eq!(contents_of(&pod.target()), BTreeMap::new());
    assert_eq!(contents_of(&pod.tools()), BTreeMap::new());
}

#[test]
fn of_a_damaged_bundle_nothing_is_left_and_the_damage_is_named() {
    let whole = small_bundle().compressed;
    let mut flipped = whole.to_vec();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let cases = [
        (whole[..whole.len() / 2].to_vec(), Some("the bundle is cut short")),
        (Vec::new(), Some("the bundle is cut short")),
        (
            [&whole[..], b"x"].concat(),
            Some("something follows the end of the bundle"),
        ),
        (
            b"PK\x03\x04 a zip archive is no bundle".to_vec(),
            Some("this is no bundle"),
        ),
        // Where a flipped bit is noticed depends on what it means; that it is noticed does not.
        (flipped, None),
    ];
    for (bytes, damage) in cases {
        let pod = Pod::with(&small_bundle());
        fs_err::write(pod.bundle(), &bytes).unwrap();
        let message = pod.fail(&pod.prepare(), Cause::UnpackFailed);
        assert!(message.starts_with("/bundle.tar.gz: "), "{message}");
        assert!(damage.is_none_or(|damage| message.contains(damage)), "{message}");
        assert_eq!(contents_of(&pod.target()), BTreeMap::new());
        assert_eq!(contents_of(&pod.tools()), BTreeMap::new());
    }
}

#[test]
fn what_is_missing_is_named() {
    let pod = Pod::with(&small_bundle());
    fs_err::remove_file(pod.bundle()).unwrap();
    let message = pod.fail(&pod.prepare(), Cause::UnpackFailed);
    assert!(message.starts_with("the bundle cannot be opened: "), "{message}");
    assert!(message.contains("/bundle.tar.gz"), "{message}");

    let pod = Pod::with(&small_bundle());
    fs_err::remove_dir(pod.target()).unwrap();
    let message = pod.fail(&pod.prepare(), Cause::UnpackFailed);
    assert!(
        message.starts_with("the folder /workspace that takes the bundle cannot be opened: "),
        "{message}"
    );

    let pod = Pod::with(&small_bundle());
    fs_err::remove_dir(pod.tools()).unwrap();
    let message = pod.fail(&pod.prepare(), Cause::InstallFailed);
    assert!(
        message.starts_with("the runner cannot be installed: "),
        "{message}"
    );
}

#[test]
fn a_full_volume_is_called_full_and_left_empty() {
    let large = "x".repeat(300_000);
    let pod = Pod::with(&bundle_of([
        ("a.txt".to_owned(), file("fits", false)),
        ("large.bin".to_owned(), file(&large, false)),
    ]));
    let small_volume =
        "mount -t tmpfs -o size=128k none \"$0\" && { \"$@\"; code=$?; ls -A \"$0\"; exit $code; }";
    let wrapper = [
        unshare(),
        ["--mount", "sh", "-c", small_volume].map(str::to_owned).to_vec(),
        vec![pod.target().to_str().unwrap().to_owned()],
    ]
    .concat();
    let output = pod.command(&wrapper).output().unwrap();
    assert_eq!(
        pod.fail(&output, Cause::UnpackFailed),
        "the volume at /workspace is full: `large.bin` (300000 bytes) does not fit; give the volume more room or make the \
         bundle smaller"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "",
        "something is left in the volume"
    );
}
