//! YAML that somebody else wrote, within a budget.

use serde_json::Value;
use serde_saphyr::{
    Error, Options, SnippetMode, UserMessageFormatter, budget::BudgetBreach, options::DuplicateKeyPolicy,
};

use crate::{field::FieldError, path::BundlePath, quote::Escaped};

/// Largest file of a manifest in bytes. Its inline content counts too, as that of an object would.
pub const MAX_MANIFEST_BYTES: usize = 256 * 1_024;
/// Deepest nesting of lists and objects.
const MAX_DEPTH: usize = 64;
/// Lists, objects and scalars after all aliases are replaced. A few lines of aliases can stand for billions.
const MAX_NODES: usize = 20_000;

/// Between which lines the frontmatter of a markdown file stands.
const FENCE: &str = "---";

/// Reads the one document of a file: a whole YAML file, or the frontmatter of a markdown file.
pub(super) fn read_document(file: &BundlePath, bytes: &[u8]) -> Result<Value, FieldError> {
    let wrong = |message: String| FieldError::new(format!("./{file}"), message);
    if bytes.len() > MAX_MANIFEST_BYTES {
        return Err(wrong(format!(
            "is {} bytes long; a manifest may have at most {MAX_MANIFEST_BYTES}: move large content into files and take them by `local`",
            bytes.len()
        )));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| wrong(format!("is not UTF-8 at byte {}", error.valid_up_to())))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_markdown = file
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
    let (yaml, lines_before) = if is_markdown {
        frontmatter(text).map_err(wrong)?
    } else {
        (text, 0)
    };
    serde_saphyr::from_str_with_options(yaml, options())
        .map_err(|error| wrong(explain(error.without_snippet(), lines_before)))
}

/// What stands between the first two lines of `---`, and the number of lines before it. A file without any is taken whole, since that
/// is how the specification shows its example.
fn frontmatter(text: &str) -> Result<(&str, u64), String> {
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return Ok((text, 0));
    };
    let start = first.len();
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return Ok((&text[start..end], 1));
        }
        end += line.len();
    }
    Err("has no second line of `---`, which ends the frontmatter".to_owned())
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_aliases: 1_000,
            max_anchors: 100,
            max_recorded_anchor_events: MAX_NODES,
            max_recorded_anchor_bytes: MAX_MANIFEST_BYTES,
            max_documents: 1,
            max_total_scalar_bytes: 4 * MAX_MANIFEST_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        // `on`, `yes` and `no` are words, as in YAML 1.2 and in what the API server reads.
        strict_booleans: true,
        // A snippet would carry the file's content into logs and status.
        with_snippet: false,
    }
}

/// What is wrong, in one line, and where it stands.
fn explain(error: &Error, lines_before: u64) -> String {
    let message = match error {
        Error::Budget {
            breach: BudgetBreach::Documents { .. },
            ..
        } => "it has more than one document".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => format!(
            "it has more than {MAX_NODES} values once all aliases are replaced, or nests them deeper than {MAX_DEPTH}"
        ),
        _ => {
            let text = error.render_with_options(serde_saphyr::render_options! {
                formatter: &UserMessageFormatter,
                snippets: SnippetMode::Off,
            });
            let line = text.lines().next().unwrap_or_default();
            let message = Escaped(line.split(" at line ").next().unwrap_or(line)).to_string();
            if message.contains("`@'") {
                "text that begins with `@` needs quotes".to_owned()
            } else {
                message
            }
        }
    };
    match error.location() {
        Some(location) if location.line() > 0 => format!(
            "is no YAML that can be read: {message} (line {}, column {})",
            location.line() + lines_before,
            location.column()
        ),
        _ => format!("is no YAML that can be read: {message}"),
    }
}
