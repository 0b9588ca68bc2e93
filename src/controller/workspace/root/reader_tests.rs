use std::io::Write as _;

use bytes::Bytes;
use codeworkspace_bundle::{Bundle, Digest, Entry};
use codeworkspace_protocol::{ReadFailure, ReadingWriter};
use serde_json::{Value, json};

use super::*;

fn tree() -> FileTree {
    let mut tree = FileTree::new();
    for path in ["a.py", "b/c.py"] {
        let contents = Bytes::from(path.to_owned());
        tree.insert(path.parse().unwrap(), Entry::from_contents(contents))
            .unwrap();
    }
    tree
}

fn stream(bytes: &[u8], report: &ReadReport) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut writer = ReadingWriter::begin(&mut stream).unwrap();
    writer.write_all(bytes).unwrap();
    writer.end(report).unwrap();
    stream
}

fn finished(digest: Digest) -> ReadReport {
    ReadReport::Finished(FinishedReading {
        digest: digest.to_string(),
        skipped: Vec::new(),
        skipped_total: 0,
    })
}

fn broken(stream: &[u8], caps: Caps) -> String {
    match decode(stream, caps) {
        Err(Failure::Broken(why)) => why,
        other => panic!("not broken: {other:?}"),
    }
}

#[test]
fn what_a_reader_sends_is_checked_like_every_bundle() {
    let bundle = Bundle::build(&tree(), &Caps::default()).unwrap();
    let whole = stream(&bundle.compressed, &finished(bundle.digest));
    let reading = decode(&whole[..], Caps::default()).unwrap();
    assert_eq!(reading.tree, tree());
    let other = Digest::of(b"other");
    assert_eq!(
        broken(&stream(&bundle.compressed, &finished(other)), Caps::default()),
        format!("its files have the digest {}, and not {other}", bundle.digest)
    );
    let cut = stream(&bundle.compressed[..20], &finished(bundle.digest));
    assert_eq!(broken(&cut, Caps::default()), "the bundle is cut short");
    assert_eq!(
        broken(&whole[..whole.len() - 1], Caps::default()),
        "the stream broke off"
    );
    let one = Caps {
        entries: 1,
        ..Caps::default()
    };
    assert_eq!(
        broken(&whole, one),
        "the bundle has 2 entries; at most 1 are allowed"
    );
}

#[test]
fn a_reader_that_fails_says_why_whatever_it_sent_before() {
    let failed = FailedReading {
        reason: ReadFailure::Changed,
        message: "`a` changed while it was read".to_owned(),
    };
    let sent = stream(b"half a bundle", &ReadReport::Failed(failed.clone()));
    match decode(&sent[..], Caps::default()) {
        Err(Failure::Reported(reported)) => assert_eq!(reported, failed),
        other => panic!("not reported: {other:?}"),
    }
}

fn pod(status: &Value) -> Pod {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "codeworkspace-reader-1"}, "status": status
    }))
    .unwrap()
}

#[test]
fn a_pod_that_cannot_run_is_told_in_the_kubelets_words() {
    let of_container = |state: Value| {
        pod(&json!({"phase": "Pending", "containerStatuses": [
            {"name": "reader", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": state}
        ]}))
    };
    let waiting = |reason: &str, message: Option<&str>| {
        of_container(json!({"waiting": {"reason": reason, "message": message}}))
    };
    let never = |why: &str| Standing::Never(why.to_owned());
    let cases = [
        (
            of_container(json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})),
            Standing::Running,
        ),
        (
            waiting("ImagePullBackOff", Some("Back-off pulling image \"x\"")),
            never("ImagePullBackOff: Back-off pulling image \"x\""),
        ),
        (
            waiting("ContainerCreating", None),
            Standing::Waiting(Some("ContainerCreating".to_owned())),
        ),
        (
            pod(
                &json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1 nodes are available"}]}),
            ),
            Standing::Waiting(Some("Unschedulable: 0/1 nodes are available".to_owned())),
        ),
        (
            pod(&json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource"})),
            never("its pod ended before it could be asked: Evicted: The node was low on resource"),
        ),
        (pod(&json!({"phase": "Pending"})), Standing::Waiting(None)),
    ];
    for (pod, expected) in cases {
        assert_eq!(standing(Some(&pod)), expected);
    }
    assert_eq!(standing(None), never("somebody deleted its pod"));
}

#[test]
fn a_pod_that_only_has_the_name_is_not_taken_for_an_earlier_try() {
    let of = |owner: &str, class: &str| -> Pod {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "codeworkspace-reader-1", "labels": {"codeworkspace.dev/class": class}, "ownerReferences": [
                {"apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeWorkspace", "name": "tool", "uid": owner}
            ]}
        }))
        .unwrap()
    };
    assert!(is_of_same_owner(&of("1", "reader"), &of("1", "reader")));
    assert!(!is_of_same_owner(&of("1", "reader"), &of("2", "reader")));
    assert!(!is_of_same_owner(&of("1", "reader"), &of("1", "run")));
}
