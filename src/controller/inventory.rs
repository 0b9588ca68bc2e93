//! The controller of SecretInventories: whether what they name can be used.

mod status;

use std::sync::Arc;
use std::time::Duration;

use codeworkspace_api::{ConnectorStatus, SecretInventory, reason};
use codeworkspace_bundle::FieldError;
use kube::api::PatchParams;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};

use super::connector::{self, Found, GITHUB};
use super::fault::{Fault, Healing};
use super::patch::apply_patch;
use super::{Context, Error, FIELD_MANAGER, Readable, Unreadable};

/// Looks at an inventory: reads the credentials of its connectors, and says in status which can be used.
pub async fn reconcile(inventory: Arc<SecretInventory>, context: Arc<Context>) -> Result<Action, Error> {
    if inventory.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let connectors = dereference(&context, &inventory).await;
    let wrong = validate(&inventory);
    let status = status::compute(&inventory, &wrong, &connectors, context.clock.now());
    write(&context, &inventory, &status).await?;
    let again = connectors
        .iter()
        .filter_map(|(_, fault)| fault.as_ref()?.retry_after)
        .min()
        .unwrap_or_else(|| Duration::from_secs(context.configuration.scan.interval_seconds.unsigned_abs()));
    Ok(Action::requeue(again))
}

/// Says in status why an inventory that cannot be read is not used.
pub async fn refuse(unreadable: Unreadable, context: Arc<Context>) -> Result<(), Error> {
    let inventory = SecretInventory {
        metadata: unreadable.metadata,
        spec: codeworkspace_api::SecretInventorySpec::default(),
        status: serde_json::from_value(unreadable.status).ok(),
    };
    let message = format!("the object cannot be read: {}", unreadable.error);
    let wrong = [FieldError::new("spec", message)];
    let status = status::compute(&inventory, &wrong, &[], context.clock.now());
    write(&context, &inventory, &status).await
}

/// The state of each connector, and why it cannot be used.
async fn dereference(
    context: &Context,
    inventory: &SecretInventory,
) -> Vec<(ConnectorStatus, Option<Fault>)> {
    let mut states = Vec::new();
    for connector in &inventory.spec.connectors {
        let state = ConnectorStatus {
            driver: connector.driver.clone(),
            ..ConnectorStatus::default()
        };
        let found = Found {
            inventory: inventory.name_any(),
            connector: connector.clone(),
        };
        states.push(match usable(context, inventory, &found).await {
            Ok(credential) => {
                let credential = Some(credential.as_str().to_owned());
                let state = ConnectorStatus {
                    ready: true,
                    credential,
                    ..state
                };
                (state, None)
            }
            Err(fault) => {
                let state = ConnectorStatus {
                    reason: Some(fault.reason.to_owned()),
                    message: Some(fault.message.clone()),
                    ..state
                };
                (state, Some(fault))
            }
        });
    }
    states
}

async fn usable(
    context: &Context,
    inventory: &SecretInventory,
    found: &Found,
) -> Result<connector::CredentialKind, Fault> {
    let driver = &found.connector.driver;
    if driver != GITHUB {
        let message = format!("connectors of driver {driver} are not known; this version knows {GITHUB}");
        return Err(Fault::unresolved(
            reason::UNKNOWN_DRIVER,
            Healing::ByEdit,
            message,
        ));
    }
    let namespace = inventory.namespace().unwrap_or_default();
    let of_driver = connector::of_driver(&context.stores.inventories, &namespace, driver)?;
    connector::the_only(&of_driver)?;
    let (kind, _) = connector::credential(&context.client, &namespace, found).await?;
    Ok(kind)
}

/// Everything that the API server keeps although nobody knows it. The admission policy refuses it where it is installed.
pub fn validate(inventory: &SecretInventory) -> Vec<FieldError> {
    let message = "unknown field; `kubectl explain secretinventory.spec` lists the fields";
    let elsewhere = "Secrets of the inventory's own namespace are read, and no others: leave it out";
    let mut wrong: Vec<FieldError> = inventory
        .spec
        .unknown
        .keys()
        .map(|key| FieldError::new(key.as_str(), message))
        .collect();
    let mut reference = |field: String, unknown: &std::collections::BTreeMap<String, serde_json::Value>| {
        wrong.extend(unknown.keys().map(|key| {
            let message = if key == "namespace" { elsewhere } else { message };
            FieldError::new(format!("{field}.{key}"), message)
        }));
    };
    for (index, connector) in inventory.spec.connectors.iter().enumerate() {
        reference(format!("connectors[{index}]"), &connector.unknown);
        let field = format!("connectors[{index}].secretRef");
        reference(field, &connector.secret_ref.unknown);
    }
    for (index, secret) in inventory.spec.secrets.iter().enumerate() {
        reference(format!("secrets[{index}]"), &secret.unknown);
        if let Some(secret_ref) = &secret.secret_ref {
            reference(format!("secrets[{index}].secretRef"), &secret_ref.unknown);
        }
    }
    wrong
}

async fn write(
    context: &Context,
    inventory: &SecretInventory,
    status: &codeworkspace_api::SecretInventoryStatus,
) -> Result<(), Error> {
    if inventory.status.as_ref() == Some(status) {
        return Ok(());
    }
    let api: Api<Readable<SecretInventory>> =
        Api::namespaced(context.client.clone(), &inventory.namespace().unwrap_or_default());
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let patch = apply_patch(&status::patch(inventory, status))?;
    api.patch_status(&inventory.name_any(), &parameters, &patch)
        .await?;
    Ok(())
}
