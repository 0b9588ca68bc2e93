//! Schemas of the AIP blocks. They are unions of strings, lists and objects, which a structural schema cannot state with
//! `type`: a node without a type but with typed properties accepts all of them and checks the object form. Every object node
//! preserves unknown keys, since the API server would otherwise drop a misspelled key in silence; the admission policy of
//! the chart, and the operator itself, then name it. `maxProperties` bounds what they have to look at.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

mod environment;

pub(crate) use environment::{runtime, sandbox};

const PATH_MAX: u32 = 1024;
const SOURCES_MAX: u32 = 64;
const INLINE_MAX: u32 = 524_288;
/// More than any block has, and few enough for a policy to look at each.
const KEYS_MAX: u32 = 16;

pub(crate) fn code(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "minLength": 1,
        "maxLength": PATH_MAX,
        "required": ["sources"],
        "properties": {
            "sources": {
                "description": "Where files come from, overlaid in order: the last source that has a path wins.",
                "type": "array",
                "minItems": 1,
                "maxItems": SOURCES_MAX,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "description": "Exactly one of `inline`, `local`, `github` and `ref`.",
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                    "maxProperties": KEYS_MAX,
                    "properties": {
                        "inline": inline(),
                        "local": local(),
                        "github": github(),
                        "ref": workspace()
                    }
                }
            }
        }
    })
}

fn inline() -> Schema {
    json_schema!({
        "description": "A file whose content stands in the manifest.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "required": ["path", "content"],
        "properties": {
            "path": {
                "description": "Path in the bundle: relative, without `..`.",
                "type": "string", "minLength": 1, "maxLength": PATH_MAX
            },
            "content": {
                "description": "UTF-8 text without NUL. All inline sources together may hold 512 KiB.",
                "type": "string", "maxLength": INLINE_MAX
            }
        }
    })
}

fn local() -> Schema {
    json_schema!({
        "description": "A file, folder or glob of `spec.root`, as a path or an object with `path`.",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "minLength": 1,
        "maxLength": PATH_MAX,
        "required": ["path"],
        "properties": {
            "path": {
                "description": "Path in the root: a file, a folder (a trailing `/` insists on one) or a glob.",
                "type": "string", "minLength": 1, "maxLength": PATH_MAX
            },
            "as": {
                "description": "Path in the bundle; the same as `path` when absent. With a trailing `/` it is a folder that receives.",
                "type": "string", "minLength": 1, "maxLength": PATH_MAX
            },
            "glob": {
                "description": "Which files of the folder: `*`, `?` and `[…]` within a name, `**` across folders.",
                "type": "string", "maxLength": PATH_MAX
            }
        }
    })
}

fn github() -> Schema {
    json_schema!({
        "description": "A repository, or a part of it, at one commit.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "required": ["repo", "ref"],
        "properties": {
            "repo": {
                "description": "`owner/name`. The host is the operator's configuration.",
                "type": "string", "maxLength": 140,
                "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]*/[A-Za-z0-9._-]+$"
            },
            "ref": {
                "description": "A whole commit id (never looked up again), a tag, a branch, or `refs/tags/…`, `refs/heads/…`.",
                "type": "string", "minLength": 1, "maxLength": 255
            },
            "path": {
                "description": "Folder or file in the repository; all of it when absent.",
                "type": "string", "maxLength": PATH_MAX
            },
            "as": {
                "description": "Path in the bundle; the same as `path` when absent.",
                "type": "string", "maxLength": PATH_MAX
            }
        }
    })
}

fn workspace() -> Schema {
    json_schema!({
        "description": "Another workspace whose sources come in here, as a path or an object with `path`: a folder of `spec.root` with a manifest, else the CodeWorkspace of this namespace whose `path` it is.",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "minLength": 1,
        "maxLength": PATH_MAX,
        "required": ["path"],
        "properties": {
            "path": {
                "description": "The workspace's path.",
                "type": "string", "minLength": 1, "maxLength": PATH_MAX
            }
        }
    })
}

pub(crate) fn run(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "minLength": 1,
        "maxLength": 65_536,
        "minItems": 1,
        "maxItems": 1024,
        "properties": {
            "file": {
                "description": "A file of the bundle; its extension chooses the interpreter.",
                "type": "string", "minLength": 1, "maxLength": PATH_MAX
            },
            "exec": {
                "description": "An argument list for execve, without a shell.",
                "type": "array", "minItems": 1, "maxItems": 1024,
                "items": {"type": "string", "maxLength": 65_536}
            },
            "shell": {
                "description": "A command for `bash -c`.",
                "type": "string", "minLength": 1, "maxLength": 65_536
            }
        }
    })
}

