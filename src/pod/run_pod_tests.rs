use codeworkspace_api::{CodeRunSpec, RunnerLanguage, WorkspaceReference};
use insta::assert_yaml_snapshot;
use kube::core::ObjectMeta;

use super::*;

fn run(args: &[&str], timeout_seconds: Option<i64>) -> CodeRun {
    let spec = CodeRunSpec {
        workspace_ref: WorkspaceReference {
            name: "tool".to_owned(),
        },
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        timeout_seconds,
        ttl_seconds_after_finished: None,
        digest: None,
    };
    let mut run = CodeRun::new("tool-1", spec);
    run.metadata = ObjectMeta {
        namespace: Some("default".to_owned()),
        uid: Some("uid-1".to_owned()),
        ..run.metadata
    };
    run
}

fn template() -> RunnerTemplateSpec {
    RunnerTemplateSpec {
        image: "example/python:1".to_owned(),
        image_pull_policy: Some(ImagePullPolicy::IfNotPresent),
        image_pull_secrets: Vec::new(),
        languages: vec![RunnerLanguage::Python],
        native: Vec::new(),
        tools: Vec::new(),
        kernels: Vec::new(),
        session_limits: None,
        weight: 100,
    }
}

fn limits() -> ResolvedLimits {
    ResolvedLimits {
        memory_mb: 256,
        timeout_ms: 600_000,
        cpu_ms: None,
        vcpus: None,
        ephemeral_storage_mb: None,
    }
}

fn pod(run: &CodeRun, volume: &WorkspaceVolume, argv: &[&str], limits: &ResolvedLimits) -> Pod {
    let argv: Vec<_> = argv.iter().map(|word| (*word).to_owned()).collect();
    RunPod {
        run,
        bundle_config_map: "codeworkspace-bundle-uid-0",
        digest: "sha256:00",
        volume,
        argv: &argv,
        limits,
        template: &template(),
        runner_image: &RunnerImage {
            reference: "example/operator:1".to_owned(),
            pull_policy: None,
        },
        runs: &Runs::default(),
    }
    .build()
}

#[test]
fn the_pod_of_a_run_is_locked_down_and_holds_nothing_but_bundle_and_runner() {
    assert_yaml_snapshot!(pod(
        &run(&["--fast"], None),
        &WorkspaceVolume::default(),
        &["python", "/workspace/main.py"],
        &limits()
    ));
}

#[test]
fn a_workspace_chooses_mount_size_and_whether_the_bundle_may_change() {
    let volume = WorkspaceVolume {
        mount_path: Some("/srv/code".to_owned()),
        size_limit: Some("2Gi".to_owned()),
        read_only: true,
        ..WorkspaceVolume::default()
    };
    let pod = pod(&run(&[], None), &volume, &["bash"], &limits());
    let spec = pod.spec.unwrap();
    let body = &spec.containers[0];
    let mount = body
        .volume_mounts
        .iter()
        .flatten()
        .find(|mount| mount.name == "workspace")
        .unwrap();
    assert_eq!(
        (mount.mount_path.as_str(), mount.read_only),
        ("/srv/code", Some(true))
    );
    assert_eq!(body.working_dir.as_deref(), Some("/srv/code"));
    let size = spec
        .volumes
        .iter()
        .flatten()
        .find(|volume| volume.name == "workspace")
        .and_then(|volume| volume.empty_dir.as_ref()?.size_limit.clone());
    assert_eq!(size, Some(quantity("2Gi")));
}

#[test]
fn a_run_may_ask_for_less_time_but_never_for_more() {
    let deadline = |wish, limit_ms| {
        let limits = ResolvedLimits {
            timeout_ms: limit_ms,
            ..limits()
        };
        pod(&run(&[], wish), &WorkspaceVolume::default(), &["bash"], &limits)
            .spec
            .unwrap()
            .active_deadline_seconds
            .unwrap()
    };
    // 300 s to start and 15 s to end come on top.
    assert_eq!(deadline(None, 600_000), 915);
    assert_eq!(deadline(Some(10), 600_000), 325);
    assert_eq!(deadline(Some(100_000), 600_000), 915);
    assert_eq!(deadline(Some(i64::MAX / 1000), i64::MAX), 300 + 86_400 + 15);
}

#[test]
fn words_that_kubernetes_would_expand_reach_the_body_as_they_are() {
    let pod = pod(
        &run(&["$(HOME)", "$$"], None),
        &WorkspaceVolume::default(),
        &["bash", "-c", "echo $(date)"],
        &limits(),
    );
    let args = pod.spec.unwrap().containers[0].args.clone().unwrap();
    let words = &args[args.iter().position(|word| word == "--").unwrap() + 1..];
    assert_eq!(words, ["bash", "-c", "echo $$(date)", "$$(HOME)", "$$$$"]);
}

#[test]
fn cores_become_milli_cores_rounded_up() {
    let limits = ResolvedLimits {
        vcpus: Some(1.2345),
        ..limits()
    };
    let pod = pod(&run(&[], None), &WorkspaceVolume::default(), &["bash"], &limits);
    let resources = pod.spec.unwrap().containers[0].resources.clone().unwrap();
    assert_eq!(resources.limits.unwrap()["cpu"], quantity("1235m"));
}
