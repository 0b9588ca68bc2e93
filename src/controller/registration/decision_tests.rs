use serde_json::{Value, json};

use super::*;

type Change = fn(&mut Value);

fn digest(digit: &str) -> String {
    format!("sha256:{}", digit.repeat(64))
}

fn review(change: impl FnOnce(&mut Value)) -> TokenReviewStatus {
    let mut review = json!({
        "authenticated": true,
        "audiences": ["codeworkspace-operator"],
        "user": {
            "username": "system:serviceaccount:team-a:default",
            "extra": {
                "authentication.kubernetes.io/pod-name": ["codeworkspace-session-1"],
                "authentication.kubernetes.io/pod-uid": ["uid-1"]
            }
        }
    });
    change(&mut review);
    serde_json::from_value(review).unwrap()
}

fn known() -> Caller {
    Caller {
        namespace: "team-a".to_owned(),
        pod: "codeworkspace-session-1".to_owned(),
        uid: "uid-1".to_owned(),
    }
}

#[test]
fn only_a_token_for_this_audience_that_is_bound_to_a_pod_names_a_caller() {
    assert_eq!(caller(&review(|_| {})), Ok(known()));
    let cases: [(Change, u16); 7] = [
        (|review| review["authenticated"] = json!(false), 401),
        (
            |review| {
                review.as_object_mut().unwrap().remove("authenticated");
            },
            401,
        ),
        (|review| review["audiences"] = json!([]), 401),
        (
            |review| review["audiences"] = json!(["https://kubernetes.default.svc"]),
            401,
        ),
        (|review| review["user"]["username"] = json!("admin"), 403),
        (|review| review["user"]["extra"] = json!({}), 403),
        (
            |review| {
                review["user"]["extra"]["authentication.kubernetes.io/pod-uid"] = json!(["uid-1", "uid-2"]);
            },
            403,
        ),
    ];
    for (index, (change, status)) in cases.into_iter().enumerate() {
        let refusal = caller(&review(change)).unwrap_err();
        assert_eq!(refusal.status().as_u16(), status, "case {index}: {refusal:?}");
    }
}

fn pod(change: impl FnOnce(&mut Value)) -> Pod {
    let mut pod = json!({
        "metadata": {
            "name": "codeworkspace-session-1", "namespace": "team-a", "uid": "uid-1",
            "labels": {
                "app.kubernetes.io/managed-by": "codeworkspace-operator",
                "codeworkspace.dev/class": "session", "codeworkspace.dev/state": "warm"
            }
        },
        "status": {
            "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}],
            "initContainerStatuses": [{
                "name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"running": {}}
            }]
        }
    });
    change(&mut pod);
    serde_json::from_value(pod).unwrap()
}

fn judged(pod: Option<&Pod>, peer: &str) -> Result<Verdict, u16> {
    judge(&known(), pod, peer.parse().unwrap(), &digest("a")).map_err(|refusal| refusal.status().as_u16())
}

#[test]
fn a_pod_registers_its_key_once_from_its_own_address_while_it_is_prepared() {
    let cases: [(Change, &str, Result<Verdict, u16>); 15] = [
        (|_| {}, "10.0.0.7", Ok(Verdict::Record)),
        (|_| {}, "::ffff:10.0.0.7", Ok(Verdict::Record)),
        (|_| {}, "fd00::7", Ok(Verdict::Record)),
        (|_| {}, "10.0.0.8", Err(403)),
        (
            |pod| pod["metadata"]["uid"] = json!("uid-2"),
            "10.0.0.7",
            Err(403),
        ),
        (
            |pod| pod["metadata"]["labels"]["codeworkspace.dev/class"] = json!("run"),
            "10.0.0.7",
            Err(403),
        ),
        (
            |pod| pod["metadata"]["labels"]["app.kubernetes.io/managed-by"] = json!("me"),
            "10.0.0.7",
            Err(403),
        ),
        (
            |pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            "10.0.0.7",
            Err(403),
        ),
        (
            |pod| {
                pod["status"]["initContainerStatuses"][0]["state"] = json!({"terminated": {"exitCode": 0}});
            },
            "10.0.0.7",
            Err(403),
        ),
        (
            |pod| {
                pod["status"]["initContainerStatuses"][0]["state"] = json!({"waiting": {}});
            },
            "10.0.0.7",
            Err(503),
        ),
        (|pod| pod["status"] = json!({}), "10.0.0.7", Err(503)),
        (
            |pod| {
                let status = pod["status"].as_object_mut().unwrap();
                status.remove("podIP");
                status.remove("podIPs");
            },
            "10.0.0.7",
            Err(503),
        ),
        (
            |pod| pod["status"]["podIPs"] = json!(null),
            "10.0.0.7",
            Ok(Verdict::Record),
        ),
        (
            |pod| {
                pod["metadata"]["annotations"] = json!({"codeworkspace.dev/key-digest": digest("a")});
            },
            "10.0.0.7",
            Ok(Verdict::Recorded),
        ),
        (
            |pod| {
                pod["metadata"]["annotations"] = json!({"codeworkspace.dev/key-digest": digest("b")});
            },
            "10.0.0.7",
            Err(409),
        ),
    ];
    for (index, (change, peer, expected)) in cases.into_iter().enumerate() {
        assert_eq!(judged(Some(&pod(change)), peer), expected, "case {index}");
    }
    assert_eq!(judged(None, "10.0.0.7"), Err(403));
}

#[test]
fn a_digest_is_sha256_in_lower_case_hex() {
    assert!(well_formed(&digest("a")));
    for wrong in [
        "",
        "sha256:",
        "sha256:abc",
        &digest("A"),
        &digest("a").replace("sha256", "sha512"),
        &format!("{}0", digest("a")),
    ] {
        assert!(!well_formed(wrong), "{wrong}");
    }
}
