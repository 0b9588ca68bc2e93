//! What a body finds around it: no privileges, no token, no network.

use std::collections::BTreeSet;

use codeworkspace_api::RunnerTemplate;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::LogParams;
use serde_json::{Value, json};

use crate::support::{End, Story, condition, end, inline, story};

/// Looks around and tells as JSON. Policies take hold some moments after a pod starts, so a target counts as reachable only if it
/// still is after a while.
const LOOK_AROUND: &str = r#"
import json, os, pathlib, socket, sys, time

def reachable(target):
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
        return True
    except OSError:
        return False

def writable(folder):
    try:
        probe = pathlib.Path(folder) / "probe"
        probe.write_text("x")
        probe.unlink()
        return True
    except OSError:
        return False

targets = sys.argv[1:]
deadline = time.monotonic() + 20
while any(map(reachable, targets)) and time.monotonic() < deadline:
    time.sleep(0.1)
status = dict(line.split(":\t", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
print(json.dumps({
    "reachable": [target for target in targets if reachable(target)],
    "token": os.path.exists("/var/run/secrets"),
    "kubernetes": sorted(name for name in os.environ if name.startswith("KUBERNETES_")),
    "ids": [os.getuid(), os.getgid()],
    "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapBnd"], 16),
    "noNewPrivileges": status["NoNewPrivs"],
    "seccomp": status["Seccomp"],
    "writable": [folder for folder in ["/", "/etc", "/codeworkspace", "/workspace", "/tmp", os.environ["HOME"]] if writable(folder)],
    "cwd": os.getcwd(),
}))
"#;

/// Services that any pod without a policy reaches: the API server and the server that plays GitHub.
async fn targets(story: &Story) -> anyhow::Result<Vec<String>> {
    let mut targets = Vec::new();
    for (namespace, name) in [("default", "kubernetes"), ("codeworkspace-dev", "github-server")] {
        let services: Api<Service> = Api::namespaced(story.client.clone(), namespace);
        let spec = services.get(name).await?.spec.unwrap();
        targets.push(format!(
            "{}:{}",
            spec.cluster_ip.unwrap(),
            spec.ports.unwrap()[0].port
        ));
    }
    Ok(targets)
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_body_has_no_privileges_no_token_and_no_network() {
    story(async |story| {
        let targets = targets(story).await?;
        let spec = json!({
            "code": {"sources": [inline("look_around.py", LOOK_AROUND)]},
            "run": "look_around.py",
            "runPolicy": "OnDemand",
        });
        let workspace = story.looked_at(&story.apply("tool", &spec).await?).await?;
        let words: Vec<&str> = targets.iter().map(String::as_str).collect();
        story.create_run("look-around", "tool", &words).await?;
        let run = story.ended("look-around").await?;
        assert_eq!(end(&run), End::SUCCEEDED, "{:?}", run.status);
        let seen: Value = serde_json::from_str(&run.status.unwrap().stdout.unwrap().tail)?;
        assert_eq!(
            seen,
            json!({
                "reachable": [],
                "token": false,
                "kubernetes": [],
                "ids": [65532, 65532],
                "capabilities": 0,
                "noNewPrivileges": "1",
                "seccomp": "2",
                "writable": ["/workspace", "/tmp", "/home/codeworkspace"],
                "cwd": "/workspace",
            })
        );

        // That it is so here does not prove that each cluster enforces policies, and status says so.
        let enforced = condition(&workspace, "NetworkEnforced").unwrap();
        assert_eq!(
            (enforced.status.as_str(), enforced.reason.as_str()),
            ("Unknown", "NotVerified")
        );

        let pod: Pod = story.api().get("look-around").await?;
        let spec = pod.spec.unwrap();
        assert_eq!(spec.automount_service_account_token, Some(false));
        assert_eq!(spec.enable_service_links, Some(false));
        let volumes: BTreeSet<_> = spec
            .volumes
            .iter()
            .flatten()
            .map(|volume| volume.name.as_str())
            .collect();
        assert_eq!(volumes, ["bundle", "home", "tmp", "tools", "workspace"].into());
        Ok(())
    })
    .await;
}

/// Without this, the story above could also be told where nothing reaches anything.
#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_pod_that_is_not_ours_reaches_what_a_body_does_not() {
    story(async |story| {
        let targets = targets(story).await?;
        let templates: Api<RunnerTemplate> = Api::all(story.client.clone());
        let image = templates.get("python").await?.spec.image;
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "other"},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": false,
                "securityContext": {
                    "runAsNonRoot": true,
                    "runAsUser": 65532,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{
                    "name": "other",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python3", "-c", LOOK_AROUND],
                    "args": targets,
                    "securityContext": {
                        "allowPrivilegeEscalation": false,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }],
            },
        }))?;
        story.create(&pod).await?;
        story
            .until("other", "ended", |pod: &Pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                matches!(phase, Some("Succeeded" | "Failed"))
            })
            .await?;
        let log = story.api::<Pod>().logs("other", &LogParams::default()).await?;
        let seen: Value = serde_json::from_str(&log).map_err(|error| anyhow::anyhow!("{error}: {log}"))?;
        assert_eq!(seen["reachable"], json!(targets));
        Ok(())
    })
    .await;
}
