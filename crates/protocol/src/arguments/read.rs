//! The command line of `runner read`.

use super::{ArgumentError, Options, READ};

const FOLDER: &str = "--folder";
const BELOW: &str = "--below";
const LINKS: &str = "--links";
const MAX_ENTRIES: &str = "--max-entries";
const MAX_FILE_BYTES: &str = "--max-file-bytes";
const MAX_TOTAL_BYTES: &str = "--max-total-bytes";

const KEEP: &str = "keep";
const SKIP: &str = "skip";

/// What becomes of a link that cannot stand in a bundle, for example one to an absolute path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedLinks {
    /// The reading fails and names the link.
    Fail,
    /// The link is left out and named in the report.
    Skip,
}

/// `runner read`: stream the files of a volume to whoever is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadArguments {
    /// Absolute path at which the volume is mounted.
    pub folder: String,
    /// Folder of the volume whose files are read, relative and without `..`; the whole volume when absent. It is not joined to
    /// `folder` beforehand: a link on its way must not lead out of the volume.
    pub below: Option<String>,
    /// What becomes of links that cannot be kept.
    pub links: RefusedLinks,
    /// Most files and links.
    pub max_entries: u64,
    /// Most bytes of one file.
    pub max_file_bytes: u64,
    /// Most bytes of all files.
    pub max_total_bytes: u64,
}

impl ReadArguments {
    /// The command line without the program's own name; [`ReadArguments::parse`] reads it back.
    pub fn to_args(&self) -> Vec<String> {
        let links = match self.links {
            RefusedLinks::Fail => KEEP,
            RefusedLinks::Skip => SKIP,
        };
        let mut arguments = vec![READ.to_owned(), FOLDER.to_owned(), self.folder.clone()];
        if let Some(below) = &self.below {
            arguments.extend([BELOW.to_owned(), below.clone()]);
        }
        arguments.extend([LINKS.to_owned(), links.to_owned()]);
        for (option, number) in [
            (MAX_ENTRIES, self.max_entries),
            (MAX_FILE_BYTES, self.max_file_bytes),
            (MAX_TOTAL_BYTES, self.max_total_bytes),
        ] {
            arguments.extend([option.to_owned(), number.to_string()]);
        }
        arguments
    }

    /// Reads a command line without the program's own name, subcommand included.
    pub fn parse(arguments: &[String]) -> Result<Self, ArgumentError> {
        let known = [FOLDER, BELOW, LINKS, MAX_ENTRIES, MAX_FILE_BYTES, MAX_TOTAL_BYTES];
        let (mut options, rest) = Options::read(READ, arguments, &known, &[])?;
        options.without_words(rest)?;
        let links = match options.values.remove(LINKS) {
            None => return Err(options.missing(LINKS)),
            Some(links) if links == KEEP => RefusedLinks::Fail,
            Some(links) if links == SKIP => RefusedLinks::Skip,
            Some(other) => return Err(options.invalid(LINKS, other, "must be `keep` or `skip`")),
        };
        Ok(Self {
            folder: options.absolute_path(FOLDER)?,
            below: below(&mut options)?,
            links,
            max_entries: number(&mut options, MAX_ENTRIES)?,
            max_file_bytes: number(&mut options, MAX_FILE_BYTES)?,
            max_total_bytes: number(&mut options, MAX_TOTAL_BYTES)?,
        })
    }
}

/// A path that can only lead downwards, however it is joined.
fn below(options: &mut Options) -> Result<Option<String>, ArgumentError> {
    let Some(value) = options.values.remove(BELOW) else {
        return Ok(None);
    };
    let is_plain =
        !value.contains('\0') && !value.split('/').any(|segment| matches!(segment, "" | "." | ".."));
    if is_plain {
        Ok(Some(value))
    } else {
        Err(options.invalid(
            BELOW,
            value,
            "must be a relative path without empty, `.` and `..` segments",
        ))
    }
}

fn number(options: &mut Options, option: &'static str) -> Result<u64, ArgumentError> {
    let value = options
        .values
        .remove(option)
        .ok_or_else(|| options.missing(option))?;
    // `u64::from_str` also takes a leading plus sign, which would make two spellings of one command line.
    match value.parse() {
        Ok(number) if !value.starts_with('+') => Ok(number),
        _ => Err(options.invalid(option, value, "must be a whole number")),
    }
}
