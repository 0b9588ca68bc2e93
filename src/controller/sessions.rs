//! What the controllers of sessions share beside what all share.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, bail};
use codeworkspace_protocol::session::REGISTRATION_PORT;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};

use super::pool::Memory;
use crate::authority::Authority;
use crate::configuration;

/// What pods of sessions are made with, and what is remembered of them.
#[derive(Debug)]
pub struct Sessions {
    /// What the administrator decided.
    pub configuration: configuration::Sessions,
    /// Where pods register, as an address: they have no DNS.
    pub operator: String,
    /// The internal authority's certificate, as one word.
    pub authority: String,
    /// Writes that the watches have not shown yet, and starts that failed.
    pub memory: Memory,
}

impl Sessions {
    /// Asks for the address of the Service.
    pub async fn find(
        client: &Client,
        configuration: &configuration::Sessions,
        authority: &Authority,
    ) -> anyhow::Result<Self> {
        let (namespace, name) = (&configuration.release.namespace, &configuration.service);
        let services: Api<Service> = Api::namespaced(client.clone(), namespace);
        let service = services
            .get(name)
            .await
            .with_context(|| format!("Service {namespace}/{name}, by which pods register, cannot be read"))?;
        Ok(Self {
            operator: address(&service)
                .with_context(|| format!("Service {namespace}/{name}, by which pods register"))?,
            configuration: configuration.clone(),
            authority: authority.word(),
            memory: Memory::default(),
        })
    }
}

fn address(service: &Service) -> anyhow::Result<String> {
    let address = service
        .spec
        .as_ref()
        .and_then(|spec| spec.cluster_ip.as_deref())
        .unwrap_or_default();
    let Ok(address) = address.parse::<IpAddr>() else {
        bail!("has no cluster address (`{address}`): it must be of type ClusterIP and not headless");
    };
    Ok(SocketAddr::new(address, REGISTRATION_PORT).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(cluster_ip: &str) -> anyhow::Result<String> {
        address(&serde_json::from_value(json!({"spec": {"clusterIP": cluster_ip}})).unwrap())
    }

    #[test]
    fn pods_register_at_the_services_address() {
        assert_eq!(of("10.96.0.7").unwrap(), "10.96.0.7:8443");
        assert_eq!(of("fd00::7").unwrap(), "[fd00::7]:8443");
    }

    #[test]
    fn a_service_without_an_address_is_an_error_that_says_so() {
        for none in ["None", ""] {
            let error = of(none).unwrap_err().to_string();
            assert!(error.contains("not headless"), "{error}");
        }
    }
}
