//! What opens private repositories: tokens and Apps at the server that plays GitHub, Secrets and inventories in the cluster.

use anyhow::Result;
use codeworkspace_api::SecretInventory;
use github_server::AppKey;
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::RoleBinding;
use serde_json::{Value, json};

use super::operator::{NAMESPACE, SERVICE_ACCOUNT};
use super::{Repository, Story, leaks};

/// The chart's role that lets the operator read Secrets one by one.
const SECRET_READER: &str = "codeworkspace-system-codeworkspace-secret-reader";

impl Repository {
    /// Lets a token open the repository.
    pub async fn accept_token(&self, token: &str) -> Result<()> {
        leaks::keep_secret(token);
        let body = json!({"token": token, "repositories": [self.full_name()]});
        let path = format!("/tokens/{}", self.name());
        self.github().control(Method::PUT, &path, &body).await?;
        Ok(())
    }

    /// Makes a GitHub App with one installation, which opens the repository.
    pub async fn accept_app(&self, app: u64, installation: u64, key: &AppKey) -> Result<()> {
        leaks::keep_secret(&key.private_pem);
        // The server outlives the runs of the stories, and so do its tokens.
        let tokens = format!("/apps/{app}/tokens");
        self.github()
            .control(Method::DELETE, &tokens, &Value::Null)
            .await?;
        let installations = json!({installation.to_string(): {"repositories": [self.full_name()]}});
        let body = json!({"publicKey": key.public_pem, "installations": installations});
        self.github()
            .control(Method::PUT, &format!("/apps/{app}"), &body)
            .await?;
        Ok(())
    }

    /// What the App was given tokens for: without the tokens themselves, which nobody is told twice.
    pub async fn tokens_of_app(&self, app: u64) -> Result<Value> {
        let path = format!("/apps/{app}/tokens");
        self.github().control(Method::GET, &path, &Value::Null).await
    }
}

impl Story {
    /// Lets the operator read the namespace's Secrets, as the chart does for each of `secrets.namespaces`.
    pub async fn permit_secrets(&self) -> Result<()> {
        let binding = json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": SECRET_READER},
            "subjects": [{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}],
        });
        self.apply_object::<RoleBinding>("secret-reader", binding).await?;
        Ok(())
    }

    /// Applies a Secret.
    pub async fn secret(&self, name: &str, values: &[(&str, &str)]) -> Result<()> {
        let values: serde_json::Map<_, _> = values
            .iter()
            .inspect(|(_, value)| leaks::keep_secret(value))
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        self.apply_object::<Secret>(name, json!({"stringData": values}))
            .await?;
        Ok(())
    }

    /// Applies an inventory whose one connector of GitHub reads this Secret.
    pub async fn inventory(&self, secret: &str) -> Result<SecretInventory> {
        let connector = json!({"driver": "github", "secretRef": {"name": secret}});
        self.apply_object("inventory", json!({"spec": {"connectors": [connector]}}))
            .await
    }
}
