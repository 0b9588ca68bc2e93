//! What is said of an endpoint in the OpenAPI document.

use schemars::JsonSchema;
use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::access::Right;

/// Any bytes.
pub const BYTES: &str = "application/octet-stream";
/// Server-sent events.
pub const EVENTS: &str = "text/event-stream";

type MakeSchema = fn(&mut SchemaGenerator) -> Value;

/// One verb of the API.
pub struct Operation {
    id: &'static str,
    /// What callers need of RBAC for it.
    pub right: Right,
    summary: &'static str,
    description: Option<&'static str>,
    parameters: Vec<Value>,
    request: Option<(&'static str, MakeSchema)>,
    answer: (u16, &'static str, Option<(&'static str, MakeSchema)>),
}

impl Operation {
    /// An operation that answers 204 and takes nothing.
    pub fn new(id: &'static str, right: Right, summary: &'static str) -> Self {
        Self {
            id,
            right,
            summary,
            description: None,
            parameters: Vec::new(),
            request: None,
            answer: (204, "It is done.", None),
        }
    }

    /// What the summary does not say.
    pub fn describe(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// A query parameter that is a string.
    pub fn query(mut self, name: &str, required: bool, description: &str) -> Self {
        self.parameters.push(json!({
            "name": name, "in": "query", "required": required, "description": description,
            "schema": {"type": "string"},
        }));
        self
    }

    /// The header that makes repeated calls one.
    pub fn idempotent(mut self, description: &str) -> Self {
        self.parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false, "description": description,
            "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
        }));
        self
    }

    /// Takes JSON.
    pub fn takes<T: JsonSchema>(self) -> Self {
        self.takes_media("application/json", schema::<T>)
    }

    /// Takes bytes of this media type.
    pub fn takes_bytes(self, media_type: &'static str) -> Self {
        self.takes_media(media_type, |_| json!({}))
    }

    /// Answers JSON.
    pub fn answers<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.answers_media(status, description, "application/json", schema::<T>)
    }

    /// Answers a stream of server-sent events, each of which has this as its data.
    pub fn answers_events<T: JsonSchema>(self, description: &'static str) -> Self {
        self.answers_media(200, description, EVENTS, schema::<T>)
    }

    /// Answers bytes.
    pub fn answers_bytes(self, description: &'static str) -> Self {
        self.answers_media(200, description, BYTES, |_| json!({}))
    }

    fn takes_media(mut self, media_type: &'static str, schema: MakeSchema) -> Self {
        self.request = Some((media_type, schema));
        self
    }

    fn answers_media(
        mut self,
        status: u16,
        description: &'static str,
        media_type: &'static str,
        schema: MakeSchema,
    ) -> Self {
        self.answer = (status, description, Some((media_type, schema)));
        self
    }

    /// The operation object (OpenAPI 3.1, 4.8.10) for a path.
    pub fn document(self, path: &str, schemas: &mut SchemaGenerator) -> Value {
        let (status, answer, content) = self.answer;
        let mut response = json!({"description": answer});
        if let Some((media_type, schema)) = content {
            response["content"] = json!({media_type: {"schema": schema(schemas)}});
        }
        let mut parameters: Vec<_> = names(path).map(path_parameter).collect();
        parameters.extend(self.parameters);
        let needs = format!("Needs the right to `{}` codesessions.", self.right.verb());
        let description = match self.description {
            Some(description) => format!("{description} {needs}"),
            None => needs,
        };
        let mut operation = json!({
            "operationId": self.id,
            "summary": self.summary,
            "description": description,
            "parameters": parameters,
            "responses": {
                status.to_string(): response,
                "default": {"$ref": "#/components/responses/Problem"},
            },
        });
        if let Some((media_type, schema)) = self.request {
            operation["requestBody"] = json!({
                "required": true,
                "content": {media_type: {"schema": schema(schemas)}},
            });
        }
        operation
    }
}

/// The schema of a type, by reference if it has a name of its own.
pub fn schema<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().to_value()
}

/// The parameters in a path's template.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Value {
    let description = match name {
        "namespace" => "The namespace of the interpreter.",
        "interpreter" => "Name of the CodeInterpreter object.",
        "session" => "The session's id.",
        "execution" => {
            "The id in the header `Execution-Id` of the answer, or the Idempotency-Key of the call."
        }
        "task" => "The task's id.",
        "input" => "The input's name.",
        _ => "",
    };
    json!({
        "name": name, "in": "path", "required": true, "description": description,
        "schema": {"type": "string"},
    })
}
