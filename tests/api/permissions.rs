//! Who may do what once the charts are installed.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, PostParams};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::support::{NAMESPACE, RELEASE, apply, checkout, namespace, render, server};

/// Applies the roles and bindings of the chart.
async fn install_roles(client: &Client, settings: &[&str]) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    apply(client, &namespace).await?;
    for object in render("codeworkspace", settings)? {
        let kind = object["kind"].as_str().context("an object without kind")?;
        if kind.contains("Role") {
            apply(client, &object).await?;
        }
    }
    Ok(())
}

/// `resource/subresource.group=name`, as far as each part is there.
fn attributes(namespace: &str, verb: &str, resource: &str) -> ResourceAttributes {
    let (resource, name) = resource.split_once('=').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ResourceAttributes {
        namespace: text(namespace),
        verb: text(verb),
        group: text(group),
        resource: text(resource),
        subresource: text(subresource),
        name: text(name),
        ..ResourceAttributes::default()
    }
}

const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

/// Everything that the operator touches, and what it must never touch.
const RESOURCES: [&str; 38] = [
    "codeworkspaces.codeworkspace.dev",
    "codeworkspaces/status.codeworkspace.dev",
    "codeworkspaces/finalizers.codeworkspace.dev",
    "coderuns.codeworkspace.dev",
    "coderuns/status.codeworkspace.dev",
    "coderuns/finalizers.codeworkspace.dev",
    "codeinterpreters.codeworkspace.dev",
    "codeinterpreters/status.codeworkspace.dev",
    "codesessions.codeworkspace.dev",
    "codesessions/status.codeworkspace.dev",
    "runnertemplates.codeworkspace.dev",
    "secretinventories.codeworkspace.dev",
    "secretinventories/status.codeworkspace.dev",
    "gitrepositories.source.toolkit.fluxcd.io",
    "ocirepositories.source.toolkit.fluxcd.io",
    "pods",
    "pods/attach",
    "pods/exec",
    "pods/log",
    "pods/ephemeralcontainers",
    "configmaps",
    "persistentvolumeclaims",
    "persistentvolumes",
    "secrets",
    "secrets=codeworkspace-internal-ca",
    "services",
    "services=codeworkspace-sessions",
    "serviceaccounts/token",
    "tokenreviews.authentication.k8s.io",
    "subjectaccessreviews.authorization.k8s.io",
    "networkpolicies.networking.k8s.io",
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
    "leases.coordination.k8s.io=codeworkspace-operator",
    "clusterroles.rbac.authorization.k8s.io",
    "namespaces",
    "nodes",
];

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_operator_may_do_what_its_steps_need_and_nothing_else() -> Result<()> {
    let client = server().await?;
    install_roles(&client, &[]).await?;
    let mut permissions = String::new();
    for namespace in ["any-namespace", NAMESPACE] {
        writeln!(permissions, "in {namespace}")?;
        for resource in RESOURCES {
            let allowed = allowed(&client, RELEASE, namespace, resource).await?;
            writeln!(permissions, "  {resource}: {}", allowed.join(" "))?;
        }
    }
    insta::assert_snapshot!(permissions);
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn the_gateway_may_do_what_its_calls_need_and_nothing_else() -> Result<()> {
    let client = server().await?;
    install_roles(&client, &[]).await?;
    let account = format!("{RELEASE}-gateway");
    let mut permissions = String::new();
    for namespace in ["any-namespace", NAMESPACE] {
        writeln!(permissions, "in {namespace}")?;
        for resource in RESOURCES {
            let allowed = allowed(&client, &account, namespace, resource).await?;
            if !allowed.is_empty() {
                writeln!(permissions, "  {resource}: {}", allowed.join(" "))?;
            }
        }
    }
    insta::assert_snapshot!(permissions, @r"
    in any-namespace
      codeinterpreters.codeworkspace.dev: get list watch create delete
      codesessions.codeworkspace.dev: get list watch create patch
      pods: get list watch patch
      tokenreviews.authentication.k8s.io: create
      subjectaccessreviews.authorization.k8s.io: create
      namespaces: get
    in codeworkspace-system
      codeinterpreters.codeworkspace.dev: get list watch create delete
      codesessions.codeworkspace.dev: get list watch create patch
      pods: get list watch patch
      secrets: get list watch create
      secrets=codeworkspace-internal-ca: get list watch create
      tokenreviews.authentication.k8s.io: create
      subjectaccessreviews.authorization.k8s.io: create
      namespaces: get
    ");
    Ok(())
}

/// The verbs that a service account of the release's namespace has.
async fn allowed(
    client: &Client,
    account: &str,
    namespace: &str,
    resource: &str,
) -> Result<Vec<&'static str>> {
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    let mut allowed = Vec::new();
    for verb in VERBS {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(format!("system:serviceaccount:{NAMESPACE}:{account}")),
                resource_attributes: Some(attributes(namespace, verb, resource)),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let review = reviews.create(&PostParams::default(), &review).await?;
        if review.status.is_some_and(|status| status.allowed) {
            allowed.push(verb);
        }
    }
    Ok(allowed)
}

/// Each release has a name of its own here: what one may must not hide what another may not.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn secrets_are_read_one_by_one_and_only_where_that_was_permitted() -> Result<()> {
    let client = server().await?;
    let permitted = namespace(&client, &[]).await?;
    let none: [&str; 0] = [];
    for (release, namespaces, elsewhere) in [
        ("reads-in-one", permitted.as_str(), &none[..]),
        ("reads-in-all", "*", &["get"][..]),
        ("reads-in-both", &format!("{permitted},*"), &["get"][..]),
    ] {
        let settings = format!("fullnameOverride={release},secrets.namespaces={{{namespaces}}}");
        install_roles(&client, &["--set", &settings]).await?;
        for (namespace, expected) in [(permitted.as_str(), &["get"][..]), ("any-namespace", elsewhere)] {
            let found = allowed(&client, release, namespace, "secrets").await?;
            assert_eq!(found, expected, "{release} in {namespace}");
        }
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn sources_of_flux_are_read_only_where_flux_is_used() -> Result<()> {
    let client = server().await?;
    let settings = "fullnameOverride=with-flux,configuration.flux.enabled=true";
    install_roles(&client, &["--set", settings]).await?;
    for resource in ["gitrepositories", "ocirepositories"] {
        let resource = format!("{resource}.source.toolkit.fluxcd.io");
        assert_eq!(
            allowed(&client, "with-flux", "any-namespace", &resource).await?,
            ["get", "list", "watch"],
            "{resource}"
        );
    }
    Ok(())
}

/// Who reviews the roles reads there what each rule is for.
#[test]
fn each_rule_says_what_it_is_for() -> Result<()> {
    for file in ["rbac.yaml", "rbac-users.yaml", "gateway-rbac.yaml"] {
        let path = checkout().join("charts/codeworkspace/templates").join(file);
        let text = std::fs::read_to_string(path)?;
        let mut above = "";
        let mut rules = 0;
        for line in text.lines().map(str::trim) {
            // What a policy looks at is no right.
            if line.starts_with("- apiGroups:") && above != "resourceRules:" {
                rules += 1;
                assert!(above.starts_with('#'), "{file}: {line} stands below {above:?}");
            }
            above = line;
        }
        assert!(rules > 2, "{file} has rules");
    }
    Ok(())
}

/// The cluster's `view`, `edit` and `admin` gather rules by label. The controller that does so is not part of an API
/// server alone, so the test gathers as that controller would, by the selectors that the server itself has.
#[tokio::test]
#[ignore = "needs an API server: cargo xtask test api"]
async fn who_may_view_or_edit_a_namespace_may_do_so_with_workspaces_and_runs() -> Result<()> {
    let client = server().await?;
    install_roles(&client, &[]).await?;
    let namespace = namespace(&client, &[]).await?;
    let mut permissions = String::new();
    for role in ["view", "edit", "admin"] {
        let user = format!("{namespace}-{role}");
        let name = format!("{namespace}-gathered-{role}");
        let gathered = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": gathered_rules(&client, role).await?,
        });
        apply(&client, &gathered).await?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        });
        apply(&client, &binding).await?;

        let mut config = Config::infer().await?;
        config.auth_info.impersonate = Some(user);
        let reviews: Api<SelfSubjectAccessReview> = Api::all(Client::try_from(config)?);
        writeln!(permissions, "{role}")?;
        for resource in RESOURCES
            .into_iter()
            .filter(|resource| resource.ends_with(codeworkspace_api::GROUP))
        {
            let mut allowed = Vec::new();
            for verb in VERBS {
                let review = SelfSubjectAccessReview {
                    spec: SelfSubjectAccessReviewSpec {
                        resource_attributes: Some(attributes(&namespace, verb, resource)),
                        non_resource_attributes: None,
                    },
                    ..SelfSubjectAccessReview::default()
                };
                let review = reviews.create(&PostParams::default(), &review).await?;
                if review.status.is_some_and(|status| status.allowed) {
                    allowed.push(verb);
                }
            }
            writeln!(permissions, "  {resource}: {}", allowed.join(" "))?;
        }
    }
    insta::assert_snapshot!(permissions);
    Ok(())
}

/// The rules of every role that an aggregated role selects, and of those that these select in turn.
async fn gathered_rules(client: &Client, role: &str) -> Result<Vec<Value>> {
    let cluster: Api<ClusterRole> = Api::all(client.clone());
    let all = cluster.list(&kube::api::ListParams::default()).await?.items;
    let mut wanted = vec![role.to_owned()];
    let mut rules = Vec::new();
    while let Some(name) = wanted.pop() {
        let role = cluster.get(&name).await?;
        let selectors = role
            .aggregation_rule
            .and_then(|rule| rule.cluster_role_selectors)
            .unwrap_or_default();
        if selectors.is_empty() {
            for rule in role.rules.unwrap_or_default() {
                rules.push(serde_json::to_value(rule)?);
            }
        }
        for selector in selectors {
            let labels = selector.match_labels.unwrap_or_default();
            let chosen = all.iter().filter(|role| {
                let own = role.metadata.labels.as_ref();
                labels
                    .iter()
                    .all(|(key, value)| own.is_some_and(|own| own.get(key) == Some(value)))
            });
            wanted.extend(chosen.filter_map(|role| role.metadata.name.clone()));
        }
    }
    Ok(rules)
}
