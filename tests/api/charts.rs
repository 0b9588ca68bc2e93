//! The charts themselves: what they render, what they refuse, and whether their papers are current.

use std::path::Path;

use anyhow::{Context as _, Result};
use codeworkspace_operator::configuration::Configuration;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::support::{NAMESPACE, RELEASE, apply, checkout, helm, namespace, render, server, template};

mod readme;

const CHARTS: [&str; 2] = ["codeworkspace", "codeworkspace-crds"];

/// Settings that touch everything which is optional.
const EVERYTHING: &[&str] = &[
    "--set",
    "replicas=3,networkPolicy.enabled=true,priorityClassName=system-cluster-critical,images.tag=dev",
    "--set-json",
    r#"networkPolicy.metricsFrom=[{"namespaceSelector":{}}]"#,
    "--set-json",
    r#"networkPolicy.egress=[{"to":[{"ipBlock":{"cidr":"192.0.2.0/24"}}]}]"#,
    "--set-json",
    r#"imagePullSecrets=[{"name":"registry"}]"#,
    "--set-json",
    r#"nodeSelector={"kubernetes.io/os":"linux"}"#,
    "--set-json",
    r#"tolerations=[{"key":"infra","operator":"Exists"}]"#,
    "--set-json",
    r#"affinity={"nodeAffinity":{}}"#,
    "--set-json",
    r#"extraEnv=[{"name":"TZ","value":"UTC"}]"#,
    "--set",
    "proxy.https=http://proxy.example:3128,proxy.http=http://proxy.example:3128,proxy.noProxy={10.0.0.0/8,github.example}",
    "--set",
    "caBundle.configMap=certificates,caBundle.key=authorities.pem",
    "--set",
    "cache.existingClaim=repositories,cache.bytes=10737418240",
    "--set",
    "configuration.requirePin=true,configuration.flux.enabled=true",
    "--set",
    "secrets.namespaces={default,kube-public}",
    "--set-json",
    r#"extraVolumes=[{"name":"certificates","emptyDir":{}}]"#,
    "--set-json",
    r#"extraVolumeMounts=[{"name":"certificates","mountPath":"/certificates"}]"#,
    "--set-json",
    r#"podLabels={"team":"platform"}"#,
    "--set-json",
    r#"podAnnotations={"team":"platform"}"#,
    "--set-json",
    r#"service.annotations={"prometheus.io/scrape":"true"}"#,
    "--set-json",
    r#"serviceAccount.annotations={"team":"platform"}"#,
    "--set-json",
    "runnerTemplates.python=null",
    "--set",
    "runnerTemplates.node.image=registry.example/node:22,runnerTemplates.node.weight=10",
];

