//! The work of a reconcile that finds nothing to do: a workspace with a pinned repository, two inline files and a finished run, against
//! an API server in memory. Prints the distribution over many reconciles; the target is less than 5 ms each.
//!
//! `cargo bench --bench reconcile`
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark may fail and prints its result"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use codeworkspace_api::{CodeWorkspace, RunnerTemplate};
use codeworkspace_operator::configuration::Configuration;
use codeworkspace_operator::controller::{Context, Readable, Stores, workspace::reconcile};
use codeworkspace_operator::metrics::Metrics;
use codeworkspace_source::{Github, GithubConfiguration, SystemClock};
use fake_api::FakeApi;
use github_server::{Commit, GithubServer};
use kube::runtime::watcher::Event;
use serde_json::json;

#[path = "../src/controller/fake_api.rs"]
#[expect(dead_code, reason = "the stories of the unit tests use the rest")]
mod fake_api;

const WORKSPACE: &str = "/apis/codeworkspace.dev/v1alpha1/namespaces/default/codeworkspaces/tool";
const ROUNDS: usize = 2_000;

fn main() {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(measure());
}

async fn measure() {
    let github = GithubServer::start().await.unwrap();
    let repository = github.create("octo/tool").unwrap();
    let commit = (0..200).fold(Commit::on("main"), |commit, file| {
        commit.file(
            format!("lib/module_{file}.py"),
            format!("value = {file}\n").repeat(100),
        )
    });
    let commit = repository.commit(&commit).unwrap();
    let api = FakeApi::default();
    api.put(
        WORKSPACE,
        json!({
            "apiVersion": "codeworkspace.dev/v1alpha1", "kind": "CodeWorkspace",
            "metadata": {"name": "tool", "namespace": "default", "uid": "0000", "generation": 1},
            "spec": {
                "code": {"sources": [
                    {"github": {"repo": "octo/tool", "ref": commit}},
                    {"inline": {"path": "main.py", "content": "import lib.module_1\n"}},
                    {"inline": {"path": "data/words.txt", "content": "word\n".repeat(10_000)}}
                ]},
                "run": "main.py"
            },
            "status": {"observedGeneration": -1}
        }),
    );
    let context = context(&api, &github);
    look(&api, &context).await;
    look(&api, &context).await;
    api.take_writes();
    let calls = github.requests();
    let (mut walls, mut works) = (Vec::with_capacity(ROUNDS), Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        let (started, worked) = (Instant::now(), processor_time());
        look(&api, &context).await;
        works.push(processor_time().saturating_sub(worked));
        walls.push(started.elapsed());
    }
    assert!(
        api.take_writes().is_empty() && github.requests() == calls,
        "these reconciles had something to do"
    );
    println!(
        "{}",
        json!({
            "benchmark": "reconcile with nothing to do", "rounds": ROUNDS, "unit": "ms",
            "processor": distribution(works), "wall": distribution(walls)
        })
    );
}

/// Processor time of this thread, which does all the work: other load on the machine does not count.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn distribution(mut times: Vec<Duration>) -> serde_json::Value {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    json!({"p50": at(50), "p90": at(90), "p99": at(99)})
}

/// One reconcile, with what a controller does before: the object comes decoded from its cache.
async fn look(api: &FakeApi, context: &Arc<Context>) {
    let workspace: CodeWorkspace = serde_json::from_value(api.get(WORKSPACE).unwrap()).unwrap();
    Box::pin(reconcile(Arc::new(workspace), context.clone()))
        .await
        .unwrap();
}

fn context(api: &FakeApi, github: &GithubServer) -> Arc<Context> {
    let configuration = GithubConfiguration {
        api_base: github.api_base(),
        download_hosts: vec![github.download_host()],
        insecure_hosts: vec![github.api_host(), github.download_host()],
        ..GithubConfiguration::default()
    };
    let (stores, mut writers) = Stores::new();
    let template: RunnerTemplate = serde_json::from_value(json!({
        "metadata": {"name": "python", "uid": "python", "generation": 1},
        "spec": {"image": "example/python", "languages": ["python", "multi"]}
    }))
    .unwrap();
    for event in [
        Event::Init,
        Event::InitApply(Readable(Ok(template))),
        Event::InitDone,
    ] {
        writers.templates.apply_watcher_event(&event);
    }
    let clock = Arc::new(SystemClock);
    let source = Github::new(configuration, clock.clone()).unwrap();
    let configuration: Configuration =
        serde_saphyr::from_str("runnerImage: {reference: example/operator}").unwrap();
    Arc::new(Context::new(
        api.client(),
        configuration,
        source,
        clock,
        Arc::new(Metrics::default()),
        stores,
    ))
}
