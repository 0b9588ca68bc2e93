//! Bad manifests: each gets an answer that names the field, from the API server or in status, and never a pod.

use codeworkspace_api::CodeWorkspace;
use serde_json::{Value, json};

use crate::support::{Operator, Repository, Story, condition, inline, story};

/// Where the answer comes from, and what must be in it.
enum Answer {
    /// The API server refuses the object.
    Refused(&'static [&'static str]),
    /// The object is stored; this condition is false for this reason.
    Status(&'static str, &'static str, &'static [&'static str]),
}

use Answer::{Refused, Status};

fn sources(sources: Value) -> Value {
    json!({"code": {"sources": sources}, "run": "main.py"})
}

fn with_run(run: Value) -> Value {
    json!({"code": {"sources": [inline("main.py", "print(1)\n")]}, "run": run})
}

fn with_runner(runner: Value) -> Value {
    json!({"code": {"sources": [inline("main.py", "print(1)\n")]}, "run": "main.py", "runner": runner})
}

/// What the API server can see by itself.
fn refused() -> Vec<(&'static str, Value, Answer)> {
    let main = inline("main.py", "print(1)\n");
    vec![
        (
            "code of a wrong type",
            json!({"code": 5}),
            Refused(&["spec.code"]),
        ),
        ("run of a wrong type", with_run(json!(7)), Refused(&["spec.run"])),
        (
            "memory as a word",
            with_runner(json!({"limits": {"memory_mb": "much"}})),
            Refused(&["spec.runner.limits.memory_mb"]),
        ),
        (
            "a misspelled source kind",
            sources(json!([{"inlin": {"path": "main.py", "content": ""}}])),
            Refused(&["spec.code.sources[0]", "inlin"]),
        ),
        (
            "a misspelled key in a source",
            sources(json!([{"github": {"repo": "octo/tools", "ref": "main", "pth": "x"}}])),
            Refused(&["spec.code.sources[0].github", "pth"]),
        ),
        (
            "a misspelled form of run",
            with_run(json!({"fil": "main.py"})),
            Refused(&["spec.run", "fil"]),
        ),
        (
            "an unknown source kind",
            sources(json!([{"gitlab": {"repo": "a/b"}}])),
            Refused(&["spec.code.sources[0]", "gitlab"]),
        ),
        (
            "two kinds in one entry",
            sources(json!([{"inline": main["inline"], "github": {"repo": "octo/tools", "ref": "main"}}])),
            Refused(&["spec.code.sources[0]", "inline", "github"]),
        ),
        (
            "an absolute path",
            sources(json!([inline("/etc/passwd", "")])),
            Refused(&["spec.code.sources[0].inline.path"]),
        ),
        (
            "a path that leaves",
            sources(json!([inline("a/../../b", "")])),
            Refused(&["spec.code.sources[0].inline.path"]),
        ),
        (
            "NUL in a path",
            sources(json!([inline("a\0b", "")])),
            Refused(&["spec.code.sources[0].inline.path"]),
        ),
        (
            "NUL in content",
            sources(json!([inline("a", "x\0y")])),
            Refused(&["spec.code.sources[0].inline.content"]),
        ),
        ("no code", json!({"run": "main.py"}), Refused(&["spec.code"])),
    ]
}

/// What takes a look at the world.
fn told_in_status(repository: &Repository, private: &Repository) -> Vec<(&'static str, Value, Answer)> {
    let github = |repo: &str, reference: &str| {
        sources(json!([inline("main.py", "print(1)\n"), {"github": {"repo": repo, "ref": reference}}]))
    };
    let resolution = "SourceResolutionError";
    vec![
        (
            "a short commit id",
            github(&repository.full_name(), "0123abc"),
            Status(
                "SourcesResolved",
                resolution,
                &["code.sources[1]", "0123abc", "40"],
            ),
        ),
        (
            "a branch that does not exist",
            github(&repository.full_name(), "no-such-branch"),
            Status(
                "SourcesResolved",
                resolution,
                &["code.sources[1]", "no-such-branch"],
            ),
        ),
        (
            "a private repository",
            github(&private.full_name(), "main"),
            Status("SourcesResolved", resolution, &["code.sources[1]", "private"]),
        ),
        (
            "a misspelled file",
            with_run(json!("mian.py")),
            Status("RunnerResolved", "RunInvalid", &["run", "mian.py", "main.py"]),
        ),
        (
            "an extension that nothing runs",
            json!({"code": {"sources": [inline("main.rb", "")]}, "run": "main.rb"}),
            Status("RunnerResolved", "RunInvalid", &["run", ".rb", ".py"]),
        ),
        (
            "an image that does not exist",
            with_runner(json!({"engine": "sandbox", "image": "nope"})),
            Status(
                "RunnerResolved",
                "UnknownTemplate",
                &["runner.image", "nope", "node", "python"],
            ),
        ),
        (
            "a language that is not that of the file",
            with_runner(json!({"needs": {"language": "node"}})),
            Status(
                "RunnerResolved",
                "RunnerInvalid",
                &["runner.needs.language", "node", "python"],
            ),
        ),
        (
            "a file where another source has a folder",
            sources(json!([inline("main.py", ""), inline("a", ""), inline("a/b", "")])),
            Status(
                "SourcesResolved",
                resolution,
                &["code.sources[1]", "code.sources[2]"],
            ),
        ),
    ]
}

async fn check(story: &Story, number: usize, case: &(&str, Value, Answer)) -> anyhow::Result<()> {
    let (what, spec, answer) = case;
    let applied = story.apply(&format!("bad-{number}"), spec).await;
    let (said, parts) = match (answer, applied) {
        (Refused(parts), Err(error)) => (format!("{error:#}"), parts),
        (Refused(_), Ok(stored)) => panic!("{what} was accepted: {:?}", stored.spec),
        (Status(..), Err(error)) => panic!("{what} was refused: {error:#}"),
        (Status(type_, reason, parts), Ok(stored)) => {
            let workspace: CodeWorkspace = story.looked_at(&stored).await?;
            let found = condition(&workspace, type_).cloned();
            let found = found.unwrap_or_else(|| panic!("{what}: no {type_} in {:?}", workspace.status));
            assert_eq!(
                (found.status.as_str(), found.reason.as_str()),
                ("False", *reason),
                "{what}: {found:?}"
            );
            let ready = condition(&workspace, "Ready").map(|ready| ready.status.as_str());
            assert_eq!(ready, Some("False"), "{what}");
            (found.message, parts)
        }
    };
    for part in *parts {
        assert!(said.contains(part), "{what}: `{part}` is not in: {said}");
    }
    Ok(())
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn bad_manifests_are_answered_with_the_field_and_start_nothing() {
    story(async |story| {
        let operator = Operator::new(&story.client);
        let before = operator.processes().await?;
        let repository = story.repository().await?;
        repository.commit(&[("main.py", "print(1)\n")]).await?;
        let elsewhere = story.other_namespace().await?;
        let private = elsewhere.repository().await?;
        private.commit(&[("main.py", "print(1)\n")]).await?;
        private.make_private().await?;
        let cases: Vec<_> = refused()
            .into_iter()
            .chain(told_in_status(&repository, &private))
            .collect();
        let checks = cases
            .iter()
            .enumerate()
            .map(|(number, case)| check(story, number, case));
        futures::future::try_join_all(checks).await?;
        story.nothing_started().await?;
        assert_eq!(operator.processes().await?, before);
        Ok(())
    })
    .await;
}
