//! The network that pods of runs and readers get: none.

use std::collections::BTreeMap;

use codeworkspace_api::labels;
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

/// Name of the policy; there is one for each namespace that has runs or readers.
pub const NETWORK_POLICY: &str = "codeworkspace-default-deny";

/// Denies all traffic to and from every pod that the operator makes in a namespace.
///
/// Nothing owns it: collected together with a workspace it would open the network of the runs that are left.
pub fn default_deny(namespace: &str) -> NetworkPolicy {
    NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(NETWORK_POLICY.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(
                labels::MANAGED_BY.to_owned(),
                labels::MANAGER.to_owned(),
            )])),
            ..ObjectMeta::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some(BTreeMap::from([(
                    labels::MANAGED_BY.to_owned(),
                    labels::MANAGER.to_owned(),
                )])),
                ..LabelSelector::default()
            }),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ..NetworkPolicySpec::default()
        }),
    }
}
