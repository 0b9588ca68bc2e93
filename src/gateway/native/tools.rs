//! The tools of the MCP server: what models are told of them, and what they do.
//!
//! A session is opened by a tool and named in every other call, because the server itself keeps none: any gateway answers any call, and
//! a model can hold several sessions, or go on with one that somebody else has opened.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeworkspace_agentcore::result::{ExecutionTimeUnit, ToolResult};
use codeworkspace_protocol::session::{RemoveRequest, path};
use http::StatusCode;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::access::Right;
use super::execution::{Execute, RunCommand};
use super::problem::Problem;
use super::request::random;
use super::session::OpenSession;
use super::{Native, Place, is_session_id};
use crate::gateway::agentcore::files;
use crate::gateway::agentcore::outcome::Outcome;
use crate::gateway::events::Events;

/// A session that a tool works in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InSession<T> {
    /// The session, as open_session gave it.
    session: String,
    #[serde(flatten)]
    arguments: T,
}

/// Arguments of `open_session`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Open {
    /// A name for people.
    name: Option<String>,
    /// Seconds that the session may live; the interpreter's default when absent.
    timeout_seconds: Option<i64>,
}

/// Arguments of `close_session`.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Arguments of `execute_code`.
#[derive(Deserialize, JsonSchema)]
struct RunCode {
    /// The code. Variables live on in the session, for each language apart.
    code: String,
    /// Its language; python when absent.
    #[serde(default)]
    language: Option<codeworkspace_api::SessionLanguage>,
    /// Milliseconds that it may take.
    timeout_ms: Option<u64>,
    /// Forget all variables of the language before.
    #[serde(default)]
    clear_context: bool,
}

/// Arguments of `run_command`.
#[derive(Deserialize, JsonSchema)]
struct Shell {
    /// The command, for bash.
    command: String,
    /// Milliseconds that it may take; 30000 when absent.
    timeout_ms: Option<u64>,
}

/// Arguments of `read_file`.
#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// Path relative to the session's folder.
    path: String,
}

/// Arguments of `write_file`.
#[derive(Deserialize, JsonSchema)]
struct WriteFile {
    /// Path relative to the session's folder.
    path: String,
    /// What the file shall hold, as text.
    text: Option<String>,
    /// What the file shall hold, as base64 of its bytes. Give either this or text.
    base64: Option<String>,
}

/// Arguments of `list_files`.
#[derive(Deserialize, JsonSchema)]
struct ListFiles {
    /// Path of the folder, relative to the session's; that one itself when absent.
    path: Option<String>,
}

/// Arguments of `remove_files`.
#[derive(Deserialize, JsonSchema)]
struct RemoveFiles {
    /// Paths relative to the session's folder. Folders are removed with what is in them.
    paths: Vec<String>,
}

/// Every tool.
pub fn all() -> Vec<Tool> {
    let change = || ToolAnnotations::new().read_only(false).open_world(false);
    let look = || ToolAnnotations::new().read_only(true).open_world(false);
    let destroy = || change().destructive(true);
    vec![
        tool::<Open>(
            "open_session",
            "Open an isolated session in which code runs. Its id goes with every other call; it ends by close_session or when its time is up.",
            change(),
        ),
        tool::<InSession<Nothing>>(
            "close_session",
            "End a session. Everything in it is gone.",
            destroy().idempotent(true),
        ),
        tool::<InSession<RunCode>>(
            "execute_code",
            "Run code in a session. The result has what it printed, the value of the last expression, pictures and tables that it displayed, and the traceback of an exception.",
            destroy(),
        ),
        tool::<InSession<Shell>>(
            "run_command",
            "Run a shell command in a session, in its folder. The result has its output and exit code.",
            destroy(),
        ),
        tool::<InSession<ReadFile>>(
            "read_file",
            "Read a file of a session. Text comes as text, anything else as base64.",
            look(),
        ),
        tool::<InSession<WriteFile>>(
            "write_file",
            "Write a file of a session, in place of one that is there. Missing folders are made.",
            destroy().idempotent(true),
        ),
        tool::<InSession<ListFiles>>("list_files", "List a folder of a session.", look()),
        tool::<InSession<RemoveFiles>>(
            "remove_files",
            "Remove files and folders of a session.",
            destroy(),
        ),
    ]
}

fn tool<T: JsonSchema>(name: &'static str, description: &'static str, annotations: ToolAnnotations) -> Tool {
    // Models read the schema: one piece without references is what all of their hosts understand.
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // They are of our types, and not of the tool.
    schema.remove("title");
    schema.remove("description");
    let Value::Object(schema) = schema.to_value() else {
        return Tool::new(name, description, JsonObject::new());
    };
    Tool::new(name, description, schema).with_annotations(annotations)
}

