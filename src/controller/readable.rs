//! Objects that come from the API server, whatever somebody has put into them.
//!
//! The API server keeps unknown keys at any depth, and `serde_json` refuses a whole answer when any part of it is nested deeper than it
//! descends. One such object would hide all others of its kind, in every namespace. So each object of an answer is first
//! taken as a piece of text, over which the parser passes without descending, and read by itself.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

/// An object, or what can be said of one that cannot be read.
#[derive(Clone, Debug)]
pub struct Readable<K>(pub Result<K, Unreadable>);

/// What can be said of an object that cannot be read.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// Why, without the object's content.
    pub error: String,
    /// Which one it is: name, namespace, uid, versions and deletion, and nothing else.
    pub metadata: ObjectMeta,
    /// Its status, which only the operator writes, and null when not even that can be read.
    pub status: serde_json::Value,
}

impl<'de, K: de::DeserializeOwned> Deserialize<'de> for Readable<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let error = match serde_json::from_str::<K>(text.get()) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) => in_words(&error.to_string()),
        };
        let Head { metadata } = serde_json::from_str(text.get()).map_err(de::Error::custom)?;
        let status = serde_json::from_str::<Status>(text.get())
            .map(|tail| tail.status)
            .unwrap_or_default();
        Ok(Self(Err(Unreadable {
            error,
            metadata: metadata.into(),
            status,
        })))
    }
}

/// The error without its position in the answer, which means nothing to anybody and moves whenever the status is written.
fn in_words(error: &str) -> String {
    let message = error
        .rsplit_once(" at line ")
        .map_or(error, |(message, _)| message);
    if message == "recursion limit exceeded" {
        return "values are nested too deeply: more than about 100 levels are not read".to_owned();
    }
    message.to_owned()
}

impl<K: Resource> Resource for Readable<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dynamic)
    }

    fn group(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::group(dynamic)
    }

    fn version(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::version(dynamic)
    }

    fn plural(dynamic: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dynamic)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0
            .as_ref()
            .map_or_else(|unreadable| &unreadable.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0
            .as_mut()
            .map_or_else(|unreadable| &mut unreadable.metadata, K::meta_mut)
    }
}

#[derive(Deserialize)]
struct Head {
    metadata: Identity,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    status: serde_json::Value,
}

/// The part of the metadata that is flat. Managed fields mirror the object's own depth.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    deletion_timestamp: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}

impl From<Identity> for ObjectMeta {
    fn from(identity: Identity) -> Self {
        Self {
            name: identity.name,
            namespace: identity.namespace,
            uid: identity.uid,
            resource_version: identity.resource_version,
            generation: identity.generation,
            deletion_timestamp: identity.deletion_timestamp,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use codeworkspace_api::CodeWorkspace;
    use kube::ResourceExt as _;
    use kube::api::{ObjectList, WatchEvent};

    use super::*;

    /// Deeper than `serde_json` descends.
    const DEEP: usize = 200;

    fn workspace(name: &str, spec: &str) -> String {
        format!(
            r#"{{"apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeWorkspace",
                "metadata": {{"name": "{name}", "namespace": "one", "uid": "u-{name}", "resourceVersion": "7", "generation": 3}},
                "spec": {spec}, "status": {{"observedGeneration": 2}}}}"#
        )
    }

    fn deep() -> String {
        let inputs = format!("{}1{}", r#"{"a":"#.repeat(DEEP), "}".repeat(DEEP));
        workspace("deep", &format!(r#"{{"code": "./a", "inputs": {inputs}}}"#))
    }

    #[test]
    fn an_object_that_is_nested_too_deeply_does_not_hide_the_others_of_a_list() {
        let list = format!(
            r#"{{"kind": "CodeWorkspaceList", "apiVersion": "codeworkspace.dev/v1alpha1", "metadata": {{"resourceVersion": "9"}},
                "items": [{}, {}]}}"#,
            deep(),
            workspace("good", r#"{"code": "./a"}"#)
        );
        let list: ObjectList<Readable<CodeWorkspace>> = serde_json::from_str(&list).unwrap();
        let unreadable = list.items[0].0.as_ref().unwrap_err();
        assert_eq!(
            unreadable.error,
            "values are nested too deeply: more than about 100 levels are not read"
        );
        assert_eq!(
            unreadable.metadata,
            ObjectMeta {
                name: Some("deep".to_owned()),
                namespace: Some("one".to_owned()),
                uid: Some("u-deep".to_owned()),
                resource_version: Some("7".to_owned()),
                generation: Some(3),
                ..ObjectMeta::default()
            }
        );
        assert_eq!(unreadable.status, serde_json::json!({"observedGeneration": 2}));
        assert_eq!(list.items[1].0.as_ref().unwrap().name_any(), "good");
    }

    #[test]
    fn an_object_that_is_nested_too_deeply_does_not_end_a_watch() {
        let event = format!(r#"{{"type": "MODIFIED", "object": {}}}"#, deep());
        let event: WatchEvent<Readable<CodeWorkspace>> = serde_json::from_str(&event).unwrap();
        let WatchEvent::Modified(object) = event else {
            panic!("{event:?}")
        };
        assert_eq!(object.meta().name.as_deref(), Some("deep"));
        assert!(object.0.is_err());
    }

    #[test]
    fn deep_managed_fields_are_no_obstacle_either() {
        let fields = format!("{}{{}}{}", r#"{"f:a":"#.repeat(DEEP), "}".repeat(DEEP));
        let object = format!(
            r#"{{"metadata": {{"name": "deep", "managedFields": [{{"fieldsV1": {fields}}}]}}, "spec": {{"code": "./a"}}}}"#
        );
        let object: Readable<CodeWorkspace> = serde_json::from_str(&object).unwrap();
        assert_eq!(object.0.unwrap_err().metadata.name.as_deref(), Some("deep"));
    }

    #[test]
    fn fields_of_a_wrong_type_are_the_objects_own_fault() {
        let object = workspace("wrong", r#"{"code": "./a", "suspend": "yes"}"#);
        let object: Readable<CodeWorkspace> = serde_json::from_str(&object).unwrap();
        assert_eq!(
            object.0.unwrap_err().error,
            "invalid type: string \"yes\", expected a boolean"
        );
    }
}
