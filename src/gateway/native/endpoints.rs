//! The table of endpoints: each is routed, guarded and described in one place, so that none of the three can be forgotten.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::handler::Handler;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operation::{Operation, schema};
use super::problem::{self, ProblemBody};
use super::{Native, execution, files, inputs, session, tasks};

/// Most bytes of a JSON body. Files are streamed and have no such limit.
pub const MAX_JSON_BYTES: usize = 16 * 1024 * 1024;

/// What a session's endpoints begin with.
macro_rules! sessions {
    ($rest:literal) => {
        concat!(
            "/v1/namespaces/{namespace}/interpreters/{interpreter}/sessions",
            $rest
        )
    };
}
pub(super) use sessions;

/// A method of HTTP.
#[derive(Clone, Copy)]
pub enum Method {
    /// Read.
    Get,
    /// Put something in its place.
    Put,
    /// Do.
    Post,
    /// Remove.
    Delete,
}

impl Method {
    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Put => MethodFilter::PUT,
            Self::Post => MethodFilter::POST,
            Self::Delete => MethodFilter::DELETE,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Post => "post",
            Self::Delete => "delete",
        }
    }
}

/// Endpoints with what is said of them.
pub struct Endpoints {
    router: Router<Arc<Native>>,
    paths: BTreeMap<&'static str, Map<String, Value>>,
    schemas: SchemaGenerator,
}

impl Endpoints {
    /// All of them.
    pub fn all() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let none = Self {
            router: Router::new(),
            paths: BTreeMap::new(),
            schemas: settings.into_generator(),
        };
        [
            session::endpoints,
            execution::endpoints,
            tasks::endpoints,
            inputs::endpoints,
            files::endpoints,
        ]
        .into_iter()
        .fold(none, |endpoints, add| add(endpoints))
    }

    /// Adds one. Its handler is called only when the caller has the operation's right.
    pub fn on<H, T>(mut self, method: Method, path: &'static str, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<Native>>,
        T: 'static,
    {
        let right = operation.right;
        let guarded = move |State(native): State<Arc<Native>>, request: Request| async move {
            match native.admit(right, request).await {
                Ok(request) => handler.call(request, native).await,
                Err(problem) => problem.into_response(),
            }
        };
        self.router = self.router.route(path, on(method.filter(), guarded));
        let operation = operation.document(path, &mut self.schemas);
        self.paths
            .entry(path)
            .or_default()
            .insert(method.name().to_owned(), operation);
        self
    }

    /// What serves them.
    pub fn router(self) -> Router<Arc<Native>> {
        self.router.layer(DefaultBodyLimit::max(MAX_JSON_BYTES))
    }

    /// The OpenAPI document.
    pub fn document(mut self) -> Value {
        let problem = schema::<ProblemBody>(&mut self.schemas);
        let mut schemas = self.schemas.take_definitions(true);
        schemas.values_mut().for_each(plain);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Sessions of code interpreters",
                "version": env!("CARGO_PKG_VERSION"),
                "description": DESCRIPTION,
                "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            },
            "security": [{"token": []}],
            "paths": self.paths,
            "components": {
                "securitySchemes": {"token": {
                    "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
                    "description": "A token of the cluster for the audience `codeworkspace-gateway`.",
                }},
                "responses": {"Problem": {
                    "description": "The call was refused, or failed.",
                    "content": {problem::MEDIA_TYPE: {"schema": problem}},
                }},
                "schemas": schemas,
            },
        })
    }
}

/// Descriptions come from comments in the code: what links there is only a name here.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text
                    .replace("[`", "`")
                    .replace("`]", "`")
                    .replace("super::", "")
                    .replace('\n', " ");
            }
            members.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

const DESCRIPTION: &str = "Opens sessions of a CodeInterpreter, runs code and commands in them, and moves files in and out. \
    Callers are users of the cluster: RBAC on `codesessions.codeworkspace.dev` decides what they may do, and every refusal is a problem \
    of RFC 9457 with a stable `code`.";

/// The OpenAPI document as it is served and committed.
fn openapi() -> String {
    // Values without floats or foreign types are always written.
    let mut text = serde_json::to_string_pretty(&Endpoints::all().document()).unwrap_or_default();
    text.push('\n');
    text
}

/// Serves the document.
pub async fn serve_openapi() -> Response {
    ([(http::header::CONTENT_TYPE, "application/json")], openapi()).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// `UPDATE_OPENAPI=1 cargo test openapi` writes it anew.
    #[test]
    fn the_committed_openapi_document_is_the_one_that_is_served() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
        let current = openapi();
        if std::env::var_os("UPDATE_OPENAPI").is_some() {
            std::fs::write(&path, &current).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap();
        assert!(
            committed == current,
            "docs/openapi.json is stale: run UPDATE_OPENAPI=1 cargo test openapi"
        );
    }

    #[test]
    fn every_operation_has_a_name_of_its_own_and_every_reference_leads_somewhere() {
        let document = Endpoints::all().document();
        let (mut ids, mut references) = (Vec::new(), BTreeSet::new());
        gather(&document, &mut ids, &mut references);
        let unique: BTreeSet<_> = ids.iter().collect();
        assert_eq!((ids.len(), unique.len()), (21, 21), "{ids:?}");
        assert!(references.len() > 10, "{references:?}");
        let lost: Vec<_> = references
            .iter()
            .filter(|reference| document.pointer(reference.trim_start_matches('#')).is_none())
            .collect();
        assert_eq!(lost, Vec::<&String>::new());
    }

    fn gather(value: &Value, ids: &mut Vec<String>, references: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("operationId", Value::String(id)) => ids.push(id.clone()),
                        ("$ref", Value::String(reference)) => drop(references.insert(reference.clone())),
                        _ => gather(value, ids, references),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| gather(item, ids, references)),
            _ => {}
        }
    }
}
