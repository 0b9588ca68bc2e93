use codeworkspace_bundle::Digest;
use codeworkspace_source::GithubConfiguration;
use serde_json::json;

use super::*;

const HOST: &str = "http://source-controller.flux-system.svc.cluster.local.";

fn definition() -> FluxDefinition {
    FluxDefinition {
        kind: FluxKind::GitRepository,
        name: "files".to_owned(),
        path: Some("tools".parse().unwrap()),
    }
}

fn look(status: &Value) -> Result<Root, Fault> {
    let hosts = ["source-controller.flux-system.svc.cluster.local.".to_owned()];
    let artifacts = Artifacts::new(&hosts, &GithubConfiguration::default()).unwrap();
    of_status(&definition(), "team", &json!({"status": status}), &artifacts)
}

fn artifact(url: &str) -> Value {
    let digest = Digest::of(b"archive").to_string();
    json!({"artifact": {
        "url": url, "digest": digest, "revision": "main@sha1:0123", "path": "x", "lastUpdateTime": "2026-01-01T00:00:00Z"
    }})
}

fn fault(status: &Value) -> (&'static str, Healing, String) {
    let fault = look(status).unwrap_err();
    (fault.reason, fault.healing, fault.message)
}

#[test]
fn the_digest_of_an_artifact_and_the_folder_tell_roots_apart() {
    let root = look(&artifact(&format!("{HOST}/gitrepository/team/files/0123.tar.gz"))).unwrap();
    assert_eq!(root.identity, format!("flux {}:tools", Digest::of(b"archive")));
    let expected = RootStatus {
        kind: "fluxSource".to_owned(),
        summary: "GitRepository files:tools".to_owned(),
        revision: Some("main@sha1:0123".to_owned()),
    };
    assert_eq!(root.status(), expected);
}

#[test]
fn a_source_without_an_artifact_is_waited_for_and_its_own_message_shown_without_addresses() {
    let waiting =
        "root.fluxSource: GitRepository files has no artifact yet; it is read as soon as it has one";
    let not_ready = |message: String| ("RootNotReady", Healing::ByOthers, message);
    assert_eq!(fault(&json!(null)), not_ready(waiting.to_owned()));
    let failed = json!({"conditions": [{
        "type": "Ready", "status": "False", "reason": "GitOperationFailed",
        "message": "failed to checkout:\nhttps://user:token@git.example/x is not there"
    }]});
    assert_eq!(
        fault(&failed),
        not_ready(format!(
            "{waiting}: failed to checkout: (an address) is not there"
        ))
    );
}

#[test]
fn a_status_that_points_elsewhere_is_refused_until_somebody_mends_it() {
    for url in [
        "http://169.254.169.254/latest".to_owned(),
        format!("{HOST}/gitrepository/other/files/0123.tar.gz"),
    ] {
        let (reason, healing, message) = fault(&artifact(&url));
        assert_eq!((reason, healing), ("ArchiveRefused", Healing::ByOthers));
        assert!(
            message.starts_with("root.fluxSource: GitRepository files: the artifact"),
            "{message}"
        );
    }
    let (reason, ..) = fault(&json!({"artifact": {"url": 1}}));
    assert_eq!(reason, "RootRefused");
}

#[test]
fn a_missing_object_and_a_missing_kind_are_told_apart() {
    let answer = |name: Option<&str>| {
        let status = json!({
            "status": "Failure", "message": "404 page not found", "reason": "Failed to parse error data", "code": 404,
            "details": name.map(|name| json!({"name": name}))
        });
        let error = kube::Error::Api(serde_json::from_value(status).unwrap());
        let fault = unreadable(&definition(), &error);
        (fault.reason, fault.message)
    };
    assert_eq!(
        answer(Some("files")),
        (
            "RootNotFound",
            "root.fluxSource: there is no GitRepository files in this namespace; it is read as soon as it is made".to_owned()
        )
    );
    assert_eq!(
        answer(None),
        (
            "RootNotSupported",
            "root.fluxSource: this cluster has no GitRepository of source.toolkit.fluxcd.io/v1; install Flux's source-controller \
             (2.6 or later)"
                .to_owned()
        )
    );
}
