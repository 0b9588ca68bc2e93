//! Staged inputs: data that code reads from files, and finds by name in one environment variable.
//!
//! The session's own folder is the only memory: each input is the file of its name in [`FOLDER`], and the variable is written anew from
//! what is there before each execution and command. So any gateway serves any call, and the variable never names what is not there.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Body as Bytes;
use axum::extract::{Path, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeworkspace_protocol::layout::DEFAULT_MOUNT;
use codeworkspace_protocol::session::{ErrorCode, FileEntry, FileKind, RemoveRequest, path};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Right;
use super::endpoints::{Endpoints, Method, sessions};
use super::files::passed_on;
use super::operation::{BYTES, Operation};
use super::problem::Problem;
use super::request::Body;
use super::{Native, Place};
use crate::gateway::runner::{Runner, RunnerError};

/// The environment variable: a JSON object that gives the path of each input by its name. AgentCore adapters use the same.
pub const VARIABLE: &str = "AF_STAGED_INPUTS";
/// Folder of the session that holds the inputs.
const FOLDER: &str = ".inputs";
/// Longest value of the variable. Linux takes no string of more than 128 KiB for a new process.
const LONGEST: usize = 100 * 1024;

/// Inputs to stage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StageInputs {
    /// The inputs. All of them are written, or none; what was staged under other names stays.
    inputs: Vec<NewInput>,
}

/// An input, as text or as bytes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewInput {
    /// Its name, which is also its file's.
    name: String,
    /// Its text.
    text: Option<String>,
    /// Its bytes, in base64.
    #[schemars(extend("contentEncoding" = "base64"))]
    bytes: Option<String>,
}

impl NewInput {
    fn contents(&self) -> Result<Vec<u8>, Problem> {
        let name = &self.name;
        match (&self.text, &self.bytes) {
            (Some(text), None) => Ok(text.clone().into_bytes()),
            (None, Some(bytes)) => STANDARD
                .decode(bytes)
                .map_err(|error| Problem::invalid(format!("bytes of input `{name}` are no base64: {error}"))),
            _ => Err(Problem::invalid(format!(
                "input `{name}` must have either text or bytes"
            ))),
        }
    }
}

/// An input that code finds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StagedInput {
    /// Its name.
    name: String,
    /// The path at which code opens it.
    path: String,
    /// Its size.
    bytes: u64,
}

/// The endpoints of this module.
pub fn endpoints(endpoints: Endpoints) -> Endpoints {
    let found = "Code finds them in the environment variable `AF_STAGED_INPUTS`, a JSON object of paths by name, which is written \
        before each execution and command.";
    endpoints
        .on(
            Method::Get,
            sessions!("/{session}/inputs"),
            Operation::new("listInputs", Right::Create, "List staged inputs")
                .answers::<Vec<StagedInput>>(200, "The inputs, sorted by name."),
            list,
        )
        .on(
            Method::Post,
            sessions!("/{session}/inputs"),
            Operation::new("stageInputs", Right::Create, "Stage inputs")
                .describe(found)
                .takes::<StageInputs>()
                .answers::<Vec<StagedInput>>(200, "All inputs that are staged now."),
            stage,
        )
        .on(
            Method::Put,
            sessions!("/{session}/inputs/{input}"),
            Operation::new("stageInput", Right::Create, "Stage an input of any size")
                .describe(found)
                .takes_bytes(BYTES)
                .answers::<StagedInput>(200, "The input."),
            stage_one,
        )
        .on(
            Method::Delete,
            sessions!("/{session}/inputs/{input}"),
            Operation::new("removeInput", Right::Create, "Remove a staged input"),
            remove,
        )
}

