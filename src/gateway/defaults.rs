//! The interpreter that every tenant has: an object like any other, made when a tenant's first key is seen or its first session is
//! asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use codeworkspace_api::{CodeInterpreter, CodeInterpreterSpec, DEFAULT_NAME, WarmPool, labels};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use tokio_util::sync::CancellationToken;

use super::access_key::AccessKeys;
use super::configuration::DefaultInterpreter;

/// Makes the default interpreter of each tenant that somebody has a key for, once, until `stop`. One that was deleted afterwards is
/// made again only when a session of it is asked for.
pub async fn make(
    client: Client,
    keys: Arc<AccessKeys>,
    defaults: DefaultInterpreter,
    stop: CancellationToken,
) {
    let mut changes = keys.changes();
    let mut made = BTreeSet::new();
    loop {
        changes.mark_unchanged();
        for tenant in keys.tenants() {
            if made.contains(&tenant) {
                continue;
            }
            match ensure(&client, &tenant, &defaults).await {
                Ok(()) => {
                    made.insert(tenant);
                }
                Err(error) => tracing::warn!(tenant, %error, "the default interpreter cannot be made"),
            }
        }
        tokio::select! {
            known = changes.changed() => {
                if known.is_err() {
                    return;
                }
            }
            () = stop.cancelled() => return,
        }
    }
}

/// Makes the default interpreter of a tenant, unless it is there.
pub async fn ensure(client: &Client, tenant: &str, defaults: &DefaultInterpreter) -> kube::Result<()> {
    let api: Api<CodeInterpreter> = Api::namespaced(client.clone(), tenant);
    match api
        .create(&PostParams::default(), &interpreter(tenant, defaults))
        .await
    {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => other.map(|_| ()),
    }
}

fn interpreter(tenant: &str, defaults: &DefaultInterpreter) -> CodeInterpreter {
    CodeInterpreter {
        metadata: ObjectMeta {
            name: Some(DEFAULT_NAME.to_owned()),
            namespace: Some(tenant.to_owned()),
            labels: Some([(labels::MANAGED_BY.to_owned(), GATEWAY.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: CodeInterpreterSpec {
            template: defaults.template.clone(),
            warm_pool: WarmPool {
                size: defaults.warm_pool_size,
                ..WarmPool::default()
            },
            description: Some("The default interpreter of the AgentCore API".to_owned()),
            ..CodeInterpreterSpec::default()
        },
        status: None,
    }
}

/// Value of the label for what the gateway makes by itself.
pub const GATEWAY: &str = "codeworkspace-gateway";
