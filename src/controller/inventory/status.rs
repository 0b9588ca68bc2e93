//! The status of an inventory. Pure.

use codeworkspace_api::condition::{self, Conditions, State};
use codeworkspace_api::{ConnectorStatus, SecretInventory, SecretInventoryStatus, reason};
use codeworkspace_bundle::FieldError;
use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::controller::fault::{Fault, join};

/// Computes the status.
pub fn compute(
    inventory: &SecretInventory,
    wrong: &[FieldError],
    connectors: &[(ConnectorStatus, Option<Fault>)],
    now: Timestamp,
) -> SecretInventoryStatus {
    let former = inventory
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let mut conditions = Conditions::new(former, inventory.metadata.generation, now);
    let faults: Vec<&Fault> = connectors
        .iter()
        .filter_map(|(_, fault)| fault.as_ref())
        .collect();
    if !wrong.is_empty() {
        let message = join(wrong);
        for (type_, state) in [
            (condition::READY, State::False),
            (condition::STALLED, State::True),
        ] {
            conditions.set(type_, state, reason::MANIFEST_VALIDATION_ERROR, message.clone());
        }
    } else if let Some(first) = faults.first() {
        let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
        let message = messages.join("; ");
        conditions.set(condition::READY, State::False, first.reason, message.clone());
        if faults.iter().all(|fault| fault.may_pass()) {
            let reason = reason::PROGRESSING_WITH_RETRY;
            conditions.set(condition::RECONCILING, State::True, reason, message);
        } else {
            conditions.set(condition::STALLED, State::True, first.reason, message);
        }
    } else {
        let message = format!(
            "{} connectors with a credential; {} secrets recorded",
            connectors.len(),
            inventory.spec.secrets.len()
        );
        conditions.set(condition::READY, State::True, reason::READY, message);
    }
    SecretInventoryStatus {
        observed_generation: inventory.metadata.generation,
        conditions: conditions.finish(),
        connectors: connectors
            .iter()
            .map(|(connector, _)| connector.clone())
            .collect(),
    }
}

/// The object that carries a status to the API server, for that very object and no later one of the same name.
pub fn patch(inventory: &SecretInventory, status: &SecretInventoryStatus) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": format!("{}/{}", codeworkspace_api::GROUP, codeworkspace_api::VERSION),
        "kind": "SecretInventory",
        "metadata": {"name": inventory.name_any(), "uid": inventory.uid()},
        "status": status,
    })
}
