//! Files and bundles over the wire.

use bytes::Bytes;
use codeworkspace_bundle::{Bundle, Caps, Entry, FileTree};
use codeworkspace_protocol::session::{
    BindRequest, ErrorCode, FileEntry, FileKind, RemoveRequest, WrittenFiles, path,
};
use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::client::{Client, code, python};
use super::pod::{Options, Pod, binding};
use crate::fixture::unshare;

/// As the gateway writes it: everything but letters and digits is escaped.
fn at(verb: &str, path: &str) -> String {
    format!("{verb}?path={}", utf8_percent_encode(path, NON_ALPHANUMERIC))
}

async fn put(client: &Client, uri: &str, body: impl Into<Bytes>) -> Result<WrittenFiles, ErrorCode> {
    let answer = client.call(Method::PUT, uri, body).await;
    answer
        .map(|body| serde_json::from_slice(&body).unwrap())
        .map_err(|error| error.code)
}

#[tokio::test]
async fn files_go_both_ways_whatever_their_names_and_contents() {
    let pod = Pod::bare().await;
    let noise: Vec<u8> = (0..=255).cycle().take(3_000_000).collect();
    let names = ["a b%20#?+&=.bin", "größe/文件 🦀", "empty"];
    for (name, contents) in names.iter().zip([&noise[..], b"text", b""]) {
        let written = put(&pod.client, &at(path::FILE, name), contents.to_vec()).await;
        let bytes = contents.len() as u64;
        assert_eq!(written, Ok(WrittenFiles { files: 1, bytes }));
        let read = pod
            .client
            .call(Method::GET, &at(path::FILE, name), "")
            .await
            .unwrap();
        assert!(read == contents, "{name}");
        assert!(fs_err::read(pod.root().join(name)).unwrap() == contents, "{name}");
    }
    let listed: Vec<FileEntry> = pod.client.get(path::LIST).await.unwrap();
    let entry = |path: &str, kind, size| FileEntry {
        path: path.to_owned(),
        kind,
        size,
    };
    assert_eq!(
        listed,
        [
            entry("a b%20#?+&=.bin", FileKind::File, 3_000_000),
            entry("empty", FileKind::File, 0),
            entry("größe", FileKind::Folder, 0),
        ]
    );
    let listed: Vec<FileEntry> = pod.client.get(&at(path::LIST, "größe")).await.unwrap();
    assert_eq!(listed, [entry("größe/文件 🦀", FileKind::File, 4)]);
}

#[tokio::test]
async fn many_files_come_in_one_stream_and_all_or_none_are_written() {
    let pod = Pod::bare().await;
    let tar = |names: &[String]| {
        let mut builder = tar::Builder::new(Vec::new());
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.set_size(5);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, &b"hello"[..]).unwrap();
        }
        builder.into_inner().unwrap()
    };
    let mut names: Vec<String> = (0..500)
        .map(|number| format!("folder {}/file {number}", number % 7))
        .collect();
    let written = put(&pod.client, path::FILES, tar(&names)).await;
    assert_eq!(
        written,
        Ok(WrittenFiles {
            files: 500,
            bytes: 2500
        })
    );
    names = names.into_iter().map(|name| format!("more/{name}")).collect();
    names.push("folder 1".to_owned());
    assert_eq!(
        put(&pod.client, path::FILES, tar(&names)).await,
        Err(ErrorCode::WrongKind)
    );
    assert!(!pod.root().join("more").exists());
    let half = tar(&names);
    assert_eq!(
        put(&pod.client, path::FILES, half[..half.len() / 2 - 10].to_vec()).await,
        Err(ErrorCode::InvalidRequest)
    );
    assert_eq!(fs_err::read_dir(pod.root()).unwrap().count(), 7);
}

#[tokio::test]
async fn the_root_cannot_be_left() {
    let pod = Pod::bare().await;
    std::os::unix::fs::symlink("/etc", pod.root().join("etc")).unwrap();
    for escape in ["../x", "/etc/passwd", "etc/passwd", "a/../../x", ""] {
        let uri = at(path::FILE, escape);
        let read = pod.client.call(Method::GET, &uri, "").await;
        assert_eq!(code(read), ErrorCode::InvalidPath, "{escape}");
        assert_eq!(
            put(&pod.client, &uri, "x").await,
            Err(ErrorCode::InvalidPath),
            "{escape}"
        );
        let request = RemoveRequest {
            paths: vec![escape.to_owned()],
        };
        let removed = pod.client.tell(path::REMOVE, &request).await;
        assert_eq!(code(removed), ErrorCode::InvalidPath, "{escape}");
    }
    let listed = pod.client.get::<Vec<FileEntry>>(&at(path::LIST, "etc")).await;
    assert_eq!(code(listed), ErrorCode::InvalidPath);
}

