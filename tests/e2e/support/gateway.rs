//! The gateway, and the clients of others that call it.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use codeworkspace_api::{CodeInterpreter, CodeSession, DEFAULT_NAME, SessionState, labels};
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, Service};
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, ResourceExt as _};

use super::operator::NAMESPACE;
use super::{Operator, Story, account, checkout, kubectl, leaks};

/// Its Deployment and its Service.
const NAME: &str = "codeworkspace-gateway";
/// Port of its native API.
const NATIVE_PORT: u16 = 8089;
/// What runs programs: the variable that names it, and its usual name.
const PYTHON: (&str, &str) = ("CODEWORKSPACE_CLIENT_PYTHON", "python3");
const NODE: (&str, &str) = ("CODEWORKSPACE_CLIENT_NODE", "node");
/// Longest that one program may take.
const PATIENCE_SECONDS: &str = "240";

/// The gateway as the charts installed it.
pub struct Gateway {
    client: Client,
    /// Where the machine that runs the tests reaches it.
    endpoint: String,
    /// What the operator had counted when the story began.
    leaked: String,
}

/// What proves to the gateway who calls.
pub struct AccessKey {
    id: String,
    secret: String,
}

impl Gateway {
    /// The gateway of the cluster. A cluster whose Services cannot be reached from here needs its address in the environment.
    pub async fn of(client: &Client) -> Result<Self> {
        let endpoint = if let Ok(endpoint) = std::env::var("CODEWORKSPACE_GATEWAY_ENDPOINT") {
            endpoint
        } else {
            let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
            let service = services.get(NAME).await?;
            let address = service.spec.and_then(|spec| spec.cluster_ip);
            format!(
                "http://{}",
                address.context("the gateway's Service has no address")?
            )
        };
        Ok(Self {
            client: client.clone(),
            endpoint,
            leaked: leaked(client).await?,
        })
    }

