//! The connectors of a namespace: by what right its workspaces ask other services.
//!
//! Secrets are read by `get`, each only because an inventory of its namespace names it, and never listed or watched.

use codeworkspace_api::{Connector, SecretInventory, reason};
use codeworkspace_bundle::FieldError;
use codeworkspace_source::Credential;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::reflector::Store;
use kube::{Api, Client, ResourceExt as _};

use super::fault::{Fault, Healing, join};
use super::{Readable, inventory};

/// The driver of GitHub.
pub const GITHUB: &str = "github";

/// Keys of a Secret that holds a token, or a GitHub App.
const TOKEN: &str = "token";
const APP_ID: &str = "appId";
const INSTALLATION_ID: &str = "installationId";
const PRIVATE_KEY: &str = "privateKey";

/// Type of Secrets that hold the API server's own tokens, by coincidence under the key of a connector's token.
const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// A connector and the inventory in which it stands.
#[derive(Clone, Debug)]
pub struct Found {
    /// Name of the SecretInventory.
    pub inventory: String,
    /// The connector.
    pub connector: Connector,
}

/// What a connector's Secret holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// A token that its owner made.
    PersonalAccessToken,
    /// The key of a GitHub App.
    GithubApp,
}

impl CredentialKind {
    /// As status shows it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PersonalAccessToken => "PersonalAccessToken",
            Self::GithubApp => "GitHubApp",
        }
    }
}

/// All connectors of a driver in a namespace, in the order of their inventories' names. An inventory that cannot be understood may
/// have one: then nobody's right would be used in place of the one that is meant.
pub fn of_driver(
    inventories: &Store<Readable<SecretInventory>>,
    namespace: &str,
    driver: &str,
) -> Result<Vec<Found>, Fault> {
    let mut of_namespace = inventories.state();
    of_namespace.retain(|inventory| inventory.namespace().as_deref() == Some(namespace));
    for inventory in &of_namespace {
        let wrong = match &inventory.0 {
            Ok(inventory) => inventory::validate(inventory),
            Err(unreadable) => vec![FieldError::new("spec", &unreadable.error)],
        };
        if !wrong.is_empty() {
            let message = format!(
                "SecretInventory {} is wrong: {}",
                inventory.name_any(),
                join(&wrong)
            );
            return Err(Fault::unresolved(
                reason::MANIFEST_VALIDATION_ERROR,
                Healing::ByOthers,
                message,
            ));
        }
    }
    let mut found: Vec<Found> = of_namespace
        .iter()
        .filter_map(|inventory| inventory.0.as_ref().ok())
        .flat_map(|inventory| {
            let name = inventory.name_any();
            let connectors = inventory.spec.connectors.iter();
            connectors
                .filter(|connector| connector.driver == driver)
                .map(move |connector| Found {
                    inventory: name.clone(),
                    connector: connector.clone(),
                })
        })
        .collect();
    found.sort_by(|a, b| a.inventory.cmp(&b.inventory));
    Ok(found)
}

/// The one connector among those of a driver. Of two, nobody could say which is meant.
pub fn the_only(found: &[Found]) -> Result<Option<&Found>, Fault> {
    match found {
        [] => Ok(None),
        [found] => Ok(Some(found)),
        [first, second, ..] => {
            let message = format!(
                "this namespace has two connectors of driver {}, in SecretInventory {} and in SecretInventory {}: leave one out",
                first.connector.driver, first.inventory, second.inventory
            );
            Err(Fault::unresolved(
                reason::DUPLICATE_CONNECTOR,
                Healing::ByOthers,
                message,
            ))
        }
    }
}

/// The credential of a GitHub connector, read from the one Secret that it names.
pub async fn credential(
    client: &Client,
    namespace: &str,
    found: &Found,
) -> Result<(CredentialKind, Credential), Fault> {
    let name = &found.connector.secret_ref.name;
    let place = format!("SecretInventory {}, connector {GITHUB}", found.inventory);
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    match api.get_opt(name).await {
        Ok(Some(secret)) => parse(namespace, found, &secret),
        Ok(None) => Err(broken(
            reason::SECRET_NOT_FOUND,
            format!("{place}: there is no Secret {name} in this namespace"),
        )),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Err(broken(
            reason::SECRET_NOT_READABLE,
            format!(
                "{place}: the operator may not read Secrets in namespace {namespace}: an administrator permits it with the chart's \
                 value secrets.namespaces"
            ),
        )),
        Err(error) => Err(Fault::unresolved(
            reason::SECRET_NOT_READABLE,
            Healing::ByItself,
            format!("{place}: Secret {name} cannot be read: {error}"),
        )
        .again_soon()),
    }
}

fn parse(namespace: &str, found: &Found, secret: &Secret) -> Result<(CredentialKind, Credential), Fault> {
    let reference = &found.connector.secret_ref;
    let place = format!("SecretInventory {}, connector {GITHUB}", found.inventory);
    let name = format!(
        "SecretInventory {namespace}/{}, connector {GITHUB}",
        found.inventory
    );
    if secret.type_.as_deref() == Some(SERVICE_ACCOUNT_TOKEN) {
        let message = format!(
            "{place}: Secret {} holds a token of this cluster ({SERVICE_ACCOUNT_TOKEN}), which is never sent to another service",
            reference.name
        );
        return Err(broken(reason::SECRET_INVALID, message));
    }
    let value = |key: &str| {
        let data = secret.data.as_ref()?;
        data.get(key).map(|bytes| bytes.0.as_slice())
    };
    let token_key = reference.key.as_deref().unwrap_or(TOKEN);
    let (kind, made) = match (value(token_key), value(APP_ID), value(PRIVATE_KEY)) {
        (Some(token), _, _) => (
            CredentialKind::PersonalAccessToken,
            Credential::token(name, token),
        ),
        (None, Some(app), Some(private_key)) => (
            CredentialKind::GithubApp,
            Credential::app(name, app, value(INSTALLATION_ID), private_key),
        ),
        _ => {
            let message = format!(
                "{place}: Secret {} has neither the key {token_key} nor the keys {APP_ID} and {PRIVATE_KEY}",
                reference.name
            );
            return Err(broken(reason::SECRET_INVALID, message));
        }
    };
    let made = made.map_err(|error| {
        broken(
            reason::SECRET_INVALID,
            format!("{place}: Secret {}: {error}", reference.name),
        )
    })?;
    Ok((kind, made))
}

/// A credential that somebody has to mend. Nobody watches Secrets, so they are read again after a moment.
fn broken(reason: &'static str, message: String) -> Fault {
    Fault::unresolved(reason, Healing::ByOthers, message).again_soon()
}
