//! Access keys: who a caller of the AgentCore API is. Each is a Secret of the gateway's own namespace, so that nobody else can read
//! one, and names the namespace (the tenant) that it opens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::watch;

/// Label of the Secrets that are access keys; its value is `true`.
pub const ACCESS_KEY: &str = "codeworkspace.dev/access-key";
/// Their type.
const SECRET_TYPE: &str = "codeworkspace.dev/access-key";
/// What the names of those Secrets begin with; the key's id follows in lower case. So no id can stand in two Secrets.
const NAME_PREFIX: &str = "access-key-";

const ID: &str = "accessKeyId";
const SECRET: &str = "secretAccessKey";
const TENANT: &str = "tenant";

/// One access key.
#[derive(Clone, Debug)]
pub struct AccessKey {
    /// What callers name it by.
    pub id: String,
    /// What they sign with.
    pub secret: SecretString,
    /// The namespace that it opens.
    pub tenant: String,
}

/// Why a Secret is no access key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessKeyError {
    /// A part is missing or has no legal form. The message never repeats what stands there.
    #[error("data.{field} {expected}")]
    Part {
        /// Which.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// The name does not follow from the id.
    #[error("the Secret of this key must be called `{0}`")]
    Name(String),
}

impl AccessKey {
    /// A new random key for a tenant.
    pub fn generate(tenant: &str) -> Result<Self, getrandom::Error> {
        /// As in base 32 (RFC 4648, 6): what AWS's own ids are made of.
        const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let mut random = [0; 56];
        getrandom::fill(&mut random)?;
        let text = |bytes: &[u8]| -> String {
            bytes
                .iter()
                .map(|byte| char::from(LETTERS[usize::from(byte % 32)]))
                .collect()
        };
        let (id, secret) = random.split_at(16);
        Ok(Self {
            id: format!("CWAK{}", text(id)),
            secret: text(secret).into(),
            tenant: tenant.to_owned(),
        })
    }

    /// The Secret that holds it.
    pub fn to_secret(&self, namespace: &str) -> Secret {
        let data = [
            (ID, self.id.as_str()),
            (SECRET, self.secret.expose_secret()),
            (TENANT, self.tenant.as_str()),
        ];
        Secret {
            metadata: ObjectMeta {
                name: Some(name_of(&self.id)),
                namespace: Some(namespace.to_owned()),
                labels: Some(BTreeMap::from([(ACCESS_KEY.to_owned(), "true".to_owned())])),
                ..ObjectMeta::default()
            },
            type_: Some(SECRET_TYPE.to_owned()),
            data: Some(
                data.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())))
                    .into(),
            ),
            ..Secret::default()
        }
    }

    /// Reads a Secret.
    pub fn read(secret: &Secret) -> Result<Self, AccessKeyError> {
        let part = |field: &'static str, expected: &'static str, is_legal: fn(&str) -> bool| {
            secret
                .data
                .as_ref()
                .and_then(|data| data.get(field))
                .and_then(|value| std::str::from_utf8(&value.0).ok())
                .filter(|value| is_legal(value))
                .map(str::to_owned)
                .ok_or(AccessKeyError::Part { field, expected })
        };
        let id = part(ID, "must be 16 to 128 capital letters and digits", |id| {
            (16..=128).contains(&id.len())
                && id
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        })?;
        let key = part(SECRET, "must be 32 to 256 visible characters", |key| {
            (32..=256).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
        })?;
        let tenant = part(TENANT, "must be the name of a namespace", |tenant| {
            (1..=63).contains(&tenant.len())
                && tenant
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        })?;
        let name = name_of(&id);
        if secret.name_any() != name {
            return Err(AccessKeyError::Name(name));
        }
        Ok(Self {
            id,
            secret: key.into(),
            tenant,
        })
    }
}

fn name_of(id: &str) -> String {
    format!("{NAME_PREFIX}{}", id.to_ascii_lowercase())
}