#[test]
#[ignore = "needs helm: cargo xtask test api"]
fn charts_pass_lint() -> Result<()> {
    for chart in CHARTS {
        let finished = helm(&["lint", "--strict", "--quiet", &format!("charts/{chart}")])?;
        assert!(
            finished.succeeded,
            "{chart}: {}{}",
            finished.stdout, finished.stderr
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs helm: cargo xtask test api"]
fn the_default_values_render_as_reviewed() -> Result<()> {
    insta::assert_snapshot!(template("codeworkspace", &[])?);
    Ok(())
}

#[test]
#[ignore = "needs helm: cargo xtask test api"]
fn every_option_renders_as_reviewed() -> Result<()> {
    let options = [
        EVERYTHING,
        &["--set", "admissionPolicies.enabled=false,rbac.aggregate=false"],
    ];
    insta::assert_snapshot!(template("codeworkspace", &options.concat())?);
    Ok(())
}

#[test]
#[ignore = "needs helm: cargo xtask test api"]
fn what_can_be_left_out_is_left_out() -> Result<()> {
    let settings = "admissionPolicies.enabled=false,rbac.create=false,rbac.aggregate=false,serviceAccount.create=false,\
         service.enabled=false,gateway.enabled=false,runnerTemplates.python=null,runnerTemplates.node=null,\
         runnerTemplates.interpreter=null";
    let objects = render("codeworkspace", &["--set", settings])?;
    let mut kinds: Vec<_> = objects
        .iter()
        .filter_map(|object| object["kind"].as_str())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["ConfigMap", "Deployment"]);
    Ok(())
}

#[test]
#[ignore = "needs helm: cargo xtask test api"]
fn a_misspelled_value_is_refused_at_every_level() -> Result<()> {
    for (chart, setting, field) in [
        ("codeworkspace", "replica=2", "'replica'"),
        ("codeworkspace", "configuration.github.apibase=x", "'apibase'"),
        (
            "codeworkspace",
            "configuration.runs.startBudget=1",
            "'startBudget'",
        ),
        ("codeworkspace", "resources.limit.cpu=1", "'limit'"),
        ("codeworkspace", "secrets.namespace={team-a}", "'namespace'"),
        (
            "codeworkspace",
            "secrets.namespaces={Team_A}",
            "/secrets/namespaces/0",
        ),
        (
            "codeworkspace",
            "caBundle.configMap=a,caBundle.secret=b",
            "keep one",
        ),
        ("codeworkspace", "proxy.https=proxy:3128", "/proxy/https"),
        (
            "codeworkspace",
            "configuration.flux.hosts={http://flux}",
            "/configuration/flux/hosts/0",
        ),
        (
            "codeworkspace",
            "runnerTemplates.python.language=python",
            "'language'",
        ),
        ("codeworkspace", "replicas=two", "/replicas"),
        (
            "codeworkspace",
            "runnerTemplates.python.languages={ruby}",
            "/runnerTemplates/python/languages/0",
        ),
        ("codeworkspace-crds", "label.team=a", "'label'"),
    ] {
        let finished = helm(&[
            "template",
            RELEASE,
            &format!("charts/{chart}"),
            "--kube-version",
            "1.33",
            "--set",
            setting,
        ])?;
        assert!(!finished.succeeded, "{setting} was taken");
        assert!(finished.stderr.contains(field), "{setting}: {}", finished.stderr);
    }
    Ok(())
}

#[test]
#[ignore = "needs helm: cargo xtask test api"]
fn definitions_are_those_of_the_types_and_outlive_their_release() -> Result<()> {
    let rendered = render(
        "codeworkspace-crds",
        &["--set", "labels.team=platform,annotations.team=platform"],
    )?;
    let mut names = Vec::new();
    for mut definition in rendered {
        let name = definition["metadata"]["name"]
            .as_str()
            .context("a definition without name")?
            .to_owned();
        let annotations = definition["metadata"]["annotations"].take();
        assert_eq!(
            annotations,
            json!({"helm.sh/resource-policy": "keep", "team": "platform"}),
            "{name}"
        );
        let labels = definition["metadata"]["labels"].take();
        assert_eq!(labels["team"], "platform", "{name}");
        definition["metadata"] = json!({"name": name});
        let generated = codeworkspace_api::crds()
            .into_iter()
            .find(|crd| crd.metadata.name.as_ref() == Some(&name));
        assert_eq!(definition, serde_json::to_value(generated)?, "{name}");
        names.push(name);
    }
    assert_eq!(names.len(), codeworkspace_api::crds().len());
    Ok(())
}

/// The operator refuses keys that it does not know, so that a chart of another version would stop it at its start.
#[test]
#[ignore = "needs helm: cargo xtask test api"]
fn the_operator_reads_the_configuration_that_the_chart_writes() -> Result<()> {
    for (settings, image) in [
        (
            &[][..],
            format!("codeworkspace.dev/operator:{}", env!("CARGO_PKG_VERSION")),
        ),
        (
            &["--set", "images.registry=registry.example/team,images.tag=dev"][..],
            "registry.example/team/operator:dev".to_owned(),
        ),
        (
            &["--set", "image=registry.example/operator:1"][..],
            "registry.example/operator:1".to_owned(),
        ),
        (
            &[
                "--set",
                "configuration.runnerImage.reference=registry.example/runner:1",
            ][..],
            "registry.example/runner:1".to_owned(),
        ),
    ] {
        let configuration = configuration(settings)?;
        assert_eq!(configuration.runner_image.reference, image);

        // The chart's defaults are the operator's own, but for the folder of the cache, at which only the chart has a volume, and for
        // what only the chart knows of the release.
        let reference = format!(
            "{{runnerImage: {{reference: '{image}', pullPolicy: IfNotPresent}}, sessions: {{service: codeworkspace-sessions, \
              release: {{namespace: {NAMESPACE}, name: codeworkspace, instance: {RELEASE}}}}}}}"
        );
        let mut defaults: Configuration = serde_saphyr::from_str(&reference)?;
        defaults.github.cache_directory = Some("/var/cache/codeworkspace".into());
        assert_eq!(format!("{configuration:#?}"), format!("{defaults:#?}"));
    }
    Ok(())
}

/// Values that stand elsewhere in the chart are told to the operator too.
#[test]
#[ignore = "needs helm: cargo xtask test api"]
fn the_operator_reads_what_other_values_make_of_its_configuration() -> Result<()> {
    let configuration = configuration(EVERYTHING)?;
    assert_eq!(
        configuration.github.ca_bundle.as_deref(),
        Some(Path::new("/etc/codeworkspace-ca/authorities.pem"))
    );
    assert!(configuration.require_pin && configuration.flux.enabled);
    Ok(())
}

fn configuration(settings: &[&str]) -> Result<Configuration> {
    let objects = render("codeworkspace", settings)?;
    let config_map = objects
        .iter()
        .find(|object| object["kind"] == "ConfigMap")
        .context("no ConfigMap")?;
    let file = config_map["data"]["configuration.yaml"]
        .as_str()
        .context("no configuration")?;
    Ok(serde_saphyr::from_str(file)?)
}

/// Pods of the operator in a namespace whose level is `restricted`, with the default values and with all options.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_operators_pod_passes_the_restricted_level() -> Result<()> {
    let client = server().await?;
    let namespace = namespace(&client, &[("pod-security.kubernetes.io/enforce", "restricted")]).await?;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": RELEASE, "namespace": namespace}
    });
    apply(&client, &account).await?;
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    for settings in [&[][..], EVERYTHING] {
        let mut pod = pod_of(&render("codeworkspace", settings)?)?;
        pods.create(&dry_run, &serde_json::from_value(pod.clone())?)
            .await?;

        pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
        let refusal = pods.create(&dry_run, &serde_json::from_value(pod)?).await;
        assert!(refusal.is_err_and(|error| error.to_string().contains("violates PodSecurity")));
    }
    Ok(())
}

fn pod_of(objects: &[Value]) -> Result<Value> {
    let deployment = objects
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .context("no Deployment")?;
    let mut pod = deployment["spec"]["template"].clone();
    pod["metadata"]["name"] = json!("operator");
    Ok(pod)
}

/// All objects of the chart, as the API server sees them: names of fields, quantities, ports.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_api_server_knows_every_field_of_every_object() -> Result<()> {
    let client = server().await?;
    let in_namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    apply(&client, &in_namespace).await?;
    for settings in [&[][..], EVERYTHING] {
        for object in render("codeworkspace", settings)? {
            let verdict = crate::support::dry_run_apply(&client, &object).await;
            assert!(
                verdict.is_ok(),
                "{} {}: {verdict:?}",
                object["kind"],
                object["metadata"]["name"]
            );
        }
    }
    Ok(())
}

#[test]
fn charts_carry_the_version_of_the_product() -> Result<()> {
    for chart in CHARTS {
        let text = std::fs::read_to_string(checkout().join("charts").join(chart).join("Chart.yaml"))?;
        let chart: Value = serde_saphyr::from_str(&text)?;
        assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    }
    Ok(())
}
