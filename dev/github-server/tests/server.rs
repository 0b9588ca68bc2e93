//! The server as its callers see it: over HTTP.

#![expect(
    clippy::unwrap_used,
    reason = "a step that fails is a failed test, helpers included"
)]

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use github_server::{
    AfterCut, Answer, Archive, Body, Commit, Cut, GithubServer, Redirect, RequestKind, ServerOptions,
    Switches,
};
use reqwest::{Client, Method, Response, StatusCode, header, redirect};
use serde_json::{Value, json};

fn client() -> Client {
    Client::builder()
        .user_agent("tests")
        .redirect(redirect::Policy::none())
        .build()
        .unwrap()
}

async fn get(url: impl AsRef<str>) -> Response {
    client().get(url.as_ref()).send().await.unwrap()
}

async fn get_json(url: impl AsRef<str>) -> Value {
    let response = get(url).await;
    assert_eq!(response.status(), StatusCode::OK);
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

async fn control(server: &GithubServer, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
    let url = format!("{}/_control/{path}", server.api_base());
    let response = client().request(method, url).json(&body).send().await.unwrap();
    let status = response.status();
    let bytes = response.bytes().await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

fn location(response: &Response) -> String {
    response.headers()[header::LOCATION].to_str().unwrap().to_owned()
}

/// Follows the API's redirect and returns the uncompressed archive.
async fn archive(server: &GithubServer, repository: &str, commit: &str) -> Vec<u8> {
    let redirect = get(format!(
        "{}/repos/{repository}/tarball/{commit}",
        server.api_base()
    ))
    .await;
    assert_eq!(redirect.status(), StatusCode::FOUND);
    let bytes = get(location(&redirect)).await.bytes().await.unwrap();
    let mut tar = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut tar).unwrap();
    tar
}

/// The names in an archive, without the global header's.
fn names(tar: &[u8]) -> Vec<String> {
    let mut archive = tar::Archive::new(tar);
    let names = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string());
    names.filter(|name| name != "pax_global_header").collect()
}

#[tokio::test]
async fn a_commit_has_the_same_id_on_every_machine() {
    let server = GithubServer::start().await.unwrap();
    let repository = server.create("octo/tools").unwrap();
    let commit = Commit::on("main")
        .file("a.txt", "a")
        .executable("run.sh", "#!/bin/sh\n")
        .link("l", "a.txt");
    assert_eq!(
        repository.commit(&commit).unwrap(),
        "118dfe40bff1fa44d386ccb8ca4b763e5af68bdf"
    );
    assert_eq!(
        repository.annotated_tag("v1", "main").unwrap(),
        "461c1382aa09ace825e012f277fd8196a9b69195"
    );
}

#[tokio::test]
async fn branches_tags_and_tag_objects_are_answered_as_by_github() {
    let server = GithubServer::start().await.unwrap();
    let repository = server.create("octo/tools").unwrap();
    let commit = repository
        .commit(&Commit::on("feat/a#1").file("a.txt", "a"))
        .unwrap();
    repository.tag("light", &commit).unwrap();
    let tag = repository.annotated_tag("heavy", &commit).unwrap();
    let base = format!("{}/repos/octo/tools/git", server.api_base());

    let branch = get_json(format!("{base}/ref/heads/feat/a%231")).await;
    assert_eq!(branch["ref"], "refs/heads/feat/a#1");
    assert_eq!(branch["object"]["type"], "commit");
    assert_eq!(branch["object"]["sha"], commit);
    assert_eq!(branch["url"], format!("{base}/refs/heads/feat/a%231"));
    assert_eq!(
        get_json(format!("{base}/ref/tags/light")).await["object"]["sha"],
        commit
    );
    let heavy = get_json(format!("{base}/ref/tags/heavy")).await;
    assert_eq!(
        (&heavy["object"]["type"], &heavy["object"]["sha"]),
        (&json!("tag"), &json!(tag))
    );
    let object = get_json(format!("{base}/tags/{tag}")).await;
    assert_eq!(
        (&object["tag"], &object["object"]["sha"]),
        (&json!("heavy"), &json!(commit))
    );

    // A prefix is no name.
    let missing = get(format!("{base}/ref/heads/feat")).await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert_eq!(missing.headers()["x-ratelimit-limit"], "5000");
    assert_eq!(
        serde_json::from_slice::<Value>(&missing.bytes().await.unwrap()).unwrap()["message"],
        "Not Found"
    );
}