#[tokio::test]
async fn code_and_callers_see_the_same_files() {
    let pod = Pod::start().await;
    put(&pod.client, &at(path::FILE, "in put.txt"), "data")
        .await
        .unwrap();
    let told = pod.client.python("open('out/x', 'w')").await;
    assert_eq!(told.finished.exit_code, Some(1));
    pod.client
        .python("text = open('in put.txt').read(); open('copy', 'w').write(text * 2)")
        .await;
    let read = pod
        .client
        .call(Method::GET, &at(path::FILE, "copy"), "")
        .await
        .unwrap();
    assert_eq!(read, "datadata");
    let both = RemoveRequest {
        paths: vec!["copy".to_owned(), "in put.txt".to_owned()],
    };
    pod.client.tell(path::REMOVE, &both).await.unwrap();
    assert_eq!(
        code(pod.client.tell(path::REMOVE, &both).await),
        ErrorCode::NotFound
    );
    assert_eq!(
        pod.client.python("import os; print(os.listdir())").await.stdout(),
        "[]\n"
    );
}

#[tokio::test]
async fn nothing_runs_before_the_bundle_is_there() {
    let mut tree = FileTree::new();
    let entry = Entry::File {
        contents: Bytes::from_static(b"VALUE = 42\n"),
        executable: false,
    };
    tree.insert("lib/module.py".parse().unwrap(), entry).unwrap();
    let bundle = Bundle::build(&tree, &Caps::default()).unwrap();
    let digest = bundle.digest.to_string();
    let pod = Pod::with(Options {
        bind: Some(BindRequest {
            bundle: Some(digest.clone()),
            ..binding()
        }),
        ..Options::default()
    })
    .await;
    let client = &pod.client;
    let early = client.events(path::EXECUTE, &python("1")).await.unwrap_err();
    assert_eq!(early.code, ErrorCode::NotBound);
    assert_eq!(
        early.message,
        format!("the session's bundle {digest} has not arrived yet")
    );
    let uri = format!("{}?digest={digest}", path::BUNDLE);
    let other = format!("{}?digest=sha256:{}", path::BUNDLE, "0".repeat(64));
    let damaged = bundle.compressed.slice(..bundle.compressed.len() - 9);
    for (uri, body) in [(&other, bundle.compressed.clone()), (&uri, damaged)] {
        assert_eq!(
            code(client.call(Method::PUT, uri, body).await),
            ErrorCode::DigestMismatch
        );
    }
    for _ in 0..2 {
        client
            .call(Method::PUT, &uri, bundle.compressed.clone())
            .await
            .unwrap();
    }
    let told = client.python("from lib.module import VALUE; print(VALUE)").await;
    assert_eq!(told.stdout(), "42\n");
}

#[tokio::test]
async fn a_full_volume_is_told_and_leaves_nothing_half_written() {
    let mount = "mount -t tmpfs -o size=2m none \"$ROOT\" && exec \"$0\" \"$@\"";
    let wrapper = [
        &unshare()[..],
        &["--mount", "--kill-child", "--fork", "sh", "-c", mount].map(str::to_owned),
    ];
    let pod = Pod::with(Options {
        kernels: Vec::new(),
        wrapper: wrapper.concat(),
        ..Options::default()
    })
    .await;
    let small = put(&pod.client, &at(path::FILE, "kept"), "old").await;
    assert_eq!(small, Ok(WrittenFiles { files: 1, bytes: 3 }));
    let large = vec![7; 3_000_000];
    let refused = put(&pod.client, &at(path::FILE, "kept"), large.clone()).await;
    assert_eq!(refused, Err(ErrorCode::NoSpace));
    let told = pod.client.command("head -c 5000000 /dev/zero").await;
    assert_eq!(
        (told.finished.exit_code, told.finished.stdout.total_bytes),
        (Some(0), 5_000_000)
    );
    assert_eq!(told.finished.stdout.file, None);
    assert!(
        told.message()
            .starts_with("the whole standard output could not be kept in a file: No space left"),
        "{}",
        told.message()
    );
    assert_eq!(
        pod.client.command("cat kept; find . -type f").await.stdout(),
        "old./kept\n"
    );
}
