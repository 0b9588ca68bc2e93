//! One output stream of a call: counted whole, told in part, and kept whole in a file when the part is not all.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use codeworkspace_protocol::session::{MAX_STREAM_BYTES, OutputStream, StreamSummary};

use super::text::{Decoder, beginning};
use crate::serve::files::{Root, SessionPath};

/// Where a call's whole streams are kept.
#[derive(Clone)]
pub(in crate::serve) struct Outputs {
    /// The session's root.
    pub(in crate::serve) root: Arc<Root>,
    /// The file of a stream is this and the stream's name.
    pub(in crate::serve) prefix: String,
}

impl Outputs {
    fn path(&self, stream: OutputStream) -> Option<SessionPath> {
        let name = match stream {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        };
        SessionPath::parse_inner(&format!("{}.{name}", self.prefix)).ok()
    }
}

#[derive(Default)]
enum Kept {
    /// The whole stream so far, while it is short.
    #[default]
    Memory,
    /// The file, open as long as more may come.
    File(Option<File>, SessionPath),
    /// It could not be kept whole.
    Lost,
}

pub(super) struct Stream {
    which: OutputStream,
    decoder: Decoder,
    total: u64,
    told: usize,
    cut: bool,
    head: Vec<u8>,
    kept: Kept,
    failure: Option<String>,
}

impl Stream {
    pub(super) fn new(which: OutputStream) -> Self {
        Self {
            which,
            decoder: Decoder::default(),
            total: 0,
            told: 0,
            cut: false,
            head: Vec::new(),
            kept: Kept::Memory,
            failure: None,
        }
    }

    /// Takes the next bytes, and gives the text that is to be told of them.
    pub(super) fn push(&mut self, bytes: &[u8], outputs: &Outputs) -> String {
        self.total += bytes.len() as u64;
        let text = if self.cut {
            String::new()
        } else {
            self.decoder.push(bytes)
        };
        let told = self.fitting(&text).to_owned();
        self.keep(bytes, outputs);
        told
    }

    /// The rest of the text, once no more bytes come.
    pub(super) fn finish(&mut self, outputs: &Outputs) -> String {
        let rest = if self.cut { "" } else { self.decoder.finish() };
        let told = self.fitting(rest).to_owned();
        if self.decoder.replaced() && matches!(self.kept, Kept::Memory) {
            self.spill(outputs);
        }
        told
    }

    /// Tells nothing more from here on.
    pub(super) fn cut(&mut self, outputs: &Outputs) {
        self.cut = true;
        if matches!(self.kept, Kept::Memory) {
            self.spill(outputs);
        }
    }

    fn fitting<'a>(&mut self, text: &'a str) -> &'a str {
        let room = usize::try_from(MAX_STREAM_BYTES).unwrap_or(usize::MAX) - self.told;
        let fitting = beginning(text, room);
        self.told += fitting.len();
        self.cut |= fitting.len() < text.len();
        fitting
    }

    fn keep(&mut self, bytes: &[u8], outputs: &Outputs) {
        match &mut self.kept {
            Kept::Memory => {
                self.head.extend_from_slice(bytes);
                if self.cut {
                    self.spill(outputs);
                }
            }
            Kept::File(Some(file), path) => {
                if let Err(error) = file.write_all(bytes) {
                    outputs.root.discard(path);
                    self.lose(&error);
                }
            }
            Kept::File(None, _) | Kept::Lost => {}
        }
    }

    /// Moves what was kept to a file.
    fn spill(&mut self, outputs: &Outputs) {
        let head = std::mem::take(&mut self.head);
        let Some(path) = outputs.path(self.which) else {
            return;
        };
        let written = outputs.root.create(&path).and_then(|mut file| {
            let written = file.write_all(&head);
            if written.is_err() {
                outputs.root.discard(&path);
            }
            written.map(|()| file)
        });
        match written {
            Ok(file) => self.kept = Kept::File(Some(file), path),
            Err(error) => self.lose(&error),
        }
    }

    fn lose(&mut self, error: &io::Error) {
        self.kept = Kept::Lost;
        self.failure = Some(format!(
            "the whole {} could not be kept in a file: {error}",
            match self.which {
                OutputStream::Stdout => "standard output",
                OutputStream::Stderr => "standard error",
            }
        ));
    }

    pub(super) fn summary(&self) -> StreamSummary {
        StreamSummary {
            total_bytes: self.total,
            file: match &self.kept {
                Kept::File(_, path) => Some(path.as_str().to_owned()),
                Kept::Memory | Kept::Lost => None,
            },
        }
    }

    /// Why there is no file although there should be one.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Lets go of what is not needed once the call has ended.
    pub(super) fn release(&mut self) {
        self.head = Vec::new();
        if let Kept::File(file, _) = &mut self.kept {
            *file = None;
        }
    }
}