impl Native {
    /// Calls a tool; none when there is none of this name. What goes wrong is a result that the model reads.
    pub async fn call_tool(&self, place: Place, name: &str, arguments: JsonObject) -> Option<CallToolResult> {
        let result = match name {
            "open_session" => self.open_tool(place, arguments).await,
            "close_session" => self.close_tool(place, arguments).await,
            "execute_code" => self.code_tool(place, arguments).await,
            "run_command" => self.command_tool(place, arguments).await,
            "read_file" => self.read_tool(place, arguments).await,
            "write_file" => self.write_tool(place, arguments).await,
            "list_files" => self.list_tool(place, arguments).await,
            "remove_files" => self.remove_tool(place, arguments).await,
            _ => return None,
        };
        Some(result.unwrap_or_else(|problem| failed(&problem)))
    }

    async fn open_tool(&self, place: Place, arguments: JsonObject) -> Result<CallToolResult, Problem> {
        let wanted: Open = read(arguments)?;
        let wanted = OpenSession {
            name: wanted.name,
            session_timeout_seconds: wanted.timeout_seconds,
        };
        let session = self.open(&place, &random()?, wanted).await?;
        let text = format!("session {} is open", session.id);
        let structured = serde_json::to_value(&session).unwrap_or_default();
        Ok(finished(
            &json!([{"type": "text", "text": text}]),
            Some(structured),
            false,
        ))
    }

    async fn close_tool(&self, place: Place, arguments: JsonObject) -> Result<CallToolResult, Problem> {
        let (place, Nothing {}) = self.locate(place, Right::Delete, arguments).await?;
        self.stop(&place).await?;
        Ok(of(&ToolResult::text("the session is closed")))
    }

    async fn code_tool(&self, place: Place, arguments: JsonObject) -> Result<CallToolResult, Problem> {
        let (place, wanted): (_, RunCode) = self.locate(place, Right::Create, arguments).await?;
        let wanted = Execute {
            code: wanted.code,
            language: wanted
                .language
                .unwrap_or(codeworkspace_api::SessionLanguage::Python),
            clear_context: wanted.clear_context,
            timeout_ms: wanted.timeout_ms,
            environment: std::collections::BTreeMap::new(),
        };
        let events = self.execute(&place, random()?, wanted).await?;
        self.outcome(&place, events).await
    }

    async fn command_tool(&self, place: Place, arguments: JsonObject) -> Result<CallToolResult, Problem> {
        let (place, wanted): (_, Shell) = self.locate(place, Right::Create, arguments).await?;
        let wanted = RunCommand {
            command: wanted.command,
            timeout_ms: wanted.timeout_ms,
            environment: std::collections::BTreeMap::new(),
        };
        let events = self.command(&place, random()?, wanted).await?;
        self.outcome(&place, events).await
    }

    async fn outcome(&self, place: &Place, events: Events) -> Result<CallToolResult, Problem> {
        match Outcome::of(events, ExecutionTimeUnit::Milliseconds).await {
            Ok(result) => Ok(of(&result)),
            Err(error) => Err(self.failure(place, error.into()).await),
        }
    }

    async fn read_tool(&self, place: Place, arguments: JsonObject) -> Result<CallToolResult, Problem> {
        let (place, wanted): (_, ReadFile) = self.locate(place, Right::Create, arguments).await?;
        let (_, runner) = self.runner(&place).await?;
        match files::read(&runner, &[wanted.path]).await {
            Ok(result) => Ok(of(&result)),
            Err(error) => Err(self.failure(&place, error).await),
        }
    }

    async fn write_tool(&self, place: Place, arguments: JsonObject) -> Result<CallToolResult, Problem> {
        let (place, wanted): (_, WriteFile) = self.locate(place, Right::Create, arguments).await?;
        let contents = match (wanted.text, wanted.base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(encoded)) => STANDARD
                .decode(&encoded)
                .map_err(|error| Problem::invalid(format!("base64 cannot be decoded: {error}")))?,
            _ => return Err(Problem::invalid("give either text or base64")),
        };
        let query = [("path", wanted.path.as_str())];
        let written = self.upload(&place, path::FILE, &query, contents.into()).await?;
        Ok(of(&ToolResult::text(format!("{} bytes written", written.bytes))))
    }

    async fn list_tool(&self, place: Place, arguments: JsonObject) -> Result<CallToolResult, Problem> {
        let (place, wanted): (_, ListFiles) = self.locate(place, Right::Create, arguments).await?;
        let (_, runner) = self.runner(&place).await?;
        match files::list(&runner, wanted.path.as_deref()).await {
            Ok(result) => Ok(of(&result)),
            Err(error) => Err(self.failure(&place, error).await),
        }
    }

    async fn remove_tool(&self, place: Place, arguments: JsonObject) -> Result<CallToolResult, Problem> {
        let (place, wanted): (_, RemoveFiles) = self.locate(place, Right::Create, arguments).await?;
        let count = wanted.paths.len();
        self.remove(&place, &RemoveRequest { paths: wanted.paths })
            .await?;
        Ok(of(&ToolResult::text(format!("{count} removed"))))
    }

    /// Where the tool shall work, once it is known that the caller may use this very session in this way.
    async fn locate<T: DeserializeOwned>(
        &self,
        place: Place,
        right: Right,
        arguments: JsonObject,
    ) -> Result<(Place, T), Problem> {
        let InSession { session, arguments } = read(arguments)?;
        if !is_session_id(&session) {
            return Err(Problem::session_not_found(&session));
        }
        self.access
            .check(&place.caller, right, &place.namespace, Some(&session))
            .await?;
        let place = Place {
            session: Some(session),
            ..place
        };
        Ok((place, arguments))
    }
}

fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Problem> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Problem::invalid(format!("the arguments are not what the tool takes: {error}")))
}

/// The blocks of AgentCore's results are those of MCP.
fn of(result: &ToolResult) -> CallToolResult {
    let content = serde_json::to_value(&result.content).unwrap_or_default();
    let structured = result
        .structured
        .as_ref()
        .map(|structured| serde_json::to_value(structured).unwrap_or_default());
    finished(&content, structured, result.is_error)
}

/// A refusal, for models as text and for programs as the problem that the native API answers.
fn failed(problem: &Problem) -> CallToolResult {
    let text = format!("{}: {}", problem.code, problem.detail);
    let structured = serde_json::to_value(problem.body()).unwrap_or_default();
    finished(&json!([{"type": "text", "text": text}]), Some(structured), true)
}

fn finished(content: &Value, structured: Option<Value>, is_error: bool) -> CallToolResult {
    // Clients of the newest protocol insist on the type; the library leaves it out for older ones.
    let mut result = json!({"resultType": "complete", "content": content, "isError": is_error});
    if let Some(structured) = structured {
        result["structuredContent"] = structured;
    }
    serde_json::from_value(result).unwrap_or_else(|error| {
        tracing::error!(%error, "a result is no result of MCP");
        let problem = Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Internal",
            "the result cannot be written",
        );
        CallToolResult::error(vec![rmcp::model::ContentBlock::text(problem.detail)])
    })
}

#[cfg(test)]
mod tests {
    use codeworkspace_agentcore::result::{ContentBlock, Resource};

    use super::*;

    #[test]
    fn models_are_told_of_every_tool_in_one_form() {
        insta::assert_json_snapshot!(all());
    }

    #[test]
    fn every_kind_of_block_is_one_of_mcp() {
        let result = ToolResult {
            content: vec![
                ContentBlock::text("a"),
                ContentBlock::Image {
                    data: vec![0, 255],
                    mime_type: "image/png".to_owned(),
                },
                ContentBlock::Resource {
                    resource: Resource::Blob {
                        uri: "file:///a".to_owned(),
                        mime_type: None,
                        blob: vec![0, 255],
                    },
                },
                ContentBlock::Resource {
                    resource: Resource::Text {
                        uri: "display:///1".to_owned(),
                        mime_type: Some("text/html".to_owned()),
                        text: "<p>".to_owned(),
                    },
                },
                ContentBlock::ResourceLink {
                    uri: "file:///b".to_owned(),
                    name: "b".to_owned(),
                    description: None,
                    mime_type: None,
                    size: Some(3),
                },
            ],
            structured: None,
            is_error: false,
        };
        let result = serde_json::to_value(of(&result)).unwrap();
        assert_eq!(result["resultType"], "complete");
        assert_eq!(
            result["content"],
            json!([
                {"type": "text", "text": "a"},
                {"type": "image", "data": "AP8=", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///a", "blob": "AP8="}},
                {"type": "resource", "resource": {"uri": "display:///1", "mimeType": "text/html", "text": "<p>"}},
                {"type": "resource_link", "uri": "file:///b", "name": "b", "size": 3},
            ])
        );
    }

    #[test]
    fn a_refusal_is_a_result_that_says_so() {
        let result = serde_json::to_value(failed(&Problem::session_not_found("abc"))).unwrap();
        assert_eq!(result["isError"], true);
        assert_eq!(
            result["content"][0]["text"],
            "SessionNotFound: there is no session abc of this interpreter"
        );
        assert_eq!(result["structuredContent"]["code"], "SessionNotFound");
    }

    #[test]
    fn misspelled_arguments_are_not_ignored() {
        for wrong in [
            json!({"session": "abc", "comand": "ls"}),
            json!({"session": "abc", "command": "ls", "timeout": 5}),
        ] {
            let arguments: JsonObject = serde_json::from_value(wrong).unwrap();
            let refused = read::<InSession<Shell>>(arguments).map(|_| ());
            assert_eq!(refused.unwrap_err().code, "InvalidRequest");
        }
    }
}