#[tokio::test]
async fn an_archive_lies_behind_a_redirect_and_carries_its_commit() {
    let server = GithubServer::start().await.unwrap();
    let commit = server
        .create("octo/tools")
        .unwrap()
        .commit(&Commit::on("main").file("d/a.txt", "a"))
        .unwrap();
    let tar = archive(&server, "octo/tools", &commit).await;
    assert_eq!(&tar[512..512 + 52], format!("52 comment={commit}\n").as_bytes());
    let top = format!("octo-tools-{}", &commit[..7]);
    assert_eq!(
        names(&tar),
        [format!("{top}/"), format!("{top}/d/"), format!("{top}/d/a.txt")]
    );
    assert_eq!(server.requests().of(RequestKind::Download), 1);
    assert_eq!(server.requests().api(), 1);
    assert_eq!(server.requests().credentials.len(), 0);
}

#[tokio::test]
async fn missing_private_and_empty_repositories_answer_as_on_github() {
    let server = GithubServer::start().await.unwrap();
    let private = server.create("octo/secret").unwrap();
    let commit = private.commit(&Commit::on("main").file("a.txt", "a")).unwrap();
    private.set_private(true).unwrap();
    server.create("octo/empty").unwrap();
    let status = async |path: &str| get(format!("{}{path}", server.api_base())).await.status();
    assert_eq!(
        status("/repos/octo/none/git/ref/heads/main").await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        status("/repos/octo/secret/git/ref/heads/main").await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        status(&format!("/repos/octo/secret/tarball/{commit}")).await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        status("/repos/octo/empty/git/ref/heads/main").await,
        StatusCode::CONFLICT
    );
    assert_eq!(status("/user").await, StatusCode::NOT_FOUND);
    private.set_private(false).unwrap();
    assert_eq!(
        status("/repos/octo/secret/git/ref/heads/main").await,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_renamed_repository_answers_with_a_permanent_redirect_to_its_number() {
    let server = GithubServer::start().await.unwrap();
    let repository = server.create("octo/old").unwrap();
    repository.commit(&Commit::on("main").file("a.txt", "a")).unwrap();
    repository.rename("octo/new").unwrap();
    let moved = get(format!("{}/repos/octo/old/git/ref/heads/main", server.api_base())).await;
    assert_eq!(moved.status(), StatusCode::MOVED_PERMANENTLY);
    let reference = get_json(location(&moved)).await;
    assert_eq!(
        reference["url"],
        format!("{}/repos/octo/new/git/refs/heads/main", server.api_base())
    );
}

#[tokio::test]
async fn switches_change_status_redirect_and_archive_of_one_repository() {
    let server = GithubServer::start().await.unwrap();
    let repository = server.create("octo/tools").unwrap();
    let commit = repository.commit(&Commit::on("main").file("a.txt", "a")).unwrap();
    let reference = format!("{}/repos/octo/tools/git/ref/heads/main", server.api_base());
    let tarball = format!("{}/repos/octo/tools/tarball/{commit}", server.api_base());

    let answer = Answer {
        status: 403,
        headers: [("retry-after".to_owned(), "30".to_owned())].into(),
        kinds: vec![RequestKind::Reference],
        times: Some(1),
        ..Answer::default()
    };
    repository.set_switches(Switches {
        answer: Some(answer),
        ..Switches::default()
    });
    let refused = get(&reference).await;
    assert_eq!(
        (refused.status(), &refused.headers()["retry-after"]),
        (StatusCode::FORBIDDEN, &"30".parse().unwrap())
    );
    assert_eq!(get(&reference).await.status(), StatusCode::OK);

    repository.set_switches(Switches {
        redirect: Redirect::NoLocation,
        ..Switches::default()
    });
    assert!(!get(&tarball).await.headers().contains_key(header::LOCATION));
    repository.set_switches(Switches {
        redirect: Redirect::Chain(2),
        ..Switches::default()
    });
    let second = get(location(&get(&tarball).await)).await;
    assert_eq!(second.status(), StatusCode::FOUND);
    assert_eq!(get(location(&second)).await.status(), StatusCode::OK);

    let comment = "0123456789012345678901234567890123456789".to_owned();
    let other = Archive {
        comment: Some(comment.clone()),
        top_folder: Some("x".to_owned()),
        ..Archive::default()
    };
    repository.set_switches(Switches {
        archive: other,
        ..Switches::default()
    });
    let tar = archive(&server, "octo/tools", &commit).await;
    assert_eq!(&tar[523..563], comment.as_bytes());
    assert_eq!(names(&tar), ["x/", "x/a.txt"]);
}

#[tokio::test]
async fn a_body_can_break_off_or_end_early() {
    let server = GithubServer::start().await.unwrap();
    let repository = server.create("octo/tools").unwrap();
    let commit = repository.commit(&Commit::on("main").file("a.txt", "a")).unwrap();
    let download = format!(
        "http://{}/octo/tools/legacy.tar.gz/{commit}",
        server.download_host()
    );
    let whole = get(&download).await.bytes().await.unwrap();
    let cut = |then| Switches {
        body: Body {
            cut: Some(Cut { percent: 50, then }),
            ..Body::default()
        },
        ..Switches::default()
    };
    repository.set_switches(cut(AfterCut::End));
    assert_eq!(
        get(&download).await.bytes().await.unwrap(),
        whole[..whole.len() / 2]
    );
    repository.set_switches(cut(AfterCut::Close));
    get(&download).await.bytes().await.unwrap_err();
}

#[tokio::test]
async fn the_rate_limit_counts_down_to_refusal() {
    let server = GithubServer::start_with(ServerOptions {
        rate_limit: 1,
        ..ServerOptions::default()
    })
    .await
    .unwrap();
    server.create("octo/tools").unwrap();
    let url = format!("{}/repos/octo/tools", server.api_base());
    let allowed = get(&url).await;
    assert_eq!(
        (allowed.status(), &allowed.headers()["x-ratelimit-remaining"]),
        (StatusCode::OK, &"0".parse().unwrap())
    );
    let refused = get(&url).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(refused.headers()["x-ratelimit-remaining"], "0");
}

#[tokio::test]
async fn everything_can_be_controlled_over_http() {
    let server = GithubServer::start().await.unwrap();
    let repository = "repositories/octo/tools";
    let created = control(
        &server,
        Method::POST,
        "repositories",
        json!({ "owner": "octo", "name": "tools" }),
    )
    .await;
    assert_eq!(created, (StatusCode::CREATED, Value::Null));
    let again = control(
        &server,
        Method::POST,
        "repositories",
        json!({ "owner": "octo", "name": "tools" }),
    )
    .await;
    assert_eq!(again.0, StatusCode::CONFLICT);

    let files = json!({
        "main.py": { "content": "print(1)\n" },
        "blob": { "base64": "AP8=", "executable": true },
        "link": { "link": "main.py" },
        "module": { "submodule": "0123456789012345678901234567890123456789" },
    });
    let body = json!({ "files": files, "date": "2024-05-01T00:00:00Z", "message": "one" });
    let (status, first) = control(&server, Method::POST, &format!("{repository}/commits"), body).await;
    assert_eq!(status, StatusCode::CREATED);
    let body = json!({ "files": { "blob": null } });
    let (_, second) = control(&server, Method::POST, &format!("{repository}/commits"), body).await;
    let tar = archive(&server, "octo/tools", second["commit"].as_str().unwrap()).await;
    let top = format!("octo-tools-{}", &second["commit"].as_str().unwrap()[..7]);
    let expected = ["", "link", "main.py", "module/"].map(|name| format!("{top}/{name}"));
    assert_eq!(names(&tar), expected);

    let target = json!({ "target": first["commit"] });
    let moved = control(
        &server,
        Method::PUT,
        &format!("{repository}/branches/main"),
        target.clone(),
    )
    .await;
    assert_eq!(moved, (StatusCode::OK, json!({ "object": first["commit"] })));
    let tagged = control(&server, Method::PUT, &format!("{repository}/tags/v1/x"), target).await;
    assert_eq!(tagged.1, json!({ "object": first["commit"] }));
    for reference in ["branches/main", "tags/v1/x"] {
        let path = format!("{repository}/{reference}");
        assert_eq!(
            control(&server, Method::DELETE, &path, Value::Null).await.0,
            StatusCode::NO_CONTENT
        );
        assert_eq!(
            control(&server, Method::DELETE, &path, Value::Null).await.0,
            StatusCode::NOT_FOUND
        );
    }

    let switches = json!({ "answer": { "status": 451 } });
    control(&server, Method::PUT, &format!("{repository}/switches"), switches).await;
    let url = format!("{}/repos/octo/tools", server.api_base());
    assert_eq!(
        get(&url).await.status(),
        StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS
    );
    control(
        &server,
        Method::DELETE,
        &format!("{repository}/switches"),
        Value::Null,
    )
    .await;
    assert_eq!(get(&url).await.status(), StatusCode::OK);

    let (_, counts) = control(&server, Method::GET, "requests", Value::Null).await;
    assert_eq!(
        counts["repositories"]["octo/tools"],
        json!({ "repository": 2, "tarball": 1, "download": 1 })
    );
    control(&server, Method::DELETE, "requests", Value::Null).await;
    assert_eq!(server.requests().total(), 0);
    let (status, _) = control(&server, Method::PUT, "switches", json!({ "typo": 1 })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn fixtures_are_loaded_from_folders_and_kept_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("fixtures/octo/tools/src/a.py", "print(1)\n");
    write(
        "fixtures/octo/tools.json",
        r#"{"defaultBranch": "trunk", "tags": ["v1"], "annotatedTags": ["v2"]}"#,
    );
    write("fixtures/octo/plain/b.py", "print(2)\n");
    let start = async |root: &Path| {
        let (data, fixtures) = (Some(root.join("data")), Some(root.join("fixtures")));
        GithubServer::start_with(ServerOptions {
            data,
            fixtures,
            ..ServerOptions::default()
        })
        .await
        .unwrap()
    };
    let server = start(folder.path()).await;
    let object = async |server: &GithubServer, path: &str| {
        get_json(format!("{}/repos/octo/{path}", server.api_base())).await["object"]["sha"].clone()
    };
    let trunk = object(&server, "tools/git/ref/heads/trunk").await;
    assert_eq!(trunk, "cacbe99aa3e80e87607f5c97089302c3e2475d01");
    assert_eq!(object(&server, "tools/git/ref/tags/v1").await, trunk);
    assert_ne!(object(&server, "tools/git/ref/tags/v2").await, trunk);
    let added = server
        .repository("octo/plain")
        .unwrap()
        .commit(&Commit::on("main").file("c", "c"))
        .unwrap();
    server.shutdown().await.unwrap();

    let server = start(folder.path()).await;
    assert_eq!(object(&server, "plain/git/ref/heads/main").await, added);
}

#[tokio::test]
async fn a_held_request_is_counted_before_it_is_answered() {
    let server = GithubServer::start().await.unwrap();
    server.create("octo/tools").unwrap();
    server.set_switches(Switches {
        hold: vec![RequestKind::Repository],
        ..Switches::default()
    });
    let waiting = tokio::spawn(get(format!("{}/repos/octo/tools", server.api_base())));
    server.wait_for_requests(|requests| requests.total() == 1).await;
    assert!(!waiting.is_finished());
    server.set_switches(Switches::default());
    assert_eq!(waiting.await.unwrap().status(), StatusCode::OK);
}
