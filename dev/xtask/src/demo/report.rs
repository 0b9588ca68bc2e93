//! Workspaces as text: each with the tree of its sources and the outcome of its runs.

use std::fmt::{self, Write as _};

use super::state::{Run, Source, Stream, Workspace, Workspaces};

/// Renders everything.
pub(super) fn report(workspaces: &Workspaces) -> String {
    let mut text = String::new();
    for workspace in &workspaces.workspaces {
        // Writing to a String cannot fail.
        let _ = write_workspace(&mut text, workspace, workspaces.runs_of(workspace));
    }
    text
}

fn write_workspace<'a>(
    text: &mut String,
    workspace: &'a Workspace,
    runs: impl Iterator<Item = &'a Run>,
) -> fmt::Result {
    let ready = workspace
        .ready()
        .map_or_else(|| "not looked at yet".to_owned(), readiness);
    writeln!(text, "\n{}: {ready}", workspace.metadata.name)?;
    let status = &workspace.status;
    for source in &status.sources {
        write_source(text, source)?;
    }
    // What is wrong with a source stands at the source.
    if let Some(problem) = workspace.ready().filter(|ready| ready.status == "False")
        && status.sources.iter().all(|source| source.error.is_none())
    {
        writeln!(text, "  {}", problem.message)?;
    }
    if let Some(bundle) = &status.bundle {
        writeln!(
            text,
            "  bundle   {}, {}",
            size(bundle.files, bundle.size_bytes),
            bundle.digest
        )?;
    }
    if let Some(command) = &status.run {
        let template = status
            .runner
            .as_ref()
            .and_then(|runner| runner.template.as_deref())
            .unwrap_or("none");
        writeln!(
            text,
            "  run      {} (runner template {template})",
            command.argv.join(" ")
        )?;
    }
    for run in runs {
        write_run(text, run)?;
    }
    Ok(())
}

fn readiness(condition: &super::state::Condition) -> String {
    if condition.status == "True" {
        "Ready".to_owned()
    } else {
        format!("not ready, {}", condition.reason)
    }
}

fn write_source(text: &mut String, source: &Source) -> fmt::Result {
    let Source {
        path,
        kind,
        summary,
        state,
        revision,
        files,
        size_bytes,
        error,
        warnings,
    } = source;
    let kind = kind.as_deref().unwrap_or("?");
    // The summary begins with the kind.
    let what = summary
        .strip_prefix(kind)
        .map_or(summary.as_str(), str::trim_start);
    write!(text, "  {path:<16} {kind:<7} {what:<40} {state}")?;
    if let (Some(files), Some(bytes)) = (files, size_bytes) {
        write!(text, ", {}", size(*files, *bytes))?;
    }
    // A pinned commit stands in the summary already.
    if let Some(revision) = revision.as_ref().filter(|revision| !what.contains(*revision)) {
        write!(text, " at {revision}")?;
    }
    writeln!(text)?;
    if let Some(error) = error {
        writeln!(text, "      {}: {}", error.reason, error.message)?;
    }
    for warning in warnings {
        writeln!(text, "      warning: {warning}")?;
    }
    Ok(())
}

fn write_run(text: &mut String, run: &Run) -> fmt::Result {
    let status = &run.status;
    let outcome = status.outcome.as_deref().unwrap_or("not finished");
    write!(text, "  outcome  {outcome}")?;
    if let Some(code) = status.exit_code {
        write!(text, ", exit code {code}")?;
    }
    if let Some(signal) = status.signal {
        write!(text, ", signal {signal}")?;
    }
    writeln!(text, " (CodeRun {})", run.metadata.name)?;
    if outcome != "Succeeded"
        && let Some(reason) = &status.reason
    {
        writeln!(
            text,
            "      {reason}: {}",
            status.message.as_deref().unwrap_or_default()
        )?;
    }
    write_stream(text, "stdout", status.stdout.as_ref())?;
    write_stream(text, "stderr", status.stderr.as_ref())
}

fn write_stream(text: &mut String, name: &str, stream: Option<&Stream>) -> fmt::Result {
    let Some(stream) = stream.filter(|stream| stream.total_bytes > 0) else {
        return Ok(());
    };
    let what = if stream.truncated {
        ", of which the end is"
    } else {
        ""
    };
    writeln!(text, "  {name}   {} bytes{what}", stream.total_bytes)?;
    stream
        .tail
        .lines()
        .try_for_each(|line| writeln!(text, "      | {line}"))
}

fn size(files: u64, bytes: u64) -> String {
    format!("{files} file{}, {bytes} bytes", if files == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_source_and_each_run_is_shown_with_its_error_or_output() {
        let workspaces = Workspaces::from_list(json!({"items": [
            {
                "kind": "CodeWorkspace",
                "metadata": {"name": "broken", "generation": 1},
                "spec": {},
                "status": {
                    "conditions": [{
                        "type": "Ready", "status": "False", "reason": "SourceResolutionError", "message": "1 of 2 sources failed",
                    }],
                    "sources": [
                        {"path": "code.sources[0]", "kind": "inline", "summary": "inline main.py", "state": "Resolved", "files": 1, "sizeBytes": 9},
                        {
                            "path": "code.sources[1]", "kind": "github", "summary": "github octo/tools@no", "state": "Failed",
                            "error": {"class": "SourceResolutionError", "reason": "RepoOrRefNotFound", "message": "no such branch", "since": "2026-01-01T00:00:00Z"},
                        },
                    ],
                },
            },
            {
                "kind": "CodeWorkspace",
                "metadata": {"name": "good", "generation": 1},
                "spec": {"run": "main.py"},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}],
                    "sources": [{
                        "path": "code.sources[0]", "kind": "github", "summary": "github octo/tools@main", "state": "Resolved", "files": 2,
                        "sizeBytes": 20, "revision": "0123456789012345678901234567890123456789", "warnings": ["a link is left out"],
                    }],
                    "bundle": {"digest": "sha256:ab", "files": 2, "sizeBytes": 20, "compressedBytes": 10, "delivery": "ConfigMap"},
                    "run": {"form": "file", "argv": ["python3", "/workspace/main.py"]},
                    "runner": {"template": "python"},
                },
            },
            {
                "kind": "CodeRun",
                "metadata": {"name": "good-1"},
                "spec": {"workspaceRef": {"name": "good"}},
                "status": {
                    "outcome": "Failed", "reason": "NonZeroExit", "message": "exited with 3", "exitCode": 3,
                    "stdout": {"tail": "one\ntwo\n", "totalBytes": 2000, "truncated": true},
                    "stderr": {"tail": "", "totalBytes": 0, "truncated": false},
                },
            },
        ]}))
        .unwrap();
        let expected = "
broken: not ready, SourceResolutionError
  code.sources[0]  inline  main.py                                  Resolved, 1 file, 9 bytes
  code.sources[1]  github  octo/tools@no                            Failed
      RepoOrRefNotFound: no such branch

good: Ready
  code.sources[0]  github  octo/tools@main                          Resolved, 2 files, 20 bytes at 0123456789012345678901234567890123456789
      warning: a link is left out
  bundle   2 files, 20 bytes, sha256:ab
  run      python3 /workspace/main.py (runner template python)
  outcome  Failed, exit code 3 (CodeRun good-1)
      NonZeroExit: exited with 3
  stdout   2000 bytes, of which the end is
      | one
      | two
";
        assert_eq!(report(&workspaces), expected);
    }
}
