use serde_json::{Value, json};

use super::*;

fn claim(modes: &[&str], phase: &str) -> PersistentVolumeClaim {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "files", "uid": "uid-1"},
        "spec": {"accessModes": modes},
        "status": {"phase": phase}
    }))
    .unwrap()
}

fn pod(name: &str, claim: &str, node: Option<&str>) -> Pod {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "containers": [], "nodeName": node,
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
        }
    }))
    .unwrap()
}

fn volume() -> Volume {
    Volume {
        definition: ClaimDefinition {
            name: "files".to_owned(),
            path: None,
        },
        claim: claim(&["ReadWriteOnce"], "Bound"),
    }
}

#[test]
fn a_claim_that_others_use_is_read_beside_them_or_not_at_all() {
    let pods = [
        pod("other", "elsewhere", Some("node-1")),
        pod("waits", "files", None),
        pod("writer", "files", Some("node-2")),
    ];
    let user = User {
        pod: "writer".to_owned(),
        node: "node-2".to_owned(),
    };
    let of = |modes: &[&str]| usage(&claim(modes, "Bound"), &pods);
    assert_eq!(of(&["ReadWriteOnce"]), Usage::OnNode(user.clone()));
    assert_eq!(of(&["ReadWriteOncePod"]), Usage::Exclusively(user.clone()));
    assert_eq!(of(&["ReadWriteOnce", "ReadOnlyMany"]), Usage::Free);
    assert_eq!(of(&["ReadWriteMany"]), Usage::Free);
    assert_eq!(
        usage(&claim(&["ReadWriteOncePod"], "Bound"), &pods[..2]),
        Usage::Free
    );
    let fault = in_use(&volume(), &user, "which allows a single pod (ReadWriteOncePod)");
    assert_eq!(
        (fault.reason, fault.healing, fault.message.as_str()),
        (
            "RootInUse",
            Healing::ByOthers,
            "root.persistentVolumeClaim: PersistentVolumeClaim files is in use by pod writer on node node-2, which allows a single \
             pod (ReadWriteOncePod); it is read when that pod has ended"
        )
    );
}

#[test]
fn a_claim_without_a_volume_is_not_bound_by_reading_it() {
    check_bound(&claim(&[], "Bound")).unwrap();
    let message = |phase: &str| {
        let fault = check_bound(&claim(&[], phase)).unwrap_err();
        assert_eq!((fault.reason, fault.healing), ("RootNotReady", Healing::ByOthers));
        fault.message
    };
    assert_eq!(
        message("Pending"),
        "root.persistentVolumeClaim: PersistentVolumeClaim files is Pending and has no volume yet; it gets one, and files, from \
         whatever writes to it first"
    );
    let mut going: Value = serde_json::to_value(claim(&[], "Bound")).unwrap();
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let fault = check_bound(&serde_json::from_value(going).unwrap()).unwrap_err();
    assert!(
        fault.message.ends_with("files is being deleted"),
        "{}",
        fault.message
    );
}

#[test]
fn what_a_volume_holds_is_not_read_again_until_somebody_asks() {
    let of = |reason: ReadFailure| {
        let failed = FailedReading {
            reason,
            message: "`a` is something".to_owned(),
        };
        let (fault, is_lasting) = reported(&volume(), &failed);
        assert_eq!(is_lasting, fault.retry_after.is_none());
        assert_eq!(
            is_lasting,
            fault.message.contains("codeworkspace.dev/reconcile-at")
        );
        (fault.class, fault.reason, is_lasting)
    };
    let resolution = reason::SOURCE_RESOLUTION_ERROR;
    assert_eq!(of(ReadFailure::NotFound), (resolution, "PathNotFound", true));
    assert_eq!(
        of(ReadFailure::PermissionDenied),
        (resolution, "RootRefused", true)
    );
    assert_eq!(of(ReadFailure::Refused), (resolution, "RootRefused", true));
    assert_eq!(
        of(ReadFailure::TooLarge),
        (reason::BUNDLE_SIZE_ERROR, "TooLarge", true)
    );
    assert_eq!(of(ReadFailure::Changed), (resolution, "RootNotReady", false));
    assert_eq!(of(ReadFailure::Unreadable), (resolution, "RootNotReady", false));
}

#[test]
fn links_that_were_left_out_are_named_and_the_rest_counted() {
    let report = FinishedReading {
        digest: String::new(),
        skipped: vec!["link `a` to `/b` is absolute".to_owned()],
        skipped_total: 3,
    };
    assert_eq!(
        warnings(&report),
        [
            "link `a` to `/b` is absolute; left out since `links` is `Skip`",
            "2 more links were left out"
        ]
    );
}
