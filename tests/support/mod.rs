//! What tests need to speak to a real API server: a client, `helm`, `kubectl`, and the definitions installed once.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams, TypeMeta};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _, discovery};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// The release and the namespace that charts are rendered for.
pub const RELEASE: &str = "codeworkspace";
pub const NAMESPACE: &str = "codeworkspace-system";

/// Longest that the API server may take to act on a definition or a policy.
const PATIENCE: Duration = Duration::from_mins(1);

/// The root of the checkout.
pub fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a program said.
#[derive(Debug)]
pub struct Finished {
    pub succeeded: bool,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `helm`: the one of `CODEWORKSPACE_HELM`, else of the path.
pub fn helm(arguments: &[&str]) -> Result<Finished> {
    run("CODEWORKSPACE_HELM", "helm", arguments, "")
}

/// Runs `kubectl`: the one of `CODEWORKSPACE_KUBECTL`, else of the path. It gets a cache of its own, since another server
/// may have had the same address with other definitions.
pub fn kubectl(arguments: &[&str], input: &str) -> Result<Finished> {
    let cache = tempfile::tempdir()?;
    let cache = cache
        .path()
        .to_str()
        .context("the folder of temporary files is no text")?;
    run(
        "CODEWORKSPACE_KUBECTL",
        "kubectl",
        &[&["--cache-dir", cache], arguments].concat(),
        input,
    )
}

fn run(variable: &str, name: &str, arguments: &[&str], input: &str) -> Result<Finished> {
    let program = std::env::var_os(variable).map_or_else(|| PathBuf::from(name), PathBuf::from);
    let mut child = Command::new(&program)
        .args(arguments)
        .current_dir(checkout())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}: install it or set {variable}", program.display()))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    Ok(Finished {
        succeeded: output.status.success(),
        stdout: String::from_utf8(output.stdout)?,
        stderr: String::from_utf8(output.stderr)?,
    })
}

/// The objects of a chart.
pub fn render(chart: &str, settings: &[&str]) -> Result<Vec<Value>> {
    Ok(serde_saphyr::from_multiple(&template(chart, settings)?)?)
}

/// The text of a rendered chart.
pub fn template(chart: &str, settings: &[&str]) -> Result<String> {
    let chart = format!("charts/{chart}");
    let mut arguments = vec![
        "template",
        RELEASE,
        &chart,
        "--namespace",
        NAMESPACE,
        "--kube-version",
        "1.33",
    ];
    arguments.extend(settings);
    let finished = helm(&arguments)?;
    ensure!(
        finished.succeeded,
        "helm {}: {}",
        arguments.join(" "),
        finished.stderr
    );
    Ok(finished.stdout)
}

/// A client of the server that `KUBECONFIG` names, which has our definitions and admission policies.
pub async fn server() -> Result<Client> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    ensure!(
        std::env::var_os("KUBECONFIG").is_some(),
        "KUBECONFIG names no API server: run `cargo xtask test api`"
    );
    let client = Client::try_default().await?;
    INSTALLED.get_or_try_init(|| install(&client)).await?;
    Ok(client)
}

/// The admission policies of the chart, and their bindings.
pub fn policies() -> Result<Vec<Value>> {
    let mut policies = render("codeworkspace", &[])?;
    policies.retain(|object| {
        object["kind"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("ValidatingAdmissionPolicy"))
    });
    Ok(policies)
}

async fn install(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in render("codeworkspace-crds", &[])? {
        let name = apply(client, &definition).await?.name_any();
        let established = await_condition(definitions.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(PATIENCE, established)
            .await
            .with_context(|| format!("{name} is not served"))??;
    }
    for policy in policies()? {
        apply(client, &policy).await?;
    }
    for (plural, refused) in [
        ("codeworkspaces", json!({"code": "./x", "unknown": {}})),
        ("secretinventories", json!({"unknown": {}})),
    ] {
        eventually("the admission policies are in force", async || {
            Ok(dry_run(client, plural, &refused).await?.is_err())
        })
        .await?;
    }
    Ok(())
}

/// Server-side apply of one object as it stands; fields that the server does not know are errors.
pub async fn apply(client: &Client, object: &Value) -> Result<DynamicObject> {
    apply_with(
        client,
        object,
        PatchParams::apply("codeworkspace-tests")
            .force()
            .validation_strict(),
    )
    .await
}

/// The same without keeping the result.
pub async fn dry_run_apply(client: &Client, object: &Value) -> Result<DynamicObject> {
    apply_with(
        client,
        object,
        PatchParams::apply("codeworkspace-tests")
            .force()
            .validation_strict()
            .dry_run(),
    )
    .await
}

async fn apply_with(client: &Client, object: &Value, parameters: PatchParams) -> Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let api = api_of(client, &object).await?;
    Ok(api
        .patch(&object.name_any(), &parameters, &Patch::Apply(&object))
        .await?)
}

async fn api_of(client: &Client, object: &DynamicObject) -> Result<Api<DynamicObject>> {
    let types = object.types.as_ref().context("an object without kind")?;
    let (resource, capabilities) = discovery::pinned_kind(client, &types.try_into()?).await?;
    Ok(match (&capabilities.scope, object.namespace()) {
        (discovery::Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
        (discovery::Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        (discovery::Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
    })
}

/// One of our kinds, by its plural.
pub fn resource(plural: &str) -> ApiResource {
    let kind = match plural {
        "codeworkspaces" => "CodeWorkspace",
        "coderuns" => "CodeRun",
        "secretinventories" => "SecretInventory",
        "codeinterpreters" => "CodeInterpreter",
        "codesessions" => "CodeSession",
        _ => "RunnerTemplate",
    };
    ApiResource {
        group: codeworkspace_api::GROUP.to_owned(),
        version: codeworkspace_api::VERSION.to_owned(),
        api_version: format!("{}/{}", codeworkspace_api::GROUP, codeworkspace_api::VERSION),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// An object of one of our kinds around a `spec` as somebody wrote it.
pub fn object(plural: &str, name: &str, spec: &Value) -> DynamicObject {
    let resource = resource(plural);
    DynamicObject {
        types: Some(TypeMeta {
            api_version: resource.api_version,
            kind: resource.kind,
        }),
        metadata: kube::api::ObjectMeta {
            name: Some(name.to_owned()),
            ..kube::api::ObjectMeta::default()
        },
        data: json!({"spec": spec}),
    }
}

/// Asks the server to create an object without keeping it: what it would store, or why it refuses.
pub async fn dry_run(client: &Client, plural: &str, spec: &Value) -> Result<Result<Value, String>> {
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource(plural));
    let parameters = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match api.create(&parameters, &object(plural, "example", spec)).await {
        Ok(stored) => Ok(Ok(stored.data["spec"].clone())),
        Err(kube::Error::Api(status)) => Ok(Err(status.message)),
        Err(other) => Err(other.into()),
    }
}

/// A namespace of its own for one test.
pub async fn namespace(client: &Client, labels: &[(&str, &str)]) -> Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut namespace = Namespace::default();
    namespace.metadata.generate_name = Some("codeworkspace-test-".to_owned());
    namespace.metadata.labels = Some(
        labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    );
    Ok(namespaces
        .create(&PostParams::default(), &namespace)
        .await?
        .name_any())
}

/// Asks again until the answer is yes.
pub async fn eventually(what: &str, mut ask: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let asking = async {
        while !ask().await? {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::Ok(())
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(answer) => answer,
        Err(_) => bail!("still not so after {} s: {what}", PATIENCE.as_secs()),
    }
}