/// What is staged in a session; none when nothing ever was.
pub async fn staged(runner: &Runner) -> Result<Option<Vec<StagedInput>>, RunnerError> {
    match runner
        .get::<Vec<FileEntry>>(path::LIST, &[("path", FOLDER)])
        .await
    {
        Ok(entries) => Ok(Some(entries.iter().filter_map(input).collect())),
        Err(RunnerError::Refused(error))
            if matches!(error.code, ErrorCode::NotFound | ErrorCode::WrongKind) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn input(entry: &FileEntry) -> Option<StagedInput> {
    let name = entry.path.strip_prefix(FOLDER)?.strip_prefix('/')?.to_owned();
    (entry.kind == FileKind::File).then(|| StagedInput {
        name,
        path: format!("{DEFAULT_MOUNT}/{}", entry.path),
        bytes: entry.size,
    })
}

/// The value of [`VARIABLE`].
pub fn variable(staged: &[StagedInput]) -> Result<String, Problem> {
    let paths: BTreeMap<_, _> = staged
        .iter()
        .map(|input| (input.name.as_str(), input.path.as_str()))
        .collect();
    // A map of strings can always be written.
    let value = serde_json::to_string(&paths).unwrap_or_default();
    if value.len() <= LONGEST {
        return Ok(value);
    }
    let detail = format!(
        "{} inputs are staged, whose names and paths do not fit into {VARIABLE}: remove some, or take shorter names",
        staged.len()
    );
    Err(Problem::new(StatusCode::CONFLICT, "TooManyInputs", detail))
}

/// The path of an input's file.
fn file(name: &str) -> Result<String, Problem> {
    let is_plain = !matches!(name, "" | "." | "..") && name.len() <= 255 && !name.contains(['/', '\0']);
    if is_plain {
        Ok(format!("{FOLDER}/{name}"))
    } else {
        Err(Problem::invalid(format!(
            "the name of an input must be the name of a file, without `/`, in at most 255 bytes: `{}` is none",
            name.escape_debug()
        )))
    }
}

fn packed(inputs: &[NewInput]) -> Result<Vec<u8>, Problem> {
    let unpacked = |error: std::io::Error| Problem::invalid(format!("the inputs cannot be packed: {error}"));
    let mut archive = tar::Builder::new(Vec::new());
    for input in inputs {
        let contents = input.contents()?;
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(u64::try_from(contents.len()).unwrap_or(u64::MAX));
        archive
            .append_data(&mut header, file(&input.name)?, contents.as_slice())
            .map_err(unpacked)?;
    }
    archive.into_inner().map_err(unpacked)
}

impl Native {
    async fn staged(&self, place: &Place) -> Result<Vec<StagedInput>, Problem> {
        let (_, runner) = self.runner(place).await?;
        match staged(&runner).await {
            Ok(staged) => Ok(staged.unwrap_or_default()),
            Err(error) => Err(self.failure(place, error).await),
        }
    }
}

async fn list(State(native): State<Arc<Native>>, place: Place) -> Result<Json<Vec<StagedInput>>, Problem> {
    native.staged(&place).await.map(Json)
}

async fn stage(
    State(native): State<Arc<Native>>,
    place: Place,
    Body(wanted): Body<StageInputs>,
) -> Result<Json<Vec<StagedInput>>, Problem> {
    let archive = packed(&wanted.inputs)?;
    native.upload(&place, path::FILES, &[], archive.into()).await?;
    native.staged(&place).await.map(Json)
}

async fn stage_one(
    State(native): State<Arc<Native>>,
    place: Place,
    Path((.., name)): Path<(String, String, String, String)>,
    body: Bytes,
) -> Result<Json<StagedInput>, Problem> {
    let file = file(&name)?;
    let query = [("path", file.as_str())];
    let written = native.upload(&place, path::FILE, &query, passed_on(body)).await?;
    Ok(Json(StagedInput {
        name,
        path: format!("{DEFAULT_MOUNT}/{file}"),
        bytes: written.bytes,
    }))
}

async fn remove(
    State(native): State<Arc<Native>>,
    place: Place,
    Path((.., name)): Path<(String, String, String, String)>,
) -> Result<StatusCode, Problem> {
    let paths = vec![file(&name)?];
    native.remove(&place, &RemoveRequest { paths }).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, kind: FileKind) -> FileEntry {
        FileEntry {
            path: path.to_owned(),
            kind,
            size: 3,
        }
    }

    #[test]
    fn every_file_of_the_folder_is_an_input_under_its_own_name() {
        let entries = [
            entry(".inputs/naïve #1 100%?.csv", FileKind::File),
            entry(".inputs/folder", FileKind::Folder),
            entry(".inputs/link", FileKind::Link),
        ];
        let staged: Vec<_> = entries.iter().filter_map(input).collect();
        assert_eq!(
            variable(&staged).unwrap(),
            r#"{"naïve #1 100%?.csv":"/workspace/.inputs/naïve #1 100%?.csv"}"#
        );
        assert_eq!(variable(&[]).unwrap(), "{}");
    }

    #[test]
    fn a_variable_that_no_process_could_have_is_refused_before_code_runs() {
        let staged: Vec<_> = (0..400)
            .filter_map(|number| input(&entry(&format!(".inputs/{number:0200}"), FileKind::File)))
            .collect();
        assert_eq!(variable(&staged).unwrap_err().code, "TooManyInputs");
    }

    #[test]
    fn an_input_cannot_leave_the_folder() {
        for name in ["", ".", "..", "a/b", "../a", "a\0", &"a".repeat(256)] {
            assert_eq!(file(name).unwrap_err().code, "InvalidRequest", "{name:?}");
        }
        assert_eq!(file("...").unwrap(), ".inputs/...");
    }

    #[test]
    fn an_input_is_either_text_or_bytes() {
        let input = |text: Option<&str>, bytes: Option<&str>| NewInput {
            name: "a".to_owned(),
            text: text.map(str::to_owned),
            bytes: bytes.map(str::to_owned),
        };
        assert_eq!(input(Some("ü"), None).contents().unwrap(), "ü".as_bytes());
        assert_eq!(input(None, Some("AP8=")).contents().unwrap(), [0, 255]);
        for wrong in [
            input(None, None),
            input(Some(""), Some("")),
            input(None, Some("?")),
        ] {
            assert_eq!(wrong.contents().unwrap_err().code, "InvalidRequest");
        }
    }
}
