//! How bodies end, and that each end is told apart from the others.

use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::support::{End, end, inline, story};

/// Touches more memory than the limit of [`limited`].
const HUNGRY: &str = "import sys\nhog = b'x' * (400 << 20)\nsys.exit(0)\n";

fn python(content: &str, limits: &Value) -> Value {
    json!({
        "code": {"sources": [inline("body.py", content), inline("hungry.py", HUNGRY)]},
        "run": "body.py",
        "runner": {"limits": limits},
    })
}

fn shell(command: &str) -> Value {
    json!({
        "code": {"sources": [inline("unused.txt", "")]},
        "run": {"shell": command},
    })
}

fn failed(exit_code: i32) -> End {
    End {
        outcome: "Failed",
        reason: "NonZeroExit",
        exit_code: Some(exit_code),
        signal: None,
    }
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn exit_codes_and_signals_are_told_apart() {
    story(async |story| {
        let killed = End {
            outcome: "Failed",
            reason: "Signal",
            exit_code: None,
            signal: Some(9),
        };
        let cases = [
            ("exits-with-0", "exit 0", End::SUCCEEDED),
            ("exits-with-3", "exit 3", failed(3)),
            ("exits-with-137", "exit 137", failed(137)),
            ("is-killed", "kill -KILL $$", killed),
        ];
        try_join_all(cases.into_iter().map(async |(name, command, expected)| {
            let (workspace, run) = story.ran(&story.apply(name, &shell(command)).await?).await?;
            assert_eq!(end(&run), expected, "{command}: {:?}", run.status);
            let last = workspace.status.unwrap().last_run.unwrap();
            assert_eq!(
                (last.outcome, last.exit_code),
                (run.status.unwrap().outcome, expected.exit_code)
            );
            anyhow::Ok(())
        }))
        .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_kill_for_memory_is_told_even_when_the_body_outlives_it() {
    story(async |story| {
        let limits = json!({"memory_mb": 64});
        let child_then = |code: i32| {
            let body = format!(
                "import subprocess, sys\nchild = subprocess.run([sys.executable, 'hungry.py'])\n\
                 print(child.returncode)\nsys.exit({code})\n"
            );
            python(&body, &limits)
        };
        let out_of_memory = |exit_code: Option<i32>, signal: Option<i32>| End {
            outcome: "OOMKilled",
            reason: "MemoryLimit",
            exit_code,
            signal,
        };
        let cases = [
            ("body", python(HUNGRY, &limits), out_of_memory(None, Some(9)), ""),
            ("child-and-0", child_then(0), out_of_memory(Some(0), None), "-9\n"),
            ("child-and-3", child_then(3), out_of_memory(Some(3), None), "-9\n"),
        ];
        try_join_all(cases.into_iter().map(async |(name, spec, expected, stdout)| {
            let (_, run) = story.ran(&story.apply(name, &spec).await?).await?;
            assert_eq!(end(&run), expected, "{name}: {:?}", run.status);
            assert_eq!(run.status.unwrap().stdout.unwrap().tail, stdout, "{name}");
            anyhow::Ok(())
        }))
        .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_body_that_does_not_end_in_time_is_ended() {
    story(async |story| {
        let timed_out = End {
            outcome: "TimedOut",
            reason: "TimeLimit",
            exit_code: None,
            signal: None,
        };
        let body = "import time\nprint('began')\ntime.sleep(3600)\n";
        let (_, run) = story
            .ran(
                &story
                    .apply("slow", &python(body, &json!({"timeout_ms": 2000})))
                    .await?,
            )
            .await?;
        let status = run.status.clone().unwrap();
        assert_eq!(end(&run).outcome, timed_out.outcome, "{:?}", run.status);
        assert_eq!(end(&run).reason, timed_out.reason, "{:?}", run.status);
        assert_eq!(status.exit_code, None);
        assert_eq!(status.stdout.unwrap().tail, "began\n");
        let took = status
            .finished_at
            .unwrap()
            .0
            .duration_since(status.started_at.unwrap().0);
        assert!(took.as_secs() >= 2, "{took:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn output_is_counted_exactly_and_its_end_is_kept() {
    story(async |story| {
        let body = "import sys\n\
                    for number in range(100_000):\n    print(f'line {number:06}')\n\
                    print('warning', file=sys.stderr)\n";
        let (_, run) = story
            .ran(&story.apply("chatty", &python(body, &json!({}))).await?)
            .await?;
        assert_eq!(end(&run), End::SUCCEEDED, "{:?}", run.status);
        let status = run.status.unwrap();
        let stdout = status.stdout.unwrap();
        assert_eq!((stdout.total_bytes, stdout.truncated), (1_200_000, true));
        assert!(stdout.tail.len() <= 1024, "{} bytes", stdout.tail.len());
        let lines: Vec<_> = (99_920..100_000)
            .map(|number| format!("line {number:06}"))
            .collect();
        let last_lines = format!("{}\n", lines.join("\n"));
        assert!(stdout.tail.ends_with(&last_lines), "{}", stdout.tail);
        let stderr = status.stderr.unwrap();
        assert_eq!(
            (stderr.tail.as_str(), stderr.total_bytes, stderr.truncated),
            ("warning\n", 8, false)
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a cluster: cargo xtask test e2e"]
async fn a_command_that_the_image_lacks_is_an_error_that_names_it() {
    story(async |story| {
        let spec = json!({
            "code": {"sources": [inline("unused.txt", "")]},
            "run": {"exec": ["no-such-command"]},
        });
        let (_, run) = story.ran(&story.apply("tool", &spec).await?).await?;
        let expected = End {
            outcome: "StartError",
            reason: "CommandNotStarted",
            exit_code: None,
            signal: None,
        };
        assert_eq!(end(&run), expected, "{:?}", run.status);
        let message = run.status.unwrap().message.unwrap();
        assert!(message.contains("no-such-command"), "{message}");
        Ok(())
    })
    .await;
}