/// The keys that there are now.
#[derive(Debug, Default)]
pub struct AccessKeys {
    keys: RwLock<HashMap<String, Arc<AccessKey>>>,
    changed: watch::Sender<()>,
}

impl AccessKeys {
    /// The key of this id.
    pub fn get(&self, id: &str) -> Option<Arc<AccessKey>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.get(id).cloned()
    }

    /// Is told of whenever a key came.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Every tenant that somebody has a key for.
    pub fn tenants(&self) -> BTreeSet<String> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.values().map(|key| key.tenant.clone()).collect()
    }

    /// Takes over what the watch tells of one Secret.
    pub fn apply(&self, secret: &Secret) {
        match AccessKey::read(secret) {
            Ok(key) => {
                let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
                keys.insert(key.id.clone(), Arc::new(key));
                drop(keys);
                self.changed.send_replace(());
            }
            Err(error) => {
                // It may have been a good one before.
                self.delete(secret);
                tracing::warn!(secret = secret.name_any(), %error, "a Secret is no access key");
            }
        }
    }

    /// A Secret is gone.
    pub fn delete(&self, secret: &Secret) {
        let name = secret.name_any();
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|id, _| name_of(id) != name);
    }

    /// Everything was listed anew.
    pub fn replace(&self, secrets: &[Secret]) {
        let names: BTreeSet<_> = secrets.iter().map(ResourceExt::name_any).collect();
        self.keys
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|id, _| names.contains(&name_of(id)));
        for secret in secrets {
            self.apply(secret);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_key_is_read_back_from_its_secret() {
        let key = AccessKey::generate("team-a").unwrap();
        let secret = key.to_secret("codeworkspace");
        assert_eq!(secret.name_any(), format!("access-key-{}", key.id.to_lowercase()));
        let read = AccessKey::read(&secret).unwrap();
        assert_eq!(
            (read.id.as_str(), read.tenant.as_str()),
            (key.id.as_str(), "team-a")
        );
        assert_eq!(read.secret.expose_secret(), key.secret.expose_secret());
        assert_ne!(AccessKey::generate("team-a").unwrap().id, key.id);
    }

    #[test]
    fn neither_logs_nor_errors_show_a_secret() {
        let key = AccessKey::generate("team-a").unwrap();
        assert!(!format!("{key:?}").contains(key.secret.expose_secret()));
        let mut secret = key.to_secret("codeworkspace");
        let data = secret.data.as_mut().unwrap();
        data.insert(SECRET.to_owned(), ByteString(b"too short".to_vec()));
        let error = AccessKey::read(&secret).unwrap_err();
        assert_eq!(
            error.to_string(),
            "data.secretAccessKey must be 32 to 256 visible characters"
        );
    }

    #[test]
    fn one_id_cannot_stand_in_two_secrets() {
        let key = AccessKey::generate("team-a").unwrap();
        let mut other = key.to_secret("codeworkspace");
        other.metadata.name = Some("access-key-of-mine".to_owned());
        assert_eq!(
            AccessKey::read(&other).unwrap_err(),
            AccessKeyError::Name(format!("access-key-{}", key.id.to_lowercase()))
        );
    }

    #[test]
    fn a_key_works_until_its_secret_is_gone_or_spoilt() {
        let keys = AccessKeys::default();
        let (one, two) = (
            AccessKey::generate("a").unwrap(),
            AccessKey::generate("b").unwrap(),
        );
        keys.replace(&[one.to_secret("x"), two.to_secret("x")]);
        assert_eq!(keys.tenants().into_iter().collect::<Vec<_>>(), ["a", "b"]);
        keys.delete(&one.to_secret("x"));
        assert!(keys.get(&one.id).is_none());
        let mut spoilt = two.to_secret("x");
        spoilt.data = None;
        keys.apply(&spoilt);
        assert!(keys.get(&two.id).is_none());
    }
}