pub(crate) fn runner(_: &mut SchemaGenerator) -> Schema {
    let mut schema = runner_fields();
    let mut inline = runner_fields();
    inline.insert(
        "description".to_owned(),
        "The same fields, one level deeper. Nothing may stand beside it.".into(),
    );
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("inline".to_owned(), inline.to_value());
        for (form, description) in [
            (
                "ref",
                "Name of a RunnerTemplate, or a file of the root such as `./RUNNER.md`. Nothing may stand beside it.",
            ),
            (
                "file",
                "A file of the root that holds the block, such as `./RUNNER.md`. Nothing may stand beside it.",
            ),
        ] {
            let reference = json!({
                "description": description, "type": "string", "minLength": 1, "maxLength": PATH_MAX
            });
            properties.insert(form.to_owned(), reference);
        }
    }
    schema
}

fn runner_fields() -> Schema {
    let packages = || {
        json_schema!({
            "type": "array",
            "maxItems": 256,
            "items": {"type": "string", "minLength": 1, "maxLength": 256}
        })
    };
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "properties": {
            "engine": {
                "description": "`sandbox` or `subprocess` (the default): both run in a pod of their own. `in-process` becomes `subprocess`.",
                "type": "string",
                "enum": ["sandbox", "subprocess", "in-process"]
            },
            "image": {
                "description": "Name of a RunnerTemplate, only with `engine: sandbox`. Picked by `needs` when absent.",
                "type": "string", "minLength": 1, "maxLength": 253
            },
            "needs": {
                "description": "What the body needs from its image.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "maxProperties": KEYS_MAX,
                "properties": {
                    "language": {
                        "description": "`node`, `python`, or `multi` for shell commands and argument lists; taken from `run` when absent.",
                        "type": "string", "enum": ["node", "python", "multi"]
                    },
                    "native": packages(),
                    "npm": packages(),
                    "pip": packages()
                }
            },
            "limits": {
                "description": "What the body may use.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "maxProperties": KEYS_MAX,
                "properties": {
                    "memory_mb": {"description": "Memory in MiB; 256 when absent.", "type": "integer", "minimum": 1, "maximum": 1_048_576},
                    "timeout_ms": {"description": "Wall-clock time in ms; 600000 when absent.", "type": "integer", "minimum": 1, "maximum": 604_800_000},
                    "cpu_ms": {"description": "CPU time in ms. Recorded, not enforced yet.", "type": "integer", "minimum": 1},
                    "vcpus": {"description": "CPU cores; 1 when absent.", "type": "number", "minimum": 0.01, "maximum": 256},
                    "ephemeral_storage_mb": {"description": "Scratch space in MiB.", "type": "integer", "minimum": 1, "maximum": 1_048_576}
                }
            }
        }
    })
}

pub(crate) fn secrets(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": 64,
        "additionalProperties": {
            "description": "Exactly one of `vault`, `oauth` and `value`.",
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "maxProperties": KEYS_MAX,
            "properties": {
                "vault": {
                    "description": "Slug of a secret in the inventory.",
                    "type": "string", "minLength": 2, "maxLength": 80,
                    "pattern": "^([a-z][a-z0-9-]*[a-z0-9]/)?[a-z][a-z0-9-]*[a-z0-9]$"
                },
                "oauth": {
                    "description": "Driver of a connector in the inventory.",
                    "type": "string", "minLength": 1, "maxLength": 63, "pattern": r"^[^\s\x00-\x1f\x7f]+$"
                },
                "value": {
                    "description": "A plain value. It stands in the object for everybody who may read it.",
                    "type": "string", "maxLength": 65_536, "pattern": r"^[^\x00]*$"
                }
            }
        }
    })
}

pub(crate) fn network(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "properties": {
            "egress": {
                "description": "`host`, `*.host`, each with an optional `:port`.",
                "type": "array",
                "maxItems": 256,
                "items": {"type": "string", "minLength": 1, "maxLength": 260}
            }
        }
    })
}

pub(crate) fn origin(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": KEYS_MAX,
        "properties": {
            "origin": {"description": "For example `workspace` or `ai-draft`.", "type": "string", "maxLength": 253}
        }
    })
}

/// Files before or after a run, by their names (AIP-16).
pub(crate) fn files(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "maxProperties": 64,
        "additionalProperties": {
            "description": "One file.",
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "maxProperties": KEYS_MAX,
            "required": ["path"],
            "properties": {
                "path": {
                    "description": "Path in the root. `<runId>`, `<workflowId>`, `<toolId>` and `<isoDate>` stand for those of the run.",
                    "type": "string", "minLength": 1, "maxLength": PATH_MAX
                },
                "mode": {"description": "`ro` or `rw`, for people.", "type": "string", "enum": ["ro", "rw"]},
                "contentType": {"description": "A media type, for people.", "type": "string", "maxLength": 253}
            }
        }
    })
}

/// A block that is taken as it stands.
pub(crate) fn open(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// A list that is taken as it stands.
pub(crate) fn open_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 64,
        "x-kubernetes-list-type": "atomic",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
    })
}
