//! Makes access keys.

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};
use secrecy::ExposeSecret as _;

use super::access_key::AccessKey;

/// Makes an access key for a tenant (a namespace) in the gateway's namespace, and gives the lines that set it in a shell. They are the
/// only time that the key is shown.
pub async fn mint(client: Client, namespace: &str, tenant: &str) -> anyhow::Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    if namespaces.get_opt(tenant).await?.is_none() {
        bail!("namespace {tenant} does not exist: a key opens one namespace, so make it first");
    }
    let key = AccessKey::generate(tenant).context("no randomness for a key")?;
    let secret = key.to_secret(namespace);
    let secrets: Api<Secret> = Api::namespaced(client, namespace);
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .with_context(|| format!("Secret {namespace}/{} cannot be made", secret.name_any()))?;
    Ok(format!(
        "AWS_ACCESS_KEY_ID={}\nAWS_SECRET_ACCESS_KEY={}\n",
        key.id,
        key.secret.expose_secret()
    ))
}
