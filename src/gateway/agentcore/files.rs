//! Files in and out.

use std::io::{Seek as _, SeekFrom};

use codeworkspace_agentcore::MAX_BODY_BYTES;
use codeworkspace_agentcore::error::ServiceError;
use codeworkspace_agentcore::result::{ContentBlock, MAX_EVENT_BYTES, ToolResult};
use codeworkspace_agentcore::tools::InputFile;
use codeworkspace_protocol::session::{ErrorCode, FileEntry, FileKind, RemoveRequest, WrittenFiles, path};
use futures::TryStreamExt as _;
use reqwest::Method;

use super::outcome::uri;
use crate::gateway::runner::{Runner, RunnerError};

/// Most bytes of a file that is sent as one block: base64 makes four of three, and something is around it.
const MAX_FILE_BYTES: u64 = (MAX_EVENT_BYTES as u64 / 4) * 3 - 4096;

/// The files of one call, as the tar stream in which the runner takes them.
pub struct Archive {
    file: std::fs::File,
    count: usize,
}

impl Archive {
    /// Packs files. On disk, since they may be as large as a call.
    pub fn pack(files: &[InputFile<'_>]) -> std::io::Result<Self> {
        let mut archive = tar::Builder::new(std::io::BufWriter::new(tempfile::tempfile()?));
        for file in files {
            let contents = file.contents.as_bytes();
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Regular);
            header.set_mode(0o644);
            header.set_size(u64::try_from(contents.len()).unwrap_or(u64::MAX));
            archive.append_data(&mut header, file.path.as_ref(), contents)?;
        }
        let mut file = archive
            .into_inner()?
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Self {
            file,
            count: files.len(),
        })
    }

    /// Has the runner write all of them, or none.
    pub async fn write(self, runner: &Runner) -> Result<ToolResult, RunnerError> {
        let body = reqwest::Body::from(tokio::fs::File::from_std(self.file));
        let _: WrittenFiles = runner.send(path::FILES, &[], body).await?;
        Ok(ToolResult::text(match self.count {
            1 => "1 file written".to_owned(),
            count => format!("{count} files written"),
        }))
    }
}

/// Paths that the archive's format would change or refuse are refused here, by the name that the caller gave.
pub fn check_paths(files: &[InputFile<'_>]) -> Result<(), ServiceError> {
    use codeworkspace_agentcore::validation::ValidationError;
    for (index, file) in files.iter().enumerate() {
        let is_plain = !file.path.is_empty()
            && !file.path.contains('\0')
            && file.path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_plain {
            let field = format!("arguments.content[{index}].path");
            let message = "must be a path below the session's folder, without `.`, `..` and empty parts";
            return Err(ValidationError::field(field, message).into());
        }
    }
    Ok(())
}

/// Reads files; what cannot be read is named, and makes the result an error.
pub async fn read(runner: &Runner, paths: &[String]) -> Result<ToolResult, RunnerError> {
    let (mut content, mut faults) = (Vec::new(), Vec::new());
    let mut room = MAX_BODY_BYTES;
    for path in paths {
        match read_one(runner, path, room).await {
            Ok((block, size)) => {
                room = room.saturating_sub(size);
                content.push(block);
            }
            Err(ReadFault::Of(fault)) => faults.push(fault),
            Err(ReadFault::Runner(error)) => return Err(error),
        }
    }
    let is_error = !faults.is_empty();
    content.extend(faults.into_iter().map(ContentBlock::text));
    Ok(ToolResult {
        content,
        structured: None,
        is_error,
    })
}

enum ReadFault {
    /// Of this file.
    Of(String),
    /// Of the whole call.
    Runner(RunnerError),
}

async fn read_one(runner: &Runner, path: &str, room: u64) -> Result<(ContentBlock, u64), ReadFault> {
    let (size, bytes) = match runner.read(path).await {
        Ok(file) => file,
        Err(RunnerError::Refused(error))
            if matches!(error.code, ErrorCode::NotFound | ErrorCode::WrongKind) =>
        {
            return Err(ReadFault::Of(format!("{path}: {}", error.message)));
        }
        Err(error) => return Err(ReadFault::Runner(error)),
    };
    if size > MAX_FILE_BYTES {
        return Err(ReadFault::Of(format!(
            "{path}: has {size} bytes, and clients of this API take at most {MAX_FILE_BYTES} of one file: read it in parts"
        )));
    }
    if size > room {
        return Err(ReadFault::Of(format!(
            "{path}: one call reads at most {MAX_BODY_BYTES} bytes: read it in a call of its own"
        )));
    }
    let contents = bytes
        .try_fold(Vec::new(), |mut contents, part| async move {
            contents.extend_from_slice(&part);
            Ok(contents)
        })
        .await
        .map_err(ReadFault::Runner)?;
    let block = ContentBlock::file(uri(path), media_type(path), contents);
    if block.fits(MAX_EVENT_BYTES) {
        Ok((block, size))
    } else {
        Err(ReadFault::Of(format!(
            "{path}: is too large for clients of this API once it is encoded: read it in parts"
        )))
    }
}

/// Lists a folder.
pub async fn list(runner: &Runner, folder: Option<&str>) -> Result<ToolResult, RunnerError> {
    let query: Vec<_> = folder.iter().map(|folder| ("path", *folder)).collect();
    let entries: Vec<FileEntry> = runner.get(path::LIST, &query).await?;
    let content = entries.into_iter().map(|entry| ContentBlock::ResourceLink {
        uri: uri(&entry.path),
        name: entry.path.rsplit('/').next().unwrap_or(&entry.path).to_owned(),
        description: Some(
            match entry.kind {
                FileKind::File => "File",
                FileKind::Folder => "Directory",
                FileKind::Link => "Symbolic link",
                FileKind::Other => "Other",
            }
            .to_owned(),
        ),
        mime_type: match entry.kind {
            FileKind::File => media_type(&entry.path),
            FileKind::Folder => Some("inode/directory".to_owned()),
            FileKind::Link | FileKind::Other => None,
        },
        size: (entry.kind == FileKind::File).then_some(entry.size),
    });
    Ok(ToolResult {
        content: content.collect(),
        structured: None,
        is_error: false,
    })
}

/// Removes files and folders.
pub async fn remove(runner: &Runner, paths: Vec<String>) -> Result<ToolResult, RunnerError> {
    let count = paths.len();
    let request = RemoveRequest { paths };
    runner.tell(Method::POST, path::REMOVE, &request).await?;
    Ok(ToolResult::text(match count {
        1 => "1 path removed".to_owned(),
        count => format!("{count} paths removed"),
    }))
}

/// What a file probably is, by its name. Clients show it; nothing here depends on it.
fn media_type(path: &str) -> Option<String> {
    let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
    let known = match extension.to_ascii_lowercase().as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "json" => "application/json",
        "py" => "text/x-python",
        "js" | "mjs" | "cjs" => "text/javascript",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        _ => return None,
    };
    Some(known.to_owned())
}
