//! The network that pods of sessions get: the gateway dials in, and they register with the operator. Nothing else.

use std::collections::BTreeMap;

use codeworkspace_api::labels;
use codeworkspace_protocol::session::{PORT, REGISTRATION_PORT};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::configuration::Release;

/// Name of the policy; there is one for each namespace that has sessions.
pub const SESSION_NETWORK_POLICY: &str = "codeworkspace-sessions";

/// What is opened beside the policy that denies everything.
///
/// The way out is there for as long as the pod is: a NetworkPolicy cannot tell an init container from the one after it. What a session
/// finds there is an endpoint that takes one key of one pod, and only while that pod is prepared.
pub fn session_network(namespace: &str, release: &Release) -> NetworkPolicy {
    let of_class = BTreeMap::from([
        (labels::MANAGED_BY.to_owned(), labels::MANAGER.to_owned()),
        (labels::CLASS.to_owned(), labels::CLASS_SESSION.to_owned()),
    ]);
    NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(SESSION_NETWORK_POLICY.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(
                labels::MANAGED_BY.to_owned(),
                labels::MANAGER.to_owned(),
            )])),
            ..ObjectMeta::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some(of_class),
                ..LabelSelector::default()
            }),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: Some(vec![component(release, "gateway")]),
                ports: Some(vec![tcp(PORT)]),
            }]),
            egress: Some(vec![NetworkPolicyEgressRule {
                to: Some(vec![component(release, "operator")]),
                ports: Some(vec![tcp(REGISTRATION_PORT)]),
            }]),
        }),
    }
}

/// The pods of one process of the release, in its own namespace only: whoever may make pods elsewhere can give them any labels.
fn component(release: &Release, component: &str) -> NetworkPolicyPeer {
    let selector = |labels: Vec<(&str, &str)>| {
        let labels = labels
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        Some(LabelSelector {
            match_labels: Some(labels.collect()),
            ..LabelSelector::default()
        })
    };
    NetworkPolicyPeer {
        namespace_selector: selector(vec![("kubernetes.io/metadata.name", &release.namespace)]),
        pod_selector: selector(vec![
            ("app.kubernetes.io/name", &release.name),
            ("app.kubernetes.io/instance", &release.instance),
            ("app.kubernetes.io/component", component),
        ]),
        ip_block: None,
    }
}

fn tcp(port: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(i32::from(port))),
        protocol: Some("TCP".to_owned()),
        end_port: None,
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_yaml_snapshot;

    use super::*;

    #[test]
    fn only_the_gateway_dials_in_and_the_operator_is_all_that_can_be_reached() {
        let release = Release {
            namespace: "codeworkspace-system".to_owned(),
            name: "codeworkspace".to_owned(),
            instance: "main".to_owned(),
        };
        assert_yaml_snapshot!(session_network("team-a", &release));
    }
}