    /// Makes an access key as people do, and waits until sessions can be opened with it.
    pub async fn tenant(&self, tenant: &Story) -> Result<AccessKey> {
        let deployment = format!("deployment/{NAME}");
        let printed = kubectl(&[
            "exec",
            "--namespace",
            NAMESPACE,
            &deployment,
            "--",
            "codeworkspace-operator",
            "create-access-key",
            "--tenant",
            &tenant.namespace,
        ])?
        .success()?;
        let value = |name: &str| {
            let line = printed.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::to_owned)
                .with_context(|| format!("`create-access-key` did not print {name}"))
        };
        let key = AccessKey {
            id: value("AWS_ACCESS_KEY_ID=")?,
            secret: value("AWS_SECRET_ACCESS_KEY=")?,
        };
        leaks::keep_secret(&key.secret);
        tenant
            .until(DEFAULT_NAME, "is ready", |interpreter: &CodeInterpreter| {
                let conditions = interpreter.status.iter().flat_map(|status| &status.conditions);
                conditions
                    .into_iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            })
            .await?;
        Ok(key)
    }

    /// Runs one of the Python programs of `tests/clients`, which must find nothing wrong.
    pub fn python(
        &self,
        story: &Story,
        program: &str,
        key: &AccessKey,
        other: Option<&AccessKey>,
    ) -> Result<()> {
        let mut environment = self.as_aws_clients_read_it(key);
        if let Some(other) = other {
            environment.push(("OTHER_ACCESS_KEY_ID", other.id.clone()));
            environment.push(("OTHER_SECRET_ACCESS_KEY", other.secret.clone()));
        }
        run(story, PYTHON, program, &environment)
    }

    /// Runs one of the Python programs of `tests/clients` that speak the native API or MCP, as a user of the cluster who may do everything
    /// with sessions of the story's namespace. A second user may do nothing.
    pub fn native(&self, story: &Story, program: &str) -> Result<()> {
        let namespace = ["--namespace", &story.namespace];
        let kubectl = |arguments: &[&str]| kubectl(&[arguments, &namespace[..]].concat())?.success();
        let token = |account: &str| {
            kubectl(&["create", "serviceaccount", account])?;
            let audience = ["create", "token", account, "--audience", "codeworkspace-gateway"];
            let token = kubectl(&audience)?.trim().to_owned();
            leaks::keep_secret(&token);
            anyhow::Ok(token)
        };
        let (agent, stranger) = (token("agent")?, token("stranger")?);
        kubectl(&[
            "create",
            "role",
            "sessions",
            "--verb=get,list,create,delete",
            "--resource=codesessions.codeworkspace.dev",
        ])?;
        let subject = format!("--serviceaccount={}:agent", story.namespace);
        kubectl(&["create", "rolebinding", "sessions", "--role=sessions", &subject])?;
        let environment = [
            ("ENDPOINT", format!("{}:{NATIVE_PORT}", self.endpoint)),
            ("TOKEN", agent),
            ("OTHER_TOKEN", stranger),
            ("NAMESPACE", story.namespace.clone()),
            ("INTERPRETER", DEFAULT_NAME.to_owned()),
        ];
        run(story, PYTHON, program, &environment)
    }

    /// Runs one of the JavaScript programs of `tests/clients`, which must find nothing wrong.
    pub fn javascript(&self, story: &Story, program: &str, key: &AccessKey) -> Result<()> {
        run(story, NODE, program, &self.as_aws_clients_read_it(key))
    }

    fn as_aws_clients_read_it(&self, key: &AccessKey) -> Vec<(&'static str, String)> {
        vec![
            ("ENDPOINT", self.endpoint.clone()),
            ("AWS_REGION", "eu-central-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", key.id.clone()),
            ("AWS_SECRET_ACCESS_KEY", key.secret.clone()),
        ]
    }

    /// Fails unless all of a tenant's sessions have ended and nothing of them is left; then takes the tenant's key away.
    pub async fn nothing_is_left(&self, tenant: &Story, key: &AccessKey) -> Result<()> {
        for session in tenant.list::<CodeSession>().await? {
            tenant
                .until(&session.name_any(), "has ended", |session: &CodeSession| {
                    let state = session.status.as_ref().and_then(|status| status.state);
                    state == Some(SessionState::Terminated)
                })
                .await?;
        }
        let claimed = format!("{}={}", labels::STATE, labels::STATE_CLAIMED);
        let claimed = ListParams::default().labels(&claimed);
        for pod in tenant.api::<Pod>().list(&claimed).await? {
            tenant.until_gone::<Pod>(&pod.name_any()).await?;
        }
        let left = tenant.api::<Pod>().list(&claimed).await?.items;
        ensure!(left.is_empty(), "pods of sessions that have ended: {left:#?}");
        assert_eq!(
            leaked(&self.client).await?,
            self.leaked,
            "pods that the sweep found"
        );
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), NAMESPACE);
        let name = format!("access-key-{}", key.id.to_lowercase());
        secrets.delete(&name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Removes a second tenant of a story; the first one goes with the story.
    pub async fn remove(&self, tenant: Story) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces
            .delete(&tenant.namespace, &DeleteParams::background())
            .await?;
        Ok(())
    }
}

/// Runs a program of `tests/clients`, which must find nothing wrong.
fn run(
    story: &Story,
    (variable, name): (&str, &str),
    program: &str,
    environment: &[(&str, String)],
) -> Result<()> {
    let interpreter = std::env::var_os(variable).unwrap_or_else(|| name.into());
    let output = Command::new("timeout")
        .arg(PATIENCE_SECONDS)
        .arg(interpreter)
        .arg(checkout().join("tests/clients").join(program))
        .stdin(Stdio::null())
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("AWS_SESSION_TOKEN")
        // No proxy reaches the cluster, and the machine's own settings for AWS are not meant.
        .env("NO_PROXY", "*")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .output()
        .with_context(|| format!("cannot run {program}: run `cargo xtask test e2e`, or set {variable}"))?;
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    account::keep(&format!("{}.{program}.txt", story.name), &told.concat())?;
    ensure!(
        output.status.success(),
        "{program} ended with {}:\n{}",
        output.status,
        told.concat()
    );
    print!("{program}:\n{}", told.concat());
    Ok(())
}

/// How many pods of sessions the operator found that should not have been there, as its metrics tell it.
async fn leaked(client: &Client) -> Result<String> {
    let metrics = Operator::new(client).metrics().await?;
    let line = metrics
        .lines()
        .find(|line| line.starts_with("codeworkspace_leaked_pods_total"));
    Ok(line.context("the operator counts no leaked pods")?.to_owned())
}
