//! Schemas of the blocks that describe what surrounds the body: `sandbox` (AIP-36), and `runtime`, which AIP-17 split up.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{KEYS_MAX, PATH_MAX};

/// The block before the split of AIP-17: both spellings of its limits.
pub(crate) fn runtime(_: &mut SchemaGenerator) -> Schema {
    let number = |description: &str| json!({"description": description, "type": "integer", "minimum": 1});
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "properties": {
            "mode": {
                "description": "`sandbox` and `subprocess` become `engine: subprocess`, as does `in-process`, which is refused to everybody.",
                "type": "string", "enum": ["sandbox", "subprocess", "in-process"]
            },
            "env": texts("Names of environment variables; each becomes the secret of that slug."),
            "fs": {
                "description": "Files before and after the run.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "maxProperties": KEYS_MAX,
                "properties": {
                    "read": texts("Files that the body reads; they become `inputsFiles`."),
                    "write": texts("Files that the body writes; they become `outputsFiles`.")
                }
            },
            "network": {
                "description": "Becomes `network`.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "maxProperties": KEYS_MAX,
                "properties": {"egress": texts("Hosts that the body may reach.")}
            },
            "cpu_ms_max": number("Becomes `runner.limits.cpu_ms`."),
            "memory_mb_max": number("Becomes `runner.limits.memory_mb`."),
            "timeout_ms": number("Becomes `runner.limits.timeout_ms`."),
            "resources": {
                "description": "The limits in their other spelling.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "maxProperties": KEYS_MAX,
                "properties": {
                    "memoryMb": number("Becomes `runner.limits.memory_mb`."),
                    "timeoutMs": number("Becomes `runner.limits.timeout_ms`."),
                    "cpuMs": number("Becomes `runner.limits.cpu_ms`.")
                }
            }
        }
    })
}

pub(crate) fn sandbox(_: &mut SchemaGenerator) -> Schema {
    let mut schema = sandbox_fields();
    let mut inline = sandbox_fields();
    inline.insert(
        "description".to_owned(),
        "The same fields, one level deeper. Nothing may stand beside it.".into(),
    );
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("inline".to_owned(), inline.to_value());
        for (form, description) in [
            (
                "ref",
                "A file of the root such as `./SANDBOX.md`. There is no registry: any other name is `sandbox_ref_unresolvable`.",
            ),
            (
                "file",
                "A file of the root that holds the block, such as `./SANDBOX.md`. Nothing may stand beside it.",
            ),
        ] {
            properties.insert(form.to_owned(), text(description));
        }
    }
    schema
}

fn text(description: &str) -> Value {
    json!({"description": description, "type": "string", "minLength": 1, "maxLength": PATH_MAX})
}

fn texts(description: &str) -> Value {
    json!({
        "description": description,
        "type": "array",
        "maxItems": 256,
        "items": {"type": "string", "minLength": 1, "maxLength": 260}
    })
}

fn object(description: &str, properties: &Value) -> Value {
    json!({
        "description": description,
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "properties": properties
    })
}

fn sandbox_fields() -> Schema {
    let number = |description: &str, maximum: u64| json!({"description": description, "type": "integer", "minimum": 1, "maximum": maximum});
    let anything =
        |description: &str| json!({"description": description, "x-kubernetes-preserve-unknown-fields": true});
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": 24,
        "properties": {
            "schema": text("`sandbox/v1`, when the block comes from a file of its own."),
            "id": text("`@owner/name`, when the block comes from a file of its own. Shown."),
            "version": text("Version of that file. Shown."),
            "provider": text("`kubernetes`. Any other is refused by name."),
            "config": {
                "description": "Settings of a provider. Ours has none.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true
            },
            "limits": object("What a command may use; the smaller of these and of `runner.limits` holds.", &json!({
                "timeout_ms": number("Wall-clock time in ms.", 604_800_000),
                "memory_mb": number("Memory in MiB.", 1_048_576),
                "cpu_ms": number("CPU time in ms.", 9_007_199_254_740_991)
            })),
            "env": object("What the environment holds besides `secrets`.", &json!({
                "auth": object("Credentials by name; values never stand here.", &json!({
                    "ref": text("The inventory. Any SecretInventory of the namespace is used."),
                    "state": object("Which of them.", &json!({
                        "env": texts("Names of environment variables; each becomes the secret of that slug.")
                    }))
                })),
                "passthrough": texts("Variables of the host. Only those that the template lists.")
            })),
            "network": object("Hosts that the sandbox may reach; they are added to `network`.", &json!({
                "egress": texts("`host`, `*.host`, each with an optional `:port`.")
            })),
            "mounts": {
                "description": "What is mounted where.",
                "type": "array",
                "maxItems": 16,
                "x-kubernetes-list-type": "atomic",
                "items": object("One mount.", &json!({
                    "source": anything("`workspace`: `spec.root` when it is a PersistentVolumeClaim. Others are refused by name."),
                    "at": text("Absolute path in the sandbox."),
                    "mode": {"description": "`read-write` (the default) or `read-only`.", "type": "string", "enum": ["read-write", "read-only"]}
                }))
            },
            "identity": anything("Who owns the sandbox (AIP-23). Recorded, not enforced."),
            "policy": anything("What may be done with the sandbox (AIP-38). Recorded, not enforced."),
            "lifecycle": object("When the sandbox pauses and ends. Only sessions idle.", &json!({
                "pause_after_idle": text("An event such as `idle-600`."),
                "pause_after_idle_ms": number("The same in ms.", 604_800_000),
                "destroy_on": text("An event such as `workspace-close`."),
                "destroy_on_workspace_close": {"description": "The same as a switch.", "type": "boolean"}
            })),
            "read_only": {"description": "Run no command: only the bundle and its status.", "type": "boolean"},
            "metadata": {
                "description": "Anything else, for other tools.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true
            }
        }
    })
}
