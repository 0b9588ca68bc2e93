//! The lines that point an AWS SDK at the gateway of the development cluster.

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::installation::{Installation, OPERATOR_NAMESPACE, Options, Tools};

/// Whose key, and for which cluster.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The namespace whose sessions the key opens.
    #[arg(long, default_value = "default")]
    tenant: String,
    #[command(flatten)]
    installation: Options,
}

/// Prints `ENDPOINT=` and `AWS_…=` lines, for `export $(cargo xtask gateway-env)`. A tenant that has a key gets that one.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let installation = Installation::find(&arguments.installation)?;
    print!("{}", lines(installation.tools(), &arguments.tenant)?);
    Ok(())
}

/// The lines for one tenant.
pub(crate) fn lines(tools: &Tools, tenant: &str) -> Result<String> {
    let service = tools.get(&[
        "service",
        "codeworkspace-gateway",
        "--namespace",
        OPERATOR_NAMESPACE,
    ])?;
    let address = service["spec"]["clusterIP"]
        .as_str()
        .context("the gateway's Service has no address")?;
    let key = match existing(tools, tenant)? {
        Some(key) => key,
        None => tools.kubectl(&[
            "exec",
            "deployment/codeworkspace-gateway",
            "--namespace",
            OPERATOR_NAMESPACE,
            "--",
            "codeworkspace-operator",
            "create-access-key",
            "--tenant",
            tenant,
        ])?,
    };
    Ok(format!(
        "ENDPOINT=http://{address}\nAWS_ENDPOINT_URL=http://{address}\nAWS_REGION=us-east-1\nAWS_DEFAULT_REGION=us-east-1\n{key}"
    ))
}

fn existing(tools: &Tools, tenant: &str) -> Result<Option<String>> {
    let secrets = tools.get(&[
        "secrets",
        "--namespace",
        OPERATOR_NAMESPACE,
        "--selector=codeworkspace.dev/access-key=true",
    ])?;
    let secrets = secrets["items"].as_array().context("kubectl printed no list")?;
    Ok(secrets.iter().find_map(|secret| key_of(secret, tenant)))
}

fn key_of(secret: &Value, tenant: &str) -> Option<String> {
    let part = |name: &str| -> Option<String> {
        String::from_utf8(STANDARD.decode(secret["data"][name].as_str()?).ok()?).ok()
    };
    let is_usable = part("tenant")? == tenant && secret["metadata"]["deletionTimestamp"].is_null();
    is_usable.then_some(())?;
    Some(format!(
        "AWS_ACCESS_KEY_ID={}\nAWS_SECRET_ACCESS_KEY={}\n",
        part("accessKeyId")?,
        part("secretAccessKey")?
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tenant_that_has_a_key_gets_no_other() {
        let secret = json!({"data": {
            "accessKeyId": STANDARD.encode("CWAK1"),
            "secretAccessKey": STANDARD.encode("secret"),
            "tenant": STANDARD.encode("team"),
        }});
        assert_eq!(
            key_of(&secret, "team").unwrap(),
            "AWS_ACCESS_KEY_ID=CWAK1\nAWS_SECRET_ACCESS_KEY=secret\n"
        );
        assert_eq!(key_of(&secret, "other"), None);
    }
}
